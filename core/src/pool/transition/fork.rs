//! The end of what a child process inherited.

use crate::pool::error::CheckOutError;
use crate::pool::event::{CloseReason, PendingResponseFailure};
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::lists::List;
use crate::pool::state::pacing::Pacing;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// In a child process nothing that was inherited may be used: a new generation starts with
    /// nothing in it, and the pool stays as ready as it was, because no monitor would make it ready
    /// again. Everything is reported as closed, so that the sum of events stays true; connections
    /// in use may yet be checked in, which no longer counts.
    // PS-04, FK-01, FK-04, T-74
    pub(super) fn reset_after_fork(&mut self, out: &mut impl ActionSink<S>) {
        self.generation += 1;
        self.populate_after = None;
        self.pacing = Pacing::default();
        self.inherited = self.connections.last_number();
        let outcome = CheckOutError::PoolCleared { cause: self.cleared_by.clone() };
        self.abort_pending(|_, _| CloseReason::Stale, None, &outcome, out);
        let all = |_: &Self, _| Some((CloseReason::Stale, None));
        self.abort_drains_where(all, PendingResponseFailure::Error, Some(&outcome), out);
        self.fail_waiting(&outcome, out);
        self.close_available_where(|_, _| Some(CloseReason::Stale), out);
        for list in [List::Overdue, List::InUse] {
            while let Some(id) = self.connections.first(list) {
                self.remove(id, CloseReason::Stale, None, out);
            }
        }
    }
}
