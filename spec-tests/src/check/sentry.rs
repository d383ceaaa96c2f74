//! Judges what pools of a test tell, whatever the test looks at.

use std::fmt::Display;
use std::process::abort;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use cenote_core::address::ServerAddress;
use cenote_core::pool::Event;

use super::{Checker, Limits, Line, Report};

/// Hears the events of pools, and ends the process when a rule is broken: a pool bears with
/// subscribers that panic, so that a test would pass all the same.
///
/// For pools whose options do not change.
#[derive(Debug)]
pub struct Sentry {
    began: Instant,
    checker: Mutex<Checker>,
}

impl Sentry {
    /// Nothing has been told yet, and the pools are not there.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it looks at the clock")]
    pub fn new() -> Self {
        Self { began: Instant::now(), checker: Mutex::new(Checker::new(Limits::default())) }
    }

    /// The next event.
    pub fn hear<C: Display>(&self, event: &Event<C>, address: &ServerAddress) {
        let mut checker = self.checker.lock().unwrap_or_else(PoisonError::into_inner);
        checker.tell(&Line::of(event, address, self.began.elapsed()));
        raise_alarm(checker.so_far());
    }
}

/// When nobody tells anything any more, what pools that were closed had has come to its end, unless
/// the test fails anyway.
impl Drop for Sentry {
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
            let sentry = Sentry::new();
            let address = "a:1".parse().expect("an address");
            let options = Box::default();
            sentry.hear(&Event::<String>::ConnectionPoolCreated { options }, &address);
            let created = Event::<String>::ConnectionCreated { connection_id: 1 };
            let closed = Event::<String>::ConnectionPoolClosed;
            let started = Event::<String>::ConnectionCheckOutStarted;
            match what.as_str() {
                "now" => sentry.hear(&created, &address),
                _ => [&started, &closed].iter().for_each(|event| sentry.hear(event, &address)),
            }
            return;
        }
        for (what, rule) in [("now", "T-01"), ("in the end", "PS-22")] {
            let child = Command::new(std::env::current_exe().expect("this one"))
                .args(["--exact", "check::sentry::tests::a_broken_rule_ends_the_process"])
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
