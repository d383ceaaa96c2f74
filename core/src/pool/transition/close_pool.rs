//! The end of a pool.

use crate::pool::error::CheckOutError;
use crate::pool::event::{CloseReason, Event, PendingResponseFailure};
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::status::Status;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Closed for good; a second time it means nothing. Requests fail in the order in which they
    /// came, so those that own a pending connection, which is aborted, go before those that wait, and
    /// between them go those that wait for the end of a drain.
    /// Then available connections are closed, and PoolClosed comes after all of that. Connections
    /// in use are closed when they are checked in.
    // WQ-12, PS-08, PS-17, EV-13, LG-34, PCL-01, PCL-04, PCL-05, PCL-07, PCL-09
    // SI-04, SI-05, SI-06, T-48, T-49, T-08, PCL-02
    pub(super) fn close(&mut self, out: &mut impl ActionSink<S>) {
        if self.status == Status::Closed {
            return;
        }
        self.status = Status::Closed;
        self.populate_after = None;
        let reason = |pool: &Self, id| pool.perished(id).unwrap_or(CloseReason::PoolClosed);
        self.abort_pending(reason, None, &CheckOutError::PoolClosed, out);
        let all = |pool: &Self, id| Some((reason(pool, id), None));
        let outcome = CheckOutError::PoolClosed;
        self.abort_drains_where(all, PendingResponseFailure::Error, Some(&outcome), out);
        self.fail_waiting(&CheckOutError::PoolClosed, out);
        self.close_available_where(|pool, id| Some(reason(pool, id)), out);
        emit(out, || Event::ConnectionPoolClosed);
    }
}
