//! The end of a pool, and the end of what a child process inherited (PCL-01 … PCL-09, FK-01,
//! FK-04).

use super::action::{ActionSink, PoolTypes};
use super::error::CheckOutError;
use super::event::{CloseReason, Event};
use super::lists::List;
use super::state::{PoolState, Status, emit};

impl<S: PoolTypes> PoolState<S> {
    /// Closed for good; a second time it means nothing (SI-04). Requests fail in the order in which
    /// they came, so those that own a pending connection, which is aborted, go before those that
    /// wait (SI-05, SI-06, T-48, T-49). Then available connections are closed, and PoolClosed comes
    /// after all of that (T-08). Connections in use are closed when they are checked in (PCL-02).
    pub(super) fn close(&mut self, out: &mut impl ActionSink<S>) {
        if self.status == Status::Closed {
            return;
        }
        self.status = Status::Closed;
        self.populate_after = None;
        let reason = |pool: &Self, id| pool.perished(id).unwrap_or(CloseReason::PoolClosed);
        self.abort_pending(reason, None, &CheckOutError::PoolClosed, out);
        self.fail_waiting(&CheckOutError::PoolClosed, out);
        self.close_available_where(|pool, id| Some(reason(pool, id)), out);
        emit(out, || Event::ConnectionPoolClosed);
    }

    /// In a child process nothing that was inherited may be used: a new generation starts with
    /// nothing in it, and the pool stays as ready as it was, because no monitor would make it ready
    /// again (T-74). Everything is reported as closed, so that the sum of events stays true;
    /// connections in use may yet be checked in, which no longer counts.
    pub(super) fn reset_after_fork(&mut self, out: &mut impl ActionSink<S>) {
        self.generation += 1;
        self.populate_after = None;
        self.inherited = self.connections.last_number();
        let outcome = CheckOutError::PoolCleared { cause: self.cleared_by.clone() };
        self.abort_pending(|_, _| CloseReason::Stale, None, &outcome, out);
        self.fail_waiting(&outcome, out);
        self.close_available_where(|_, _| Some(CloseReason::Stale), out);
        for list in [List::Overdue, List::InUse] {
            while let Some(id) = self.connections.first(list) {
                self.remove(id, CloseReason::Stale, None, out);
            }
        }
    }
}
