//! The outcome of a request: a connection or an error.

use alloc::sync::Arc;

use crate::pool::action::Action;
use crate::pool::error::CheckOutError;
use crate::pool::event::{Elapsed, Event};
use crate::pool::id::{ConnId, WaiterId};
use crate::pool::sink::{ActionSink, emit};
use crate::pool::snapshot::Snapshot;
use crate::pool::state::PoolState;
use crate::pool::state::request::Request;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// So many requests fail as quickly one by one.
    const FEW: usize = 64;

    // EV-19, OUT-16, DU-03, DU-05
    #[inline(always)]
    pub(super) fn deliver(
        &mut self,
        (id, conn): (ConnId, S::Conn),
        request: WaiterId,
        waiter: S::Waiter,
        started: Instant,
        out: &mut impl ActionSink<S>,
    ) {
        emit(out, || Event::ConnectionCheckedOut {
            connection_id: id.number(),
            request,
            duration: Elapsed::between(started, self.now),
        });
        out.act(Action::Deliver { waiter, outcome: Ok((id, conn)) });
    }

    // EV-18, DU-04, DU-05
    pub(super) fn fail(
        &self,
        request: Request<S::Waiter>,
        error: CheckOutError<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        emit(out, || Event::ConnectionCheckOutFailed {
            request: request.id,
            error: error.clone(),
            duration: Elapsed::between(request.started, self.now),
        });
        out.act(Action::Deliver { waiter: request.waiter, outcome: Err(error) });
    }

    /// Paused, cleared while it waited, or given a connection that became stale on the way.
    pub(super) fn fail_cleared(
        &self,
        request: Request<S::Waiter>,
        cause: Option<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        self.fail(request, CheckOutError::PoolCleared { cause }, out);
    }

    /// The snapshot is of the pool in which the request waited.
    pub(super) fn fail_timed_out(
        &self,
        request: Request<S::Waiter>,
        snapshot: Snapshot,
        out: &mut impl ActionSink<S>,
    ) {
        let snapshot = Arc::new(snapshot);
        self.fail(request, CheckOutError::WaitQueueTimeout { snapshot }, out);
    }

    /// Empties the wait queue, oldest first. Many requests go as a whole; few are not worth the memory of their queue.
    // WQ-10, CLR-08
    pub(super) fn fail_waiting(
        &mut self,
        error: &CheckOutError<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        if self.queue.len() > Self::FEW && !out.wants_events() {
            return out.fail_all(self.queue.take_all(), error);
        }
        while let Some(request) = self.queue.pop() {
            self.fail(request, error.clone(), out);
        }
    }

    /// Fails the requests that have waited for longer than they may, earliest deadline first; then those that are
    /// to be shed.
    // WQ-05, WQ-09, OUT-10, DU-06
    #[inline(never)]
    pub(super) fn time_out_requests(&mut self, out: &mut impl ActionSink<S>) {
        let now = self.now;
        if self.settings.codel.is_none() {
            return self.time_out_requests_if(|deadline| deadline < now, out);
        }
        self.note_delay();
        self.time_out_requests_if(|deadline| deadline < now, out);
        self.note_delay();
        if self.next_shedding().is_some_and(|due| due < now) {
            self.shed(out);
        }
    }

    /// The same for those that may wait no longer: their time ends with this instant, after
    /// everything else that happened in it.
    // SI-16
    pub(super) fn time_out_requests_now(&mut self, out: &mut impl ActionSink<S>) {
        let now = self.now;
        self.time_out_requests_if(|deadline| deadline <= now, out);
    }

    // CS-18
    fn time_out_requests_if(
        &mut self,
        due: impl Fn(Instant) -> bool,
        out: &mut impl ActionSink<S>,
    ) {
        if !self.queue.next_deadline().is_some_and(&due) {
            return;
        }
        // Each is told how the pool was before any of them left.
        let snapshot = Arc::new(self.snapshot());
        while let Some(request) = self.queue.pop_due(&due) {
            let snapshot = Arc::clone(&snapshot);
            self.fail(request, CheckOutError::WaitQueueTimeout { snapshot }, out);
        }
    }
}
