//! Retiring connections, when credentials changed.

use crate::pool::event::{CloseReason, PendingResponseFailure};
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::lists::List;
use crate::pool::status::Status;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Ends the life of each connection: that of an available one now, that of one in use when it
    /// is checked in. One that is being established might be refused with the credentials of before: it
    /// is closed, and the request that it was started for is served by a new one, as is one that waits
    /// for a late reply. One that a clear has made stale ends as it would have.
    pub(super) fn retire_connections(&mut self, out: &mut impl ActionSink<S>) {
        if self.status == Status::Closed {
            return;
        }
        let reason = |pool: &Self, id| pool.perished(id).unwrap_or(CloseReason::Idle);
        self.close_available_where(|pool, id| Some(reason(pool, id)), out);
        let all = |pool: &Self, id| Some((reason(pool, id), None));
        self.abort_drains_where(all, PendingResponseFailure::Error, None, out);
        self.connections.expire_all(self.now);
        if self.status == Status::Ready {
            self.establish_anew(out);
        }
    }

    fn establish_anew(&mut self, out: &mut impl ActionSink<S>) {
        let mut next = self.connections.first(List::Pending);
        while let Some(id) = next {
            next = self.connections.next(id);
            if self.has_old_generation(self.connections.known(id)) {
                continue;
            }
            if let Some(request) = self.abort_establishment(id, CloseReason::Idle, None, out) {
                self.put_back(request);
            }
        }
    }
}
