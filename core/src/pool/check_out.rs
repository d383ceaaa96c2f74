//! Checking out a connection (OUT-01 … OUT-25).

use alloc::sync::Arc;

use super::action::{Action, ActionSink, Shell};
use super::connections::{Doing, List};
use super::error::CheckOutError;
use super::event::{CloseReason, Event};
use super::id::{ConnId, WaiterId};
use super::input::Purpose;
use super::options::ReuseOrder;
use super::state::{PoolState, Status, emit};
use super::time::Instant;
use super::wait_queue::Request;

/// What can serve the oldest request (OUT-04 … OUT-06).
enum Source {
    Available(ConnId),
    NewConnection,
}

impl<S: Shell> PoolState<S> {
    /// CheckOutStarted comes before any look at the state (T-06). A pool that is closed or paused
    /// fails the request; otherwise it is served, if no older one waits (T-19), or waits itself.
    pub(super) fn check_out(
        &mut self,
        id: WaiterId,
        waiter: S::Waiter,
        deadline: Option<Instant>,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) {
        self.last_waiter = Some(id);
        emit(out, || Event::ConnectionCheckOutStarted);
        let request = Request {
            id,
            waiter,
            started: self.now,
            deadline: deadline.or_else(|| self.settings.max_wait.map(|max| self.now.after(max))),
            deadline_is_callers: deadline.is_some(),
            purpose,
        };
        match self.status {
            Status::Closed => self.fail(request, CheckOutError::PoolClosed, out),
            Status::Paused => self.fail_cleared(request, out),
            Status::Ready => self.serve_or_queue(request, out),
        }
    }

    fn serve_or_queue(&mut self, request: Request<S::Waiter>, out: &mut impl ActionSink<S>) {
        let out_of_time = request.deadline.is_some_and(|deadline| deadline <= self.now);
        let source = if self.queue.is_empty() { self.find_source(out) } else { None };
        match source {
            Some(Source::Available(id)) => self.check_out_available(id, request, out),
            Some(Source::NewConnection) | None if out_of_time => {
                self.fail_timed_out(request, false, out);
            }
            Some(Source::NewConnection) => self.establish_for(request, out),
            None => self.queue.push(request),
        }
    }

    /// Serves waiting requests, oldest first, until the oldest cannot be served (WQ-07). Runs after
    /// every input: whatever freed a connection, a place or a permit is a reason (T-21, T-27).
    pub(super) fn serve_requests(&mut self, out: &mut impl ActionSink<S>) {
        while !self.queue.is_empty() {
            let Some(source) = self.find_source(out) else { return };
            let Some(request) = self.queue.pop() else { return };
            match source {
                Source::Available(id) => self.check_out_available(id, request, out),
                Source::NewConnection => self.establish_for(request, out),
            }
        }
    }

    /// Walks the available connections for one that has not perished and closes those that have
    /// (OUT-05). If there is none, a new one may be created unless the total or the number of
    /// pending ones is at its limit (OUT-06, OUT-07).
    fn find_source(&mut self, out: &mut impl ActionSink<S>) -> Option<Source> {
        while let Some(id) = self.first_choice() {
            match self.perished(id) {
                Some(reason) => self.close_available(id, reason, None, out),
                None => return Some(Source::Available(id)),
            }
        }
        self.may_create().then_some(Source::NewConnection)
    }

    fn first_choice(&self) -> Option<ConnId> {
        match self.settings.reuse_order {
            ReuseOrder::MostRecentlyUsed => self.connections.last(List::Available),
            ReuseOrder::LeastRecentlyUsed => self.connections.first(List::Available),
        }
    }

    /// Stale before idle (KX-05). Only an available connection can be idle (CO-10).
    pub(super) fn perished(&self, id: ConnId) -> Option<CloseReason> {
        let connection = self.connections.known(id);
        if self.outdated(connection) {
            return Some(CloseReason::Stale);
        }
        let Doing::Available { since, .. } = connection.doing else { return None };
        let idled_out =
            self.settings.max_idle.is_some_and(|max_idle| self.now > since.after(max_idle));
        (idled_out || self.outlived(connection)).then_some(CloseReason::Idle)
    }

    /// Marks an available connection as in use and hands it over (OUT-15).
    fn check_out_available(
        &mut self,
        id: ConnId,
        request: Request<S::Waiter>,
        out: &mut impl ActionSink<S>,
    ) {
        let doing = self.start_use(id, request.purpose);
        let Doing::Available { conn, .. } = doing else { unreachable!("an available connection") };
        self.deliver(id, conn, request, out);
    }

    /// Starts a connection that belongs to the request. The request has left the queue, so that the
    /// next one can be looked at (WQ-13), and no longer times out (T-23).
    fn establish_for(&mut self, request: Request<S::Waiter>, out: &mut impl ActionSink<S>) {
        let deadline = if request.deadline_is_callers { request.deadline } else { None };
        let waiter_id = request.id;
        let id = self.create(Some(request), out);
        debug_assert!(self.owners.last().is_none_or(|(last, _)| *last < waiter_id), "FIFO");
        self.owners.push((waiter_id, id));
        out.act(Action::StartEstablish { id, deadline, background: false });
    }

    pub(super) fn start_use(&mut self, id: ConnId, purpose: Purpose) -> Doing<S> {
        self.purposes[purpose as usize] += 1;
        let since = self.now;
        self.connections.set(id, Doing::InUse { since, purpose, interrupted: false })
    }

    pub(super) fn deliver(
        &mut self,
        id: ConnId,
        conn: S::Conn,
        request: Request<S::Waiter>,
        out: &mut impl ActionSink<S>,
    ) {
        emit(out, || Event::ConnectionCheckedOut {
            connection_id: id.number(),
            duration: self.now.saturating_since(request.started),
        });
        out.act(Action::Deliver { waiter: request.waiter, outcome: Ok((id, conn)) });
    }

    /// The caller went away: its request leaves the queue, and a connection that was being made for
    /// it goes to whoever is next, or into the pool (SI-10, SI-11).
    pub(super) fn cancel_check_out(&mut self, id: WaiterId, out: &mut impl ActionSink<S>) {
        let waited = self.queue.remove(id);
        let left_queue = waited.is_some();
        let Some(request) = waited.or_else(|| self.disown(id)) else { return };
        if request.deadline_is_callers && request.deadline <= Some(self.now) {
            self.fail_timed_out(request, left_queue, out);
        } else {
            self.fail(request, CheckOutError::Cancelled, out);
        }
    }

    fn disown(&mut self, id: WaiterId) -> Option<Request<S::Waiter>> {
        let index = self.owners.binary_search_by_key(&id, |&(owner, _)| owner).ok()?;
        let (_, connection) = self.owners.remove(index);
        self.take_owner(connection)
    }

    /// Fails the requests whose time is up, earliest deadline first (WQ-05).
    pub(super) fn time_out_requests(
        &mut self,
        due: impl Fn(Instant) -> bool,
        out: &mut impl ActionSink<S>,
    ) {
        let mut snapshot = None;
        while let Some(request) = self.queue.pop_due(&due) {
            let snapshot = snapshot.get_or_insert_with(|| {
                let mut snapshot = self.snapshot();
                // The request is one of those that wait in vain.
                snapshot.waiting += 1;
                Arc::new(snapshot)
            });
            let error = CheckOutError::WaitQueueTimeout { snapshot: Arc::clone(snapshot) };
            self.fail(request, error, out);
        }
    }

    /// The snapshot shows the pool as it was before the request left the queue, if it was in there.
    fn fail_timed_out(
        &mut self,
        request: Request<S::Waiter>,
        left_queue: bool,
        out: &mut impl ActionSink<S>,
    ) {
        let mut snapshot = self.snapshot();
        snapshot.waiting += u64::from(left_queue);
        let snapshot = Arc::new(snapshot);
        self.fail(request, CheckOutError::WaitQueueTimeout { snapshot }, out);
    }

    /// Paused, cleared while it waited, or given a connection that became stale on the way.
    pub(super) fn fail_cleared(
        &mut self,
        request: Request<S::Waiter>,
        out: &mut impl ActionSink<S>,
    ) {
        let cause = self.cleared_by.clone();
        self.fail(request, CheckOutError::PoolCleared { cause }, out);
    }

    pub(super) fn fail(
        &self,
        request: Request<S::Waiter>,
        error: CheckOutError<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        emit(out, || Event::ConnectionCheckOutFailed {
            reason: error.reason(),
            error: error.clone(),
            duration: self.now.saturating_since(request.started),
        });
        out.act(Action::Deliver { waiter: request.waiter, outcome: Err(error) });
    }
}
