//! What a pool with adaptive establishment, or with a backoff after overload, remembers of how long things take.

use crate::pool::time::Instant;

/// What a pool with [`adaptive_connecting`](super::super::PoolOptions::adaptive_connecting) or
/// [`overload_backoff`](super::super::PoolOptions::overload_backoff) remembers of establishing and using connections.
/// Empty without these options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// How long the last establishment that succeeded took, in nanoseconds; `None` if none has yet.
    pub establishment: Option<u64>,
    /// How long connections are used while requests wait, in nanoseconds: each use counts for a quarter, those before
    /// it for the rest. `None` if no use has ended yet.
    pub use_time: Option<u64>,
    /// When a connection was last established, or checked in while requests waited.
    pub gained: Option<Instant>,
    /// No connection is created before.
    pub not_before: Option<Instant>,
    /// How many establishments in a row have failed because the server may be overloaded; those that fail while the
    /// pool backs off belong to the one before.
    pub overloads: u32,
}

impl Pacing {
    /// Whether connections wait for their time.
    pub(in crate::pool) fn waits(&self, now: Instant) -> bool {
        self.not_before.is_some_and(|at| now < at)
    }

    pub(in crate::pool) fn established(&mut self, took: u64, now: Instant) {
        self.establishment = Some(took);
        self.gained = Some(now);
    }

    pub(in crate::pool) fn used(&mut self, held: u64, now: Instant) {
        self.use_time = Some(self.use_time.map_or(held, |known| known - known / 4 + held / 4));
        self.gained = Some(now);
    }

    /// Forgets that establishments failed.
    pub(in crate::pool) const fn forgive(&mut self) {
        self.overloads = 0;
        self.not_before = None;
    }
}
