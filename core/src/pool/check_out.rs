//! Checking out a connection (OUT-01 … OUT-23).

use alloc::sync::Arc;

use super::action::{Action, ActionSink, PoolTypes};
use super::connections::Doing;
use super::error::CheckOutError;
use super::event::{CloseReason, Event};
use super::id::{ConnId, WaiterId};
use super::input::Purpose;
use super::lists::List;
use super::options::ReuseOrder;
use super::snapshot::Snapshot;
use super::state::{PoolState, Status, emit};
use super::time::Instant;
use super::wait_queue::Request;

/// What can serve the oldest request (OUT-04 … OUT-06).
enum Source {
    Available(ConnId),
    NewConnection,
}

/// What is left of a request that has its connection.
pub(super) struct Served<W> {
    waiter: W,
    started: Instant,
    purpose: Purpose,
}

impl<W> From<Request<W>> for Served<W> {
    fn from(request: Request<W>) -> Self {
        let Request { waiter, started, purpose, .. } = request;
        Self { waiter, started, purpose }
    }
}

impl<S: PoolTypes> PoolState<S> {
    /// CheckOutStarted comes before any look at the state (T-06). A pool that is closed or paused
    /// fails the request; otherwise it is served, if no older one waits (T-19), or waits itself.
    #[inline(always)]
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
        let is_first = self.status == Status::Ready && self.queue.is_empty();
        let source = if is_first { self.find_source(out) } else { None };
        let started = self.now;
        // Before there is a request to speak of, which is what most check-outs are spared.
        if let Some(Source::Available(id)) = source {
            return self.check_out_available(id, Served { waiter, started, purpose }, out);
        }
        let request = Request {
            id,
            waiter,
            started,
            deadline: deadline.or_else(|| self.settings.max_wait.map(|max| started.after(max))),
            deadline_is_callers: deadline.is_some(),
            purpose,
        };
        match self.status {
            Status::Closed => self.fail(request, CheckOutError::PoolClosed, out),
            Status::Paused => self.fail_cleared(request, self.cleared_by.clone(), out),
            Status::Ready if request.is_due(started) => {
                self.fail_timed_out(request, self.snapshot(), out);
            }
            Status::Ready if source.is_some() => self.establish_for(request, out),
            Status::Ready => self.queue.push(request),
        }
    }

    /// Serves waiting requests, oldest first, until the oldest cannot be served (WQ-07). Runs after
    /// every input: whatever freed a connection, a place or a permit is a reason (T-21, T-27).
    #[inline(never)]
    pub(super) fn serve_requests(&mut self, out: &mut impl ActionSink<S>) {
        while !self.queue.is_empty() {
            let Some(source) = self.find_source(out) else { break };
            let Some(request) = self.queue.pop() else { break };
            match source {
                Source::Available(id) => self.check_out_available(id, request.into(), out),
                Source::NewConnection => self.establish_for(request, out),
            }
        }
        self.check_promises();
    }

    /// Walks the available connections for one that has not perished and closes those that have
    /// (OUT-05). If there is none, a new one may be created unless the total or the number of
    /// pending ones is at its limit (OUT-06, OUT-07).
    #[inline(always)]
    fn find_source(&mut self, out: &mut impl ActionSink<S>) -> Option<Source> {
        while let Some(id) = self.first_choice() {
            match self.perished(id) {
                Some(reason) => self.close_available(id, reason, None, out),
                None => return Some(Source::Available(id)),
            }
        }
        self.may_create().then_some(Source::NewConnection)
    }

    #[inline]
    fn first_choice(&self) -> Option<ConnId> {
        match self.settings.reuse_order {
            ReuseOrder::MostRecentlyUsed => self.connections.last(List::Available),
            ReuseOrder::LeastRecentlyUsed => self.connections.first(List::Available),
        }
    }

    /// Stale before idle (KX-05). Only an available connection can be idle (CO-10).
    #[inline]
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
    #[inline(always)]
    fn check_out_available(
        &mut self,
        id: ConnId,
        request: Served<S::Waiter>,
        out: &mut impl ActionSink<S>,
    ) {
        let doing = self.start_use(id, request.purpose);
        let Doing::Available { conn, .. } = doing else { unreachable!("an available connection") };
        self.deliver(id, conn, request, out);
    }

    /// Starts a connection that belongs to the request. The request has left the queue, so that the
    /// next one can be looked at (WQ-13), and is limited by nothing but its caller's own deadline from
    /// now on (T-23).
    #[inline(never)]
    fn establish_for(&mut self, mut request: Request<S::Waiter>, out: &mut impl ActionSink<S>) {
        let deadline = request.deadline.filter(|_| request.deadline_is_callers);
        request.deadline = deadline;
        let id = self.create(Some(request.id), out);
        assert!(self.owners.last().is_none_or(|(last, _)| last.id < request.id), "FIFO");
        self.owners.push((request, id));
        out.act(Action::StartEstablish { id, deadline, background: false });
    }

    #[inline]
    pub(super) fn start_use(&mut self, id: ConnId, purpose: Purpose) -> Doing<S::Conn> {
        self.purposes[purpose as usize] += 1;
        let since = self.now;
        self.connections.set(id, Doing::InUse { since, purpose, interrupted: false })
    }

    #[inline(always)]
    pub(super) fn deliver(
        &mut self,
        id: ConnId,
        conn: S::Conn,
        request: Served<S::Waiter>,
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
        let snapshot = self.snapshot();
        let Some(request) = self.queue.remove(id).or_else(|| self.disown(id)) else { return };
        if request.is_due(self.now) {
            self.fail_timed_out(request, snapshot, out);
        } else {
            self.fail(request, CheckOutError::Cancelled, out);
        }
    }

    /// Takes a request from the pending connection that it owns.
    fn disown(&mut self, id: WaiterId) -> Option<Request<S::Waiter>> {
        let index = self.owners.binary_search_by_key(&id, |(request, _)| request.id).ok()?;
        let (_, connection) = self.owners[index];
        self.take_owner(connection)
    }

    /// Fails the requests that have waited for longer than they may, earliest deadline first
    /// (WQ-05).
    #[inline(never)]
    pub(super) fn time_out_requests(&mut self, out: &mut impl ActionSink<S>) {
        let now = self.now;
        self.time_out_requests_if(|deadline| deadline < now, out);
    }

    /// The same for those that may wait no longer: their time ends with this instant, after
    /// everything else that happened in it (SI-16).
    pub(super) fn time_out_requests_now(&mut self, out: &mut impl ActionSink<S>) {
        let now = self.now;
        self.time_out_requests_if(|deadline| deadline <= now, out);
    }

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

    /// The snapshot is of the pool in which the request waited.
    fn fail_timed_out(
        &self,
        request: Request<S::Waiter>,
        snapshot: Snapshot,
        out: &mut impl ActionSink<S>,
    ) {
        let snapshot = Arc::new(snapshot);
        self.fail(request, CheckOutError::WaitQueueTimeout { snapshot }, out);
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

    pub(super) fn fail(
        &self,
        request: Request<S::Waiter>,
        error: CheckOutError<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        emit(out, || Event::ConnectionCheckOutFailed {
            error: error.clone(),
            duration: self.now.saturating_since(request.started),
        });
        out.act(Action::Deliver { waiter: request.waiter, outcome: Err(error) });
    }
}
