use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cenote_replay::picture::Fault;
use cenote_replay::text::{counted, span};
use serde::{Serialize, Serializer};

/// One trouble, and what the application and the pool noticed of it. Times are since the trouble
/// began, but for `at`; what did not happen has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Incident {
    pub(super) trouble: &'static str,
    /// Since the start of the run.
    #[serde(rename = "atSeconds", serialize_with = "in_seconds")]
    pub(super) at: Duration,
    /// Until the server was as it should be.
    #[serde(rename = "lastedMS", serialize_with = "in_milliseconds")]
    pub(super) lasted: Option<Duration>,
    /// How many connections or replies the fault affected.
    pub(super) hits: u64,
    /// Connections that the pool closed because of an error.
    pub(super) closed: u64,
    /// Connections and operations that failed because something that came was not accepted.
    pub(super) refused: u64,
    /// Until the pool was cleared first.
    #[serde(rename = "clearedMS", serialize_with = "in_milliseconds")]
    pub(super) cleared: Option<Duration>,
    /// Until the pool was made ready for good.
    #[serde(rename = "readyMS", serialize_with = "in_milliseconds")]
    pub(super) ready: Option<Duration>,
    /// Check-outs and operations that failed.
    pub(super) failed: u64,
    /// Until the first of them did.
    #[serde(rename = "firstFailureMS", serialize_with = "in_milliseconds")]
    pub(super) first_failure: Option<Duration>,
    #[serde(skip)]
    last_failure: Option<Duration>,
    /// Until an operation went well that began after the last of them.
    #[serde(rename = "goodAgainMS", serialize_with = "in_milliseconds")]
    pub(super) good_again: Option<Duration>,
}

/// All troubles of a run; what happens belongs to the one that began last.
pub(super) struct Timeline {
    began: Instant,
    /// The same moment on the wall clock.
    began_at: SystemTime,
    incidents: Mutex<Vec<Incident>>,
    /// Whether the first operation that goes well is waited for: all others need no lock.
    is_waiting: AtomicBool,
}

impl Default for Timeline {
    fn default() -> Self {
        let (incidents, is_waiting) = (Mutex::default(), AtomicBool::new(false));
        Self { began: Instant::now(), began_at: SystemTime::now(), incidents, is_waiting }
    }
}

impl Timeline {
    /// Since the start of the run.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn begin(&self, trouble: &'static str) {
        let at = self.now();
        self.lock().push(Incident { trouble, at, ..Incident::default() });
    }

    pub(super) fn end(&self, hits: u64) {
        self.note(|incident, now| {
            incident.lasted = Some(now);
            incident.hits = hits;
        });
    }

    /// The pool closed a connection because of an error.
    pub(super) fn closed(&self) {
        self.note(|incident, _| incident.closed += 1);
    }

    /// Something that came was not accepted.
    pub(super) fn refused(&self) {
        self.note(|incident, _| incident.refused += 1);
    }

    pub(super) fn cleared(&self) {
        self.note(|incident, now| {
            incident.cleared.get_or_insert(now);
            incident.ready = None;
        });
    }

    pub(super) fn ready(&self) {
        self.note(|incident, now| incident.ready = incident.cleared.map(|_| now));
    }

    pub(super) fn failed(&self) {
        self.note(|incident, now| {
            incident.failed += 1;
            incident.first_failure.get_or_insert(now);
            incident.last_failure = Some(now);
            incident.good_again = None;
            self.is_waiting.store(true, Ordering::Relaxed);
        });
    }

    /// An operation went well that took so long.
    pub(super) fn good(&self, time: Duration) {
        if self.is_waiting.load(Ordering::Relaxed) {
            self.note(|incident, now| {
                // What began before the last failure may have been answered before the trouble.
                if incident.last_failure.is_some_and(|failed| now.saturating_sub(time) >= failed) {
                    incident.good_again.get_or_insert(now);
                    self.is_waiting.store(false, Ordering::Relaxed);
                }
            });
        }
    }

    /// The last one, if there is one.
    pub(super) fn last(&self) -> Option<Incident> {
        self.lock().last().cloned()
    }

    pub(super) fn incidents(&self) -> Vec<Incident> {
        self.lock().clone()
    }

    /// The injected faults, for a picture.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let began = self.began_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let fault = |incident: Incident| Fault {
            at: milliseconds(began + incident.at),
            lasted: milliseconds(incident.lasted.unwrap_or_default()),
            text: incident.consequences(),
            name: incident.trouble.to_owned(),
        };
        self.incidents().into_iter().map(fault).collect()
    }

    fn note(&self, what: impl FnOnce(&mut Incident, Duration)) {
        let mut incidents = self.lock();
        if let Some(incident) = incidents.last_mut() {
            let now = self.now().saturating_sub(incident.at);
            what(incident, now);
        }
    }

    /// Poisoning is ignored: the incidents are valid at any time.
    fn lock(&self) -> MutexGuard<'_, Vec<Incident>> {
        self.incidents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incident {
    /// In words.
    fn consequences(&self) -> String {
        let good = match self.good_again {
            Some(time) => format!("an operation succeeded again after {}", span(time)),
            None if self.failed == 0 => "no operation failed".to_owned(),
            None => "no operation succeeded again".to_owned(),
        };
        format!(
            "hit {}; {} closed with an error, {} failed; {good}",
            counted(self.hits, "connection or reply", "connections or replies"),
            counted(self.closed, "connection", "connections"),
            counted(self.failed, "operation", "operations")
        )
    }

    /// Whether all that was lost is there again.
    pub(super) fn is_over(&self) -> bool {
        self.lasted.is_some()
            && (self.failed == 0 || self.good_again.is_some())
            && (self.cleared.is_none() || self.ready.is_some())
    }
}

fn in_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn in_milliseconds<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64() * 1e3).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_again_is_what_comes_after_the_last_failure() {
        let timeline = Timeline::default();
        timeline.failed();
        timeline.good(Duration::ZERO);
        assert_eq!(timeline.last(), None, "there was no trouble yet");

        timeline.begin("restart");
        timeline.good(Duration::ZERO);
        assert_eq!(timeline.last().unwrap().good_again, None, "nothing was lost yet");
        timeline.failed();
        timeline.good(Duration::from_secs(1));
        assert_eq!(timeline.last().unwrap().good_again, None, "it began before");
        timeline.good(Duration::ZERO);
        let first = timeline.last().unwrap().good_again.unwrap();
        timeline.good(Duration::ZERO);
        assert_eq!(timeline.last().unwrap().good_again, Some(first));
        timeline.failed();
        assert_eq!(timeline.last().unwrap().good_again, None);
        timeline.good(Duration::ZERO);
        timeline.end(0);
        let incident = timeline.last().unwrap();
        assert!(incident.good_again > Some(first) && incident.failed == 2, "{incident:?}");
        assert!(incident.is_over());
    }

    #[test]
    fn a_pool_that_was_cleared_has_to_be_ready_again() {
        let timeline = Timeline::default();
        timeline.begin("reset");
        timeline.end(0);
        assert!(timeline.last().unwrap().is_over());
        timeline.cleared();
        assert!(!timeline.last().unwrap().is_over());
        timeline.ready();
        assert!(timeline.last().unwrap().is_over());
    }
}
