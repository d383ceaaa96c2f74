//! Checking out a connection.

use crate::pool::action::Action;
use crate::pool::error::CheckOutError;
use crate::pool::event::Event;
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
    Available(ConnId),
    NewConnection,
}

impl<S: PoolTypes> PoolState<S> {
    /// CheckOutStarted comes before any look at the state. A pool that is closed or paused fails
    /// the request; otherwise it is served, if no older one waits, or waits itself.
    // T-06, T-19
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
        // Most check-outs end here, without the cost of building a request.
        if let Some(Source::Available(id)) = source {
            return self.check_out_available(id, waiter, started, purpose, out);
        }
        let limit = deadline.or_else(|| self.settings.max_wait.map(|max| started.after(max)));
        let request = Request::new(id, waiter, started, (limit, deadline.is_some()), purpose);
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

    /// Serves waiting requests, oldest first, until the oldest cannot be served. Runs after every
    /// input: any of them may free a connection, a place or a permit.
    // WQ-07, T-21, T-27
    #[inline(never)]
    pub(super) fn serve_requests(&mut self, out: &mut impl ActionSink<S>) {
        while !self.queue.is_empty() {
            let Some(source) = self.find_source(out) else { break };
            let Some(request) = self.queue.pop() else { break };
            match source {
                Source::Available(id) => {
                    let Request { waiter, started, purpose, .. } = request;
                    self.check_out_available(id, waiter, started, purpose, out);
                }
                Source::NewConnection => self.establish_for(request, out),
            }
        }
        self.check_promises();
    }

    /// Walks the available connections for one that has not perished and closes those that have. If
    /// there is none, a new one may be created unless the total or the number of pending ones is at
    /// its limit.
    // OUT-05, OUT-06, OUT-07
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
        waiter: S::Waiter,
        started: Instant,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) {
        let conn = self.connections.check_out(id, self.now, purpose);
        self.deliver(id, conn, waiter, started, out);
    }

    /// Starts a connection that belongs to the request. The request has left the queue, so that the
    /// next one can be looked at, and is limited by nothing but its caller's own deadline from now
    /// on.
    // WQ-13, T-23
    #[inline(never)]
    fn establish_for(&mut self, mut request: Request<S::Waiter>, out: &mut impl ActionSink<S>) {
        let deadline = request.deadline.filter(|_| request.deadline_is_callers);
        request.deadline = deadline;
        let id = self.create(Some(request.id), out);
        assert!(self.owners.last().is_none_or(|(last, _)| last.id < request.id), "FIFO");
        self.owners.push((request, id));
        out.act(Action::StartEstablish { id, deadline, background: false });
    }

    /// The caller cancelled: its request leaves the queue, and a connection that was being made for
    /// it goes to the next request, or into the pool.
    // SI-10, SI-11
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
}
