use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::error::ConnectionError;
use cenote_core::pool::{CloseReason, Event};

use super::latency::{Latencies, Quantiles};
use super::timeline::Timeline;

/// What the pool's events tell beside their order, which the checker judges.
pub(super) struct Seen {
    timeline: Arc<Timeline>,
    counted: Mutex<Counted>,
}

struct Counted {
    establishments: Latencies,
    established: u64,
    cleared: u64,
    closed: BTreeMap<&'static str, u64>,
}

/// What became of connections.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Connections {
    pub(super) establishments: Quantiles,
    pub(super) established: u64,
    /// How often the pool was.
    pub(super) cleared: u64,
    /// By reason.
    pub(super) closed: BTreeMap<&'static str, u64>,
}

impl Seen {
    pub(super) fn new(timeline: Arc<Timeline>) -> Self {
        let counted = Counted {
            establishments: Latencies::new(),
            established: 0,
            cleared: 0,
            closed: BTreeMap::new(),
        };
        Self { timeline, counted: Mutex::new(counted) }
    }

    pub(super) fn hear(&self, event: &Event<ConnectionError>) {
        match event {
            Event::ConnectionReady { duration, .. } => {
                let mut counted = self.lock();
                counted.establishments.record(*duration);
                counted.established += 1;
            }
            Event::ConnectionClosed { reason, .. } => {
                *self.lock().closed.entry(reason.as_str()).or_default() += 1;
                if *reason == CloseReason::Error {
                    self.timeline.closed();
                }
            }
            Event::ConnectionPoolCleared { .. } => {
                self.lock().cleared += 1;
                self.timeline.cleared();
            }
            Event::ConnectionPoolReady => self.timeline.ready(),
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolClosed
            | Event::ConnectionCreated { .. }
            | Event::ConnectionCheckOutStarted { .. }
            | Event::ConnectionCheckOutFailed { .. }
            | Event::ConnectionCheckedOut { .. }
            | Event::ConnectionCheckedIn { .. }
            | _ => {}
        }
    }

    pub(super) fn connections(&self) -> Connections {
        let Counted { establishments, established, cleared, closed } = &*self.lock();
        Connections {
            establishments: establishments.quantiles(),
            established: *established,
            cleared: *cleared,
            closed: closed.clone(),
        }
    }

    /// Poisoning is ignored: the counts are valid at any time.
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
