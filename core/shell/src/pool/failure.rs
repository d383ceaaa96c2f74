//! Failures of connections, shown to the failure handler before the pool processes them.

use std::sync::Arc;

use cenote_core::error::ConnectionError;
use cenote_core::pool::ConnId;
use cenote_core::sdam::PoolVerdict;

use super::driver::PoolDriver;
use crate::connection::Connector;
use crate::failure::{ConnectionStatus, Failure};
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Calls the failure handler, if there is one, which must not wait for this pool. Never under the lock.
    pub(super) fn show_failure(self: &Arc<Self>, id: ConnId, error: &ConnectionError) {
        let Some(handler) = &self.failure_handler else { return };
        let _here = self.enter();
        let status = || self.connection_status(id);
        let clear = |verdict| self.clear_for(id, error, verdict);
        let record = |step| self.record_stage(id, error.stage(), Some(step));
        Failure::new(self.address(), id, error, &status, &clear, &record).show(handler);
    }

    pub(super) fn connection_status(&self, id: ConnId) -> ConnectionStatus {
        ConnectionStatus::of(&self.lock().state, id)
    }

    // SD-31
    fn clear_for(
        self: &Arc<Self>,
        id: ConnId,
        cause: &ConnectionError,
        verdict: PoolVerdict,
    ) -> bool {
        let inner = self.lock();
        let standing = ConnectionStatus::of(&inner.state, id);
        if standing.is_stale {
            return false;
        }
        let Some(input) = verdict.into_input(cause.clone(), standing.service) else {
            return false;
        };
        self.feed_locked(inner, input);
        true
    }
}
