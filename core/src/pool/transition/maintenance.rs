//! What a pool does for itself, and when: exact deadlines instead of a background thread's polling
//! (BG-01 … BG-12).

use crate::pool::action::Action;
use crate::pool::deadline::{Deadline, DeadlineReason};
use crate::pool::event::CloseReason;
use crate::pool::id::ConnId;
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::connections::Doing;
use crate::pool::state::lists::List;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// When to feed `Timer`, and why; `None` while nothing is due, ever. May change with every
    /// input.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let earlier = |next: Option<Deadline>, at: Option<Instant>, reason| match (next, at) {
            (Some(next), Some(at)) if at < next.at => Some(Deadline { at, reason }),
            (None, Some(at)) => Some(Deadline { at, reason }),
            (next, Some(_) | None) => next,
        };
        // Of two at the same time, the one that a run does first.
        let next = earlier(None, self.queue.next_deadline(), DeadlineReason::WaitQueueTimeout);
        let next = earlier(next, self.next_idle_out(), DeadlineReason::IdleTime);
        let next = earlier(next, self.next_end_of_life(), DeadlineReason::Lifetime);
        let next = earlier(next, self.next_population(), DeadlineReason::Populate);
        earlier(next, self.next_leak(), DeadlineReason::LeakDetection)
    }

    /// One run: does what is due by now and ends (BG-07). Requests that are out of time fail, idle
    /// connections and those at the end of their lives are closed, long holders are reported; the
    /// minimum is seen to after that, so that pruning comes before populating (BG-11).
    pub(in crate::pool) fn run_maintenance(&mut self, out: &mut impl ActionSink<S>) {
        let now = self.now;
        self.time_out_requests_now(out);
        while self.next_idle_out().is_some_and(|at| at <= now) {
            let Some(id) = self.connections.first(List::Available) else { return };
            self.close_available(id, CloseReason::Idle, None, out);
        }
        self.close_at_end_of_life(out);
        while self.next_leak().is_some_and(|at| at <= now) {
            let Some(id) = self.connections.first(List::InUse) else { return };
            self.report_leak(id, out);
        }
    }

    /// The one that has been available for longest goes first, strictly after its time (CO-10).
    fn next_idle_out(&self) -> Option<Instant> {
        let max_idle = self.settings.max_idle.filter(|_| self.runs_maintenance())?;
        let oldest = self.connections.known(self.connections.first(List::Available)?);
        let Doing::Available { since, .. } = oldest.doing else {
            unreachable!("an available connection")
        };
        Some(since.after(max_idle).after(1))
    }

    fn next_end_of_life(&self) -> Option<Instant> {
        self.connections.next_expiry().filter(|_| self.runs_maintenance())
    }

    fn close_at_end_of_life(&mut self, out: &mut impl ActionSink<S>) {
        if !self.runs_maintenance() {
            return;
        }
        let now = self.now;
        while let Some(id) = self.connections.pop_expired(|at| at <= now) {
            // One in use is closed when it is checked in.
            if self.is_available(id) {
                self.close_available(id, CloseReason::Idle, None, out);
            }
        }
    }

    fn next_population(&self) -> Option<Instant> {
        self.populate_after.filter(|_| self.wants_population())
    }

    fn next_leak(&self) -> Option<Instant> {
        let max_held = self.settings.max_held?;
        let oldest = self.connections.known(self.connections.first(List::InUse)?);
        let Doing::InUse { since, .. } = oldest.doing else { unreachable!("a connection in use") };
        Some(since.after(max_held))
    }

    fn report_leak(&mut self, id: ConnId, out: &mut impl ActionSink<S>) {
        let Doing::InUse { since, .. } = self.connections.known(id).doing else {
            unreachable!("a connection in use")
        };
        self.connections.set_overdue(id);
        out.act(Action::ReportLeak { id, held: self.now.saturating_since(since) });
    }

    fn is_available(&self, id: ConnId) -> bool {
        self.connections
            .get(id)
            .is_some_and(|connection| matches!(connection.doing, Doing::Available { .. }))
    }

    fn runs_maintenance(&self) -> bool {
        self.settings.pause_after_failure.is_some()
    }
}
