use std::time::Duration;

use cenote_core::pool::Snapshot;

use super::driver::PoolDriver;
use crate::connection::Connector;
use crate::metrics::Observed;
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> Observed for PoolDriver<R, K> {
    fn snapshot(&self) -> Snapshot {
        self.snapshot()
    }

    fn oldest_wait(&self) -> Duration {
        let inner = self.lock();
        // Requests that own a connection come first, the oldest of them and of the others first.
        let owners = usize::try_from(inner.state.snapshot().owners).unwrap_or(usize::MAX);
        let mut waiters = inner.state.waiters().map(|waiter| waiter.started);
        let first = waiters.next();
        let second = owners.checked_sub(1).and_then(|rest| waiters.nth(rest));
        let now = self.now();
        let oldest = first.into_iter().chain(second).min();
        oldest.map(|started| now.saturating_since(started)).unwrap_or_default()
    }
}
