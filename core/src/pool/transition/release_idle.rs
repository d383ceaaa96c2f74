//! Giving connections back that are not in use, before the process is frozen.

use crate::pool::event::{CloseReason, PendingResponseFailure};
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::connections::ConnState;
use crate::pool::state::lists::List;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Closes each connection that no request uses or waits for: those that are available or pending a response, and
    /// those that are established or drained for no request. The minimum pauses, or it would be established before the
    /// process is frozen.
    pub(super) fn release_idle(&mut self, out: &mut impl ActionSink<S>) {
        self.pause_population();
        let reason = |pool: &Self, id| pool.perished(id).unwrap_or(CloseReason::Idle);
        self.close_available_where(|pool, id| Some(reason(pool, id)), out);
        let unowned = |pool: &Self, id| {
            let is_unowned =
                matches!(pool.connections.known(id).state, ConnState::Draining { owner: None });
            is_unowned.then(|| (reason(pool, id), None))
        };
        self.abort_drains_where(unowned, PendingResponseFailure::Error, None, out);
        let mut next = self.connections.first(List::Pending);
        while let Some(id) = next {
            next = self.connections.next(id);
            if let ConnState::Pending { owner: None, .. } = self.connections.known(id).state {
                let stale = self.has_old_generation(self.connections.known(id));
                let reason = if stale { CloseReason::Stale } else { CloseReason::Idle };
                self.abort_establishment(id, reason, None, out);
            }
        }
    }
}
