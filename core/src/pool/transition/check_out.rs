//! Checking out a connection.

use alloc::sync::Arc;

use crate::pool::action::Action;
use crate::pool::error::CheckOutError;
use crate::pool::event::{Event, PendingResponseFailure};
use crate::pool::id::{ConnId, WaiterId};
use crate::pool::input::Purpose;
use crate::pool::options::ReuseOrder;
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::state::lists::List;
use crate::pool::state::request::Request;
use crate::pool::status::Status;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

/// What can serve the oldest request.
enum Source {
    /// At once.
    Available(ConnId),
    /// Once the shell has done its part.
    Later(Later),
}

/// What can serve a request once the shell has done its part.
#[derive(Clone, Copy)]
enum Later {
    /// A connection that is pending a response, or draining without an owner.
    PendingResponse(ConnId),
    NewConnection,
}

impl<S: PoolTypes> PoolState<S> {
    /// CheckOutStarted comes before any look at the state. A pool that is closed or paused fails
    /// the request; otherwise it is served, if no older one waits, or waits itself, if the queue has room.
    // WQ-01, WQ-04, PS-10, EV-17, PCL-03, OUT-02, OUT-03, OUT-11, OUT-16, OUT-18, CLR-13, LN-03, T-06, T-19
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
        emit(out, || Event::ConnectionCheckOutStarted { request: id });
        let is_first = self.status == Status::Ready && self.queue.is_empty();
        let source = if is_first { self.find_source(deadline, out) } else { None };
        let started = self.now;
        // Most check-outs end here, without the cost of building a request.
        if let Some(Source::Available(conn)) = source {
            return self.check_out_available(conn, id, waiter, started, purpose, out);
        }
        let limit = deadline.or_else(|| self.settings.max_wait.map(|max| started.after(max)));
        let request = Request::new(id, waiter, started, (limit, deadline.is_some()), purpose);
        match self.status {
            Status::Closed => self.fail(request, CheckOutError::PoolClosed, out),
            Status::Paused => self.fail_cleared(request, self.cleared_by.clone(), out),
            Status::Ready if request.is_due(started) => {
                self.fail_timed_out(request, self.snapshot(), out);
            }
            Status::Ready => match source {
                Some(Source::Later(later)) => self.serve_later(request, later, out),
                Some(Source::Available(_)) | None => self.enqueue(request, out),
            },
        }
    }

    /// The request waits, unless as many wait as may.
    // Apart, so that check-outs that are served at once stay small.
    #[inline(never)]
    fn enqueue(&mut self, request: Request<S::Waiter>, out: &mut impl ActionSink<S>) {
        if self.is_queue_full() {
            let max = self.options.max_wait_queue_size.unwrap_or(0);
            return self.fail(request, CheckOutError::WaitQueueFull { max }, out);
        }
        self.queue.push(request);
    }

    #[inline]
    pub(super) const fn is_queue_full(&self) -> bool {
        self.queue.len() >= self.settings.max_waiting
    }

    /// Serves waiting requests, oldest first, until the oldest cannot be served. Runs after every
    /// input: any of them may free a connection, a place or a permit.
    // WQ-03, WQ-07, OUT-09, OUT-22, T-21, T-27
    #[inline(never)]
    pub(super) fn serve_requests(&mut self, out: &mut impl ActionSink<S>) {
        while !self.queue.is_empty() {
            let Some(source) = self.find_source(None, out) else { break };
            let Some(request) = self.queue.pop() else { break };
            match source {
                Source::Available(id) => {
                    let Request { id: request, waiter, started, purpose, .. } = request;
                    self.check_out_available(id, request, waiter, started, purpose, out);
                }
                Source::Later(later) => self.serve_later(request, later, out),
            }
        }
        self.note_delay();
        self.check_promises();
    }

    /// Walks the available connections for one that has not perished and closes those that have. If
    /// there is none, one that is pending a response is taken. If there is none either, a new one may
    /// be created unless the total or the number of pending ones is at its limit. A request whose
    /// `deadline` is now, or that is the oldest in the queue and may wait no longer, does not take one
    /// that is pending a response.
    // OUT-04, OUT-05, OUT-06, OUT-07, CLR-04, LR-02
    #[inline(always)]
    fn find_source(
        &mut self,
        deadline: Option<Instant>,
        out: &mut impl ActionSink<S>,
    ) -> Option<Source> {
        while let Some(id) = self.first_choice() {
            match self.perished(id) {
                Some(reason) => self.close_available(id, reason, None, out),
                None => return Some(Source::Available(id)),
            }
        }
        if self.settings.pending_response {
            let is_due = deadline.is_some_and(|deadline| deadline <= self.now);
            if !is_due
                && !self.queue.is_oldest_due(self.now)
                && let Some(id) = self.find_pending_response(out)
            {
                return Some(Source::Later(Later::PendingResponse(id)));
            }
        }
        self.may_establish().then_some(Source::Later(Later::NewConnection))
    }

    #[inline(always)]
    fn serve_later(
        &mut self,
        request: Request<S::Waiter>,
        later: Later,
        out: &mut impl ActionSink<S>,
    ) {
        match later {
            Later::PendingResponse(id) => self.drain_for(request, id, out),
            Later::NewConnection => self.establish_for(request, out),
        }
    }

    // AV-04
    #[inline]
    pub(in crate::pool) fn first_choice(&self) -> Option<ConnId> {
        match self.settings.reuse_order {
            ReuseOrder::MostRecentlyUsed => self.connections.last(List::Available),
            ReuseOrder::LeastRecentlyUsed => self.connections.first(List::Available),
        }
    }

    /// Marks an available connection as in use and hands it over.
    // OUT-15
    #[inline(always)]
    fn check_out_available(
        &mut self,
        id: ConnId,
        request: WaiterId,
        waiter: S::Waiter,
        started: Instant,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) {
        let conn = self.connections.check_out(id, self.now, purpose);
        self.deliver((id, conn), request, waiter, started, out);
    }

    /// Starts a connection that belongs to the request. The request has left the queue, so that the
    /// next one can be looked at, and is limited by nothing but its caller's own deadline. That ends its wait, and not the
    /// establishment.
    // OP-08, WQ-13, ES-04, OUT-23, LN-04, T-23
    #[inline(never)]
    fn establish_for(&mut self, request: Request<S::Waiter>, out: &mut impl ActionSink<S>) {
        let deadline = request.callers_deadline();
        let owner = Some(request.id);
        let id = self.create(owner, out);
        self.add_owner(request, id);
        out.act(Action::StartEstablish { id, owner, deadline, generation: self.generation });
    }

    /// The request owns a connection. It is younger than all other owners, unless a drain failed and
    /// it is served again.
    pub(super) fn add_owner(&mut self, request: Request<S::Waiter>, id: ConnId) {
        let place = self.owners.partition_point(|(other, _)| other.id < request.id);
        let is_only = self.owners.get(place).is_none_or(|(next, _)| next.id > request.id);
        assert!(is_only, "a request owns one connection");
        self.owners.insert(place, (request, id));
        self.schedule_owners();
    }

    /// Fails the requests whose callers wait no longer for the connection that is established for them. It goes on, for the
    /// request that comes next.
    // CS-03, CS-05, SI-11
    pub(super) fn time_out_owners(
        &mut self,
        due: impl Fn(Instant) -> bool,
        out: &mut impl ActionSink<S>,
    ) {
        let mut snapshot = None;
        while self.owners_due.is_some_and(&due) {
            let is_due = |(request, id): &(Request<S::Waiter>, ConnId)| {
                let limit = request.callers_deadline();
                limit.is_some_and(&due) && self.connections.list_of(*id) == List::Pending
            };
            let Some(id) = self.owners.iter().find(|it| is_due(it)).map(|(_, id)| *id) else {
                return;
            };
            // Each is told how the pool was before any of them left.
            let snapshot = Arc::clone(snapshot.get_or_insert_with(|| Arc::new(self.snapshot())));
            if let Some(request) = self.take_owner(id) {
                self.fail(request, CheckOutError::WaitQueueTimeout { snapshot }, out);
            }
        }
    }

    /// For a trace before version 3.
    #[cfg(feature = "protocol")]
    pub(crate) fn follow_old_rules(&mut self) {
        self.old_rules = true;
        self.schedule_owners();
    }

    /// Keeps up when the first of them is due.
    pub(in crate::pool) fn schedule_owners(&mut self) {
        self.owners_due = self.next_owner_due();
    }

    /// Recounts it.
    pub(in crate::pool) fn next_owner_due(&self) -> Option<Instant> {
        if self.old_rules {
            return None;
        }
        let is_pending = |id: &ConnId| self.connections.list_of(*id) == List::Pending;
        let pending = self.owners.iter().filter(|(_, id)| is_pending(id));
        pending.filter_map(|(request, _)| request.callers_deadline()).min()
    }

    /// The caller cancelled: its request leaves the queue, and a connection that was being made or
    /// drained for it goes to the next request, or into the pool.
    // SI-10, SI-11
    pub(super) fn cancel_check_out(&mut self, id: WaiterId, out: &mut impl ActionSink<S>) {
        let snapshot = self.snapshot();
        let queued = self.queue.remove(id);
        let Some(request) = queued.or_else(|| self.disown(id, out)) else { return };
        if request.is_due(self.now) {
            self.fail_timed_out(request, snapshot, out);
        } else {
            self.fail(request, CheckOutError::Cancelled, out);
        }
    }

    /// Takes a request whose caller cancelled from the pending or draining connection that it owns.
    fn disown(&mut self, id: WaiterId, out: &mut impl ActionSink<S>) -> Option<Request<S::Waiter>> {
        let index = self.owners.binary_search_by_key(&id, |(request, _)| request.id).ok()?;
        let (ref request, connection) = self.owners[index];
        if self.connections.list_of(connection) == List::Pending {
            return self.take_owner(connection).map(Request::while_established);
        }
        let is_due = request.is_due(self.now);
        let timeout = PendingResponseFailure::Timeout;
        let reason = if is_due { timeout } else { PendingResponseFailure::Error };
        self.take_drain_owner(connection, reason, out)
    }
}
