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
        let oldest = self.lock().oldest_request();
        let now = self.now();
        oldest.map(|started| now.saturating_since(started)).unwrap_or_default()
    }
}
