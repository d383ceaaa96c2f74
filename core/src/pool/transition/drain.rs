//! Late replies: a connection whose caller timed out is kept, and the reply is read before the
//! connection is used again. An experiment, after the draft of DRIVERS-2884.

use alloc::sync::Arc;

use crate::pool::action::Action;
use crate::pool::error::CheckOutError;
use crate::pool::event::{CloseReason, Elapsed, Event, PendingResponseFailure};
use crate::pool::id::ConnId;
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::state::connections::ConnState;
use crate::pool::state::lists::List;
use crate::pool::state::pending_responses::{Drain, PendingResponse};
use crate::pool::state::request::Request;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

/// Why a draining connection is closed: the reason and the error of `ConnectionClosed`.
pub(super) type Unwanted<C> = (CloseReason, Option<C>);

const DRAINS: [List; 2] = [List::Draining, List::DrainingUnowned];

impl<S: PoolTypes> PoolState<S> {
    /// A connection comes back before the reply to `request_id`. If it is fit otherwise, it is
    /// available and pending that response.
    // LR-01
    #[inline(never)]
    pub(super) fn check_in_pending_response(
        &mut self,
        id: ConnId,
        conn: S::Conn,
        (request_id, cause): (i32, S::Cause),
        out: &mut impl ActionSink<S>,
    ) {
        if let Some((reason, error)) = self.unfit(id, None) {
            self.remove(id, reason, error, out);
            out.act(Action::CloseSocket { id, conn });
            return;
        }
        self.make_available(id, conn);
        self.connections.set_pending_response(id);
        let response = PendingResponse { request_id, last_read: self.now, cause, drain: None };
        self.pending_responses.insert(id, response);
    }

    /// Where no connection is clean: the drain that has gone on for longest without a request, or
    /// else the connection that has been pending a response for longest. Those that have perished
    /// are closed on the way.
    pub(super) fn find_pending_response(&mut self, out: &mut impl ActionSink<S>) -> Option<ConnId> {
        while let Some(id) = self.connections.first(List::DrainingUnowned) {
            match self.perished(id) {
                Some(reason) => {
                    self.abort_drain(id, reason, None, out);
                    self.schedule_drains();
                }
                None => return Some(id),
            }
        }
        while let Some(id) = self.connections.first(List::PendingResponse) {
            match self.perished(id) {
                Some(reason) => self.close_available(id, reason, None, out),
                None => return Some(id),
            }
        }
        None
    }

    /// The request has left the queue and gets this connection once the late reply was read. Its
    /// deadline counts until then.
    // LR-02
    #[inline(never)]
    pub(super) fn drain_for(
        &mut self,
        request: Request<S::Waiter>,
        id: ConnId,
        out: &mut impl ActionSink<S>,
    ) {
        let now = self.now;
        let is_new = self.connections.list_of(id) == List::PendingResponse;
        let conn = is_new.then(|| self.connections.start_drain(id));
        self.connections.own_drain(id, request.id, request.purpose);
        let response = self.pending_responses.known_mut(id);
        let started = response.drain.map_or(now, |drain| drain.started);
        response.drain = Some(Drain { started, announced: Some(now) });
        let request_id = response.request_id;
        self.add_owner(request, id);
        emit(out, || Event::ConnectionPendingResponseStarted {
            connection_id: id.number(),
            request_id,
        });
        if let Some(conn) = conn {
            out.act(Action::StartDrain { id, conn });
        }
        self.schedule_drains();
    }

    /// The request that waits for it gets the connection, even if that has reached the end of its
    /// life or is surplus: it is closed when it is checked in. Without a request the connection is
    /// available.
    pub(super) fn drain_succeeded(
        &mut self,
        id: ConnId,
        conn: S::Conn,
        out: &mut impl ActionSink<S>,
    ) {
        let Some(connection) = self.connections.get(id) else {
            // Aborted while the answer was on its way.
            out.act(Action::CloseSocket { id, conn });
            return;
        };
        let is_expired = connection.is_expired(self.now);
        match self.take_owner(id) {
            Some(request) => {
                let (request_id, duration) = self.end_wait(id);
                emit(out, || Event::ConnectionPendingResponseSucceeded {
                    connection_id: id.number(),
                    request_id,
                    duration,
                });
                self.pending_responses.remove(id);
                let Request { id: request, waiter, started, purpose, .. } = request;
                self.connections.start_use(id, self.now, purpose);
                self.deliver((id, conn), request, waiter, started, out);
            }
            None if is_expired || self.has_surplus() => {
                self.remove(id, CloseReason::Idle, None, out);
                out.act(Action::CloseSocket { id, conn });
            }
            None => {
                self.pending_responses.remove(id);
                self.make_available(id, conn);
            }
        }
    }

    /// The connection is closed, and the request that waits for it is served again.
    // LR-08
    pub(super) fn drain_failed(
        &mut self,
        id: ConnId,
        cause: S::Cause,
        out: &mut impl ActionSink<S>,
    ) {
        if self.connections.get(id).is_none() {
            return;
        }
        let owner = self.take_drain_owner(id, PendingResponseFailure::Error, out);
        self.remove(id, CloseReason::Error, Some(cause), out);
        if let Some(request) = owner {
            self.put_back(request);
        }
    }

    /// The window begins again.
    pub(super) fn drain_progress(&mut self, id: ConnId) {
        if self.connections.get(id).is_some() {
            self.pending_responses.known_mut(id).last_read = self.now;
        }
    }

    /// Does what is due: requests whose time is over fail, and their drains go on; then drains that
    /// have reached their limit are given up, and the requests that wait for them are served again.
    pub(super) fn give_up_drains(&mut self, out: &mut impl ActionSink<S>) {
        let now = self.now;
        self.time_out_drain_owners(|deadline| deadline <= now, out);
        let late = |pool: &Self, id| {
            let response = pool.pending_responses.known(id);
            let is_due = response.limit().is_some_and(|limit| limit <= now);
            is_due.then(|| (CloseReason::Error, Some(response.cause.clone())))
        };
        self.abort_drains_where(late, PendingResponseFailure::Timeout, None, out);
    }

    /// Fails the requests whose own time is over while they wait for the end of a drain, which goes
    /// on without them.
    // LR-07
    pub(super) fn time_out_drain_owners(
        &mut self,
        due: impl Fn(Instant) -> bool,
        out: &mut impl ActionSink<S>,
    ) {
        let mut snapshot = None;
        let mut index = 0;
        while let Some((request, id)) = self.owners.get(index) {
            let is_due = request.deadline.is_some_and(&due);
            if !is_due || self.connections.list_of(*id) != List::Draining {
                index += 1;
                continue;
            }
            let id = *id;
            // Each is told how the pool was before any of them left.
            let snapshot = Arc::clone(snapshot.get_or_insert_with(|| Arc::new(self.snapshot())));
            if let Some(request) = self.take_drain_owner(id, PendingResponseFailure::Timeout, out) {
                self.fail(request, CheckOutError::WaitQueueTimeout { snapshot }, out);
            }
        }
    }

    /// Closes each draining connection that `unwanted` names. The request that waits for it fails
    /// with `outcome`, or is served again if there is none.
    pub(super) fn abort_drains_where(
        &mut self,
        unwanted: impl Fn(&Self, ConnId) -> Option<Unwanted<S::Cause>>,
        failure: PendingResponseFailure,
        outcome: Option<&CheckOutError<S::Cause>>,
        out: &mut impl ActionSink<S>,
    ) {
        for list in DRAINS {
            let mut next = self.connections.first(list);
            while let Some(id) = next {
                next = self.connections.next(id);
                let Some((reason, error)) = unwanted(self, id) else { continue };
                let owner = self.take_drain_owner(id, failure, out);
                self.abort_drain(id, reason, error, out);
                match (owner, outcome) {
                    (Some(request), Some(error)) => self.fail(request, error.clone(), out),
                    (Some(request), None) => self.put_back(request),
                    (None, _) => {}
                }
            }
        }
    }

    /// Closes a connection that drains for no request.
    pub(super) fn abort_drain(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
        out: &mut impl ActionSink<S>,
    ) {
        let was = self.remove(id, reason, error, out);
        assert!(matches!(was, ConnState::Draining { owner: None }), "a drain without an owner");
        out.act(Action::AbortDrain { id });
    }

    /// Closes everything that has to receive a late reply before it can be used, as if it had been
    /// checked in with an error.
    pub(super) fn close_pending_responses(&mut self, out: &mut impl ActionSink<S>) {
        while let Some(id) = self.connections.first(List::PendingResponse) {
            let cause = self.pending_responses.known(id).cause.clone();
            self.close_available(id, CloseReason::Error, Some(cause), out);
        }
        let cause = |pool: &Self, id| Some(pool.pending_responses.known(id).cause.clone());
        let all = |pool: &Self, id| Some((CloseReason::Error, cause(pool, id)));
        self.abort_drains_where(all, PendingResponseFailure::Error, None, out);
    }

    /// Takes the request that waits for the end of a drain, and tells why it stops waiting.
    // LR-03
    pub(super) fn take_drain_owner(
        &mut self,
        id: ConnId,
        reason: PendingResponseFailure,
        out: &mut impl ActionSink<S>,
    ) -> Option<Request<S::Waiter>> {
        let request = self.take_owner(id)?;
        let (request_id, duration) = self.end_wait(id);
        emit(out, || Event::ConnectionPendingResponseFailed {
            connection_id: id.number(),
            request_id,
            duration,
            reason,
        });
        Some(request)
    }

    /// No request waits for the end of this drain any more: the request id of the reply, and how
    /// long the wait took.
    fn end_wait(&mut self, id: ConnId) -> (i32, Elapsed) {
        let now = self.now;
        let response = self.pending_responses.known_mut(id);
        let announced = response.drain.as_mut().and_then(|drain| drain.announced.take());
        let announced = announced.expect("a request waited for it");
        (response.request_id, now.saturating_since(announced).into())
    }

    /// Keeps up when the next drain, or a request that waits for it, is due.
    pub(in crate::pool) fn schedule_drains(&mut self) {
        let next_due = self.next_drain_due();
        self.pending_responses.set_next_due(next_due);
    }

    /// Recounts it.
    pub(in crate::pool) fn next_drain_due(&self) -> Option<Instant> {
        let limits = self.pending_responses.iter().filter_map(|(_, response)| response.limit());
        let drains = |id: &ConnId| self.connections.list_of(*id) == List::Draining;
        let owners = self.owners.iter().filter(|(_, id)| drains(id));
        limits.chain(owners.filter_map(|(request, _)| request.deadline)).min()
    }
}
