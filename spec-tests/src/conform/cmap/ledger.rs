//! What must add up in the end: nobody is forgotten, nothing is left open, and the events say so.

use std::collections::{BTreeMap, BTreeSet};

use cenote_core::pool::Event;

/// Who asks for connections, one at a time: a thread of the file.
pub(super) type Caller = usize;

/// Sums of what went in and what came out.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Requests without an outcome.
    waiting: BTreeSet<Caller>,
    /// Sockets that are open.
    sockets: BTreeSet<u64>,
    /// Connections that the events leave open.
    connections: BTreeSet<u64>,
    /// Check-outs that the events leave open.
    check_outs: u64,
    mistakes: BTreeMap<&'static str, u64>,
}

impl Ledger {
    /// Somebody asked for a connection.
    pub(super) fn requested(&mut self, caller: Caller) {
        let new = self.waiting.insert(caller);
        self.must(new, "a caller asked twice at a time");
    }

    /// Somebody was told what became of the request.
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

    /// The pool told something (PS-22).
    pub(super) fn told<C>(&mut self, event: &Event<C>) {
        match event {
            Event::ConnectionCreated { connection_id } => {
                let new = self.connections.insert(*connection_id);
                self.must(new, "ConnectionCreated came twice");
            }
            Event::ConnectionClosed { connection_id, .. } => {
                let open = self.connections.remove(connection_id);
                self.must(open, "ConnectionClosed came for no connection");
            }
            Event::ConnectionCheckOutStarted => self.check_outs += 1,
            Event::ConnectionCheckedOut { .. } | Event::ConnectionCheckOutFailed { .. } => {
                self.must(self.check_outs > 0, "a check-out ended that had not started");
                self.check_outs = self.check_outs.saturating_sub(1);
            }
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolReady
            | Event::ConnectionPoolCleared { .. }
            | Event::ConnectionPoolClosed
            | Event::ConnectionReady { .. }
            | Event::ConnectionCheckedIn { .. } => {}
        }
    }

    /// Says what does not add up.
    pub(super) fn close(mut self) -> Result<(), String> {
        self.must(self.waiting.is_empty(), "a request never had an outcome");
        self.must(self.sockets.is_empty(), "a socket was never closed");
        self.must(self.connections.is_empty(), "ConnectionClosed never came");
        self.must(self.check_outs == 0, "a check-out that started never ended");
        if self.mistakes.is_empty() {
            return Ok(());
        }
        let mistakes = self.mistakes.iter().map(|(what, times)| format!("{what} ({times} times)"));
        Err(format!("after the pool was closed: {}", mistakes.collect::<Vec<_>>().join("; ")))
    }

    fn must(&mut self, holds: bool, otherwise: &'static str) {
        if !holds {
            *self.mistakes.entry(otherwise).or_insert(0) += 1;
        }
    }
}
