//! Retiring connections, when credentials changed.

use crate::pool::event::{CloseReason, PendingResponseFailure};
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::status::Status;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Ends the life of each connection: that of an available one now, that of one in use when it
    /// is checked in. One that is being established goes to the request that it was started for, if
    /// there is one, and is closed instead of becoming available. A request that waits for a late
    /// reply is served by another connection.
    pub(super) fn retire_connections(&mut self, out: &mut impl ActionSink<S>) {
        if self.status == Status::Closed {
            return;
        }
        let reason = |pool: &Self, id| pool.perished(id).unwrap_or(CloseReason::Idle);
        self.close_available_where(|pool, id| Some(reason(pool, id)), out);
        let all = |pool: &Self, id| Some((reason(pool, id), None));
        self.abort_drains_where(all, PendingResponseFailure::Error, None, out);
        self.connections.expire_all(self.now);
    }
}
