//! What a pool is and has.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::Snapshot;

use super::PoolDriver;
use crate::builder::Measured;
use crate::connection::Connector;
use crate::error;
use crate::pool::leak::LeakDetector;
use crate::runtime::Runtime;
use crate::runtime::reentrancy::ReentrancyGuard;
use crate::runtime::signal::{Listener, Wakers};
use crate::trace::Traces;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// The server that the pool is for.
    // SX-07
    #[must_use]
    pub const fn address(&self) -> &Arc<ServerAddress> {
        &self.address
    }

    /// What makes the pool's connections.
    #[must_use]
    pub const fn connector(&self) -> &K {
        &self.connector
    }

    /// The runtime that the pool lives on.
    #[must_use]
    pub fn runtime(&self) -> R {
        self.runtime.runtime()
    }

    /// The state and the counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.lock().state.snapshot()
    }

    /// Whether this is a child of the process that the pool lives in, and the pool was not reset there.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.runtime.is_inherited()
    }

    /// Whether this thread performs the pool's actions or runs one of its subscribers: such a thread must
    /// not wait for the pool. Known only on runtimes whose [callers block](Runtime::CALLERS_BLOCK).
    #[must_use]
    pub fn is_performing_here(self: &Arc<Self>) -> bool {
        ReentrancyGuard::is_here(self)
    }

    /// Whether the pool is closed and nothing of it is left: no connection that is in use or being
    /// opened or closed, and no event to be told.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.lock().is_drained()
    }

    /// Whether the pool is closed, everything was checked in and every socket that was open is closed. What
    /// is left to be [drained](Self::is_drained) takes little time, unless a subscriber blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// How many events and reports were dropped because the subscribers did not return for so long that
    /// the queue was full: [`Builder::event_queue`](crate::builder::Builder::event_queue).
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.lock().pending.notifications.dropped()
    }

    /// Hears when [`is_empty`](Self::is_empty) and [`is_drained`](Self::is_drained) become true. To be made
    /// before they are looked at.
    #[must_use]
    pub fn drained(&self) -> Listener<'_, R::Mutex<Wakers>> {
        self.drained.listen()
    }

    /// Whether an inspector is connected.
    pub(in crate::pool) fn is_watched(&self) -> bool {
        self.watched_since.load(Ordering::Relaxed) != u64::MAX
    }

    pub(in crate::pool) const fn leak_detector(&self) -> &LeakDetector {
        &self.leak_detector
    }

    pub(in crate::pool) const fn traces(&self) -> &Traces {
        &self.traces
    }

    pub(in crate::pool) const fn measured(&self) -> &Measured {
        &self.measured
    }

    /// What the connector finds wrong with a connection. After a panic the connection is not trusted.
    pub(in crate::pool) fn fault(&self, connection: &K::Connection) -> Option<ConnectionError> {
        error::fault(|| self.connector.fault(connection))
    }
}
