use std::fmt;

use cenote_core::pool::Snapshot;

/// How many connections and requests a pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections: pending, available and in use.
    pub total: u64,
    /// Connections that can be checked out.
    pub available: u64,
    /// Connections that are being established.
    pub pending: u64,
    /// Connections that are checked out.
    pub in_use: u64,
    /// Check-outs that wait.
    pub waiting: u64,
}

impl From<Snapshot> for Counts {
    fn from(snapshot: Snapshot) -> Self {
        Self {
            total: snapshot.total.into(),
            available: snapshot.available.into(),
            pending: snapshot.pending.into(),
            in_use: snapshot.in_use.into(),
            waiting: snapshot.waiting,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, available, pending, in_use, waiting } = self;
        write!(
            f,
            "{total} connections, {available} available, {pending} pending, {in_use} in use, \
             {waiting} check-outs waiting"
        )
    }
}
