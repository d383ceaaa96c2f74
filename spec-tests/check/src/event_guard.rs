//! Judges what pools of a test tell, whatever the test looks at.

use std::fmt::Display;
use std::process::abort;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Event, PoolOptions};

use super::{Checker, Limits, Line, Report};

/// Hears the events of pools with an address each, and ends the process when a rule is broken: a
/// pool bears with subscribers that panic, so that a test would pass all the same.
///
/// ```
/// use cenote_check::EventGuard;
/// use cenote_core::pool::Event;
///
/// let sentry = EventGuard::new();
/// let subscriber = move |event: &Event<String>| sentry.hear(event, &"a:1".parse().expect("valid"));
/// subscriber(&Event::ConnectionPoolCreated { options: Box::default() });
/// subscriber(&Event::ConnectionPoolReady);
/// ```
///
/// Every call takes a lock and ends within microseconds.
#[derive(Debug)]
pub struct EventGuard {
    /// Unless the time of its pools is another one than that of the clock.
    began: Option<Instant>,
    checker: Mutex<Checker>,
}

impl EventGuard {
    /// Nothing has been told yet, and the pools are not there.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it looks at the clock")]
    pub fn new() -> Self {
        Self::since(Some(Instant::now()))
    }

    /// The same for pools in virtual time: how long something took is compared with nothing.
    #[must_use]
    pub fn without_clock() -> Self {
        Self::since(None)
    }

    fn since(began: Option<Instant>) -> Self {
        Self { began, checker: Mutex::new(Checker::new(Limits::default())) }
    }

    /// The next event.
    pub fn hear<C: Display>(&self, event: &Event<C>, address: &ServerAddress) {
        self.tell(|at| Line::of(event, address, at));
    }

    /// That the options of a running pool are about to be these, all of them, of which no event tells.
    pub fn options_change(&self, options: &PoolOptions, address: &ServerAddress) {
        self.tell(|at| Line::options_changed(options, address, at));
    }

    /// That the pool is about to live on in a forked process, of which no event tells either.
    pub fn is_reset_after_fork(&self, address: &ServerAddress) {
        self.tell(|at| Line::reset_after_fork(address, at));
    }

    fn tell(&self, line: impl FnOnce(Duration) -> Line) {
        let mut checker = self.checker.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match self.began {
            Some(began) => line(began.elapsed()),
            None => Line { at: None, ..line(Duration::ZERO) },
        };
        checker.tell(&line);
        raise_alarm(checker.so_far());
    }
}

/// At the end of the events everything of closed pools must have ended, unless the test fails anyway.
impl Drop for EventGuard {
    fn drop(&mut self) {
        if !thread::panicking() {
            let checker = self.checker.get_mut().unwrap_or_else(PoisonError::into_inner);
            raise_alarm(&std::mem::take(checker).finish());
        }
    }
}

fn raise_alarm(report: &Report) {
    if !report.is_good() {
        eprintln!("the events of a pool break rules:\n{report}");
        abort();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const VARIABLE: &str = "CENOTE_SENTRY_IS_TO_RAISE_ALARM";

    /// In a process of its own, which does not live to say that all is well.
    #[test]
    fn a_broken_rule_ends_the_process() {
        let is_child = std::env::var(VARIABLE);
        if let Ok(what) = is_child {
            let sentry = EventGuard::new();
            let address = "a:1".parse().expect("an address");
            let options = Box::default();
            sentry.hear(&Event::<String>::ConnectionPoolCreated { options }, &address);
            let created = Event::<String>::ConnectionCreated { connection_id: 1 };
            let closed = Event::<String>::ConnectionPoolClosed;
            let started = Event::<String>::ConnectionCheckOutStarted {
                request: cenote_core::pool::WaiterId(1),
            };
            match what.as_str() {
                "now" => sentry.hear(&created, &address),
                _ => [&started, &closed].iter().for_each(|event| sentry.hear(event, &address)),
            }
            return;
        }
        for (what, rule) in [("now", "T-01"), ("in the end", "PS-22")] {
            let child = Command::new(std::env::current_exe().expect("this one"))
                .args(["--exact", "event_guard::tests::a_broken_rule_ends_the_process"])
                .arg("--nocapture")
                .env(VARIABLE, what)
                .output()
                .expect("it runs");
            assert!(!child.status.success(), "{what}");
            let said = String::from_utf8_lossy(&child.stderr);
            assert!(said.contains(rule), "{what}: {said}");
        }
    }
}
