//! What must add up in the end: nobody is forgotten, nothing is left open, and the events say so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::pool::Event;

use cenote_check::{Checker, Line};

/// Who asks for connections, one at a time: a thread of the file.
pub(super) type Caller = usize;

/// Sums of what went in and what came out.
#[derive(Debug)]
pub(super) struct Ledger {
    begun: Instant,
    /// Requests without an outcome.
    waiting: BTreeSet<Caller>,
    /// Sockets that are open.
    sockets: BTreeSet<u64>,
    mistakes: BTreeMap<&'static str, u64>,
    /// Judges the events, whatever the file makes of them.
    checker: Checker,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            waiting: BTreeSet::new(),
            sockets: BTreeSet::new(),
            mistakes: BTreeMap::new(),
            checker: Checker::default(),
        }
    }
}

impl Ledger {
    /// Somebody asked for a connection.
    pub(super) fn requested(&mut self, caller: Caller) {
        let new = self.waiting.insert(caller);
        self.must(new, "a caller asked twice at a time");
    }

    /// Somebody was told what became of the request, or does not want to know any more.
    pub(super) fn answered(&mut self, caller: Caller) {
        let asked = self.waiting.remove(&caller);
        self.must(asked, "an outcome came for nobody");
    }

    /// A socket was opened.
    pub(super) fn opened(&mut self, number: u64) {
        let new = self.sockets.insert(number);
        self.must(new, "a connection was established twice");
    }

    /// A socket was closed.
    pub(super) fn closed(&mut self, number: u64) {
        let open = self.sockets.remove(&number);
        self.must(open, "a socket was closed twice");
    }

    /// How long ago it began, where time is real.
    pub(super) fn time(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The pool tells something, so long after the beginning.
    pub(super) fn told<C: Display>(
        &mut self,
        event: &Event<C>,
        address: &ServerAddress,
        at: Duration,
    ) {
        self.checker.tell(&Line::of(event, address, at));
    }

    /// The pool tells something, now.
    pub(super) fn told_now<C: Display>(&mut self, event: &Event<C>, address: &ServerAddress) {
        self.told(event, address, self.time());
    }

    /// Something happens to the pool that no event tells of.
    pub(super) fn note(&mut self, line: &Line) {
        self.checker.tell(line);
    }

    /// Says what does not add up, and which rules the events break (PS-22).
    pub(super) fn close(mut self) -> Result<(), String> {
        self.must(self.waiting.is_empty(), "a request never had an outcome");
        self.must(self.sockets.is_empty(), "a socket was never closed");
        let mistakes = self.mistakes.iter().map(|(what, times)| format!("{what} ({times} times)"));
        let mut complaints: Vec<_> = mistakes.collect();
        let report = self.checker.finish();
        complaints.extend(report.findings.iter().map(|it| format!("the events, {it}")));
        if complaints.is_empty() {
            return Ok(());
        }
        Err(format!("after the pool was closed: {}", complaints.join("; ")))
    }

    fn must(&mut self, holds: bool, otherwise: &'static str) {
        if !holds {
            *self.mistakes.entry(otherwise).or_insert(0) += 1;
        }
    }
}
