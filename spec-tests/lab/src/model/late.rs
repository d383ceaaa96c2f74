//! Late replies, after the draft of DRIVERS-2884: connections that are pending a response, and
//! drains.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{
    Action, CheckOutError, CloseReason, ConnId, Event, Instant, PendingResponseFailure, PoolTypes,
};

use super::view::{drains_for_none, drains_for_request, is_pending_response};
use super::{Connection, Model, Phase, Request, Response};

/// Why a drain is not wanted any more: the reason and the error of ConnectionClosed.
pub(super) type Unwanted<E> = (CloseReason, Option<E>);

impl<S: PoolTypes> Model<S> {
    pub(super) fn keeps_late_replies(&self) -> bool {
        self.options.experimental_pending_response == Some(true)
    }

    pub(super) fn pending_response(&self) -> Vec<ConnId> {
        self.which(is_pending_response)
    }

    pub(super) fn draining_for_requests(&self) -> Vec<ConnId> {
        self.which(drains_for_request)
    }

    pub(super) fn draining_for_none(&self) -> Vec<ConnId> {
        self.which(drains_for_none)
    }

    fn draining(&self) -> Vec<ConnId> {
        let mut all = self.draining_for_requests();
        all.extend(self.draining_for_none());
        all
    }

    pub(super) fn response(&self, id: ConnId) -> &Response<S::Cause> {
        let mut found = self.responses.iter().filter(|response| response.connection == id);
        found.next().expect("a connection that is pending a response")
    }

    fn response_mut(&mut self, id: ConnId) -> &mut Response<S::Cause> {
        let mut found = self.responses.iter_mut().filter(|response| response.connection == id);
        found.next().expect("a connection that is pending a response")
    }

    pub(super) fn keep_for_late_reply(
        &mut self,
        id: ConnId,
        conn: S::Conn,
        (request_id, cause): (i32, S::Cause),
    ) {
        self.enter(id, Phase::PendingResponse { conn, since: self.now });
        let response = Response { connection: id, request_id, last_read: self.now, cause };
        self.responses.push(response);
    }

    /// A drain without a request, or else a connection that is pending a response, each kind from
    /// the oldest. Perished ones are closed on the way.
    pub(super) fn choose_late(&mut self) -> Option<ConnId> {
        for id in self.draining_for_none() {
            match self.perished(id) {
                Some(reason) => self.abort_drain(id, reason, None),
                None => return Some(id),
            }
        }
        for id in self.pending_response() {
            match self.perished(id) {
                Some(reason) => self.close_available(id, reason, None),
                None => return Some(id),
            }
        }
        None
    }

    /// The request has left the queue and waits for the end of the drain, until its deadline.
    pub(super) fn drain_for(&mut self, request: Request<S::Waiter>, id: ConnId) {
        let started = match self.connection(id).phase {
            Phase::Draining { started, .. } => started,
            Phase::PendingResponse { .. }
            | Phase::Pending { .. }
            | Phase::Available { .. }
            | Phase::InUse { .. } => self.now,
        };
        let announced = self.now;
        let was = self.enter(id, Phase::Draining { owner: Some(request), started, announced });
        let request_id = self.response(id).request_id;
        let connection_id = id.number();
        self.emit(Event::ConnectionPendingResponseStarted { connection_id, request_id });
        if let Phase::PendingResponse { conn, .. } = was {
            self.actions.push(Action::StartDrain { id, conn });
        }
    }

    /// Its request gets the connection, whatever its age; without a request it is available, unless
    /// it is too old or surplus.
    pub(super) fn drain_succeeded(&mut self, id: ConnId, conn: S::Conn) {
        if !self.has(id) {
            return self.actions.push(Action::CloseSocket { id, conn });
        }
        if let Some((request, duration)) = self.end_wait(id) {
            let (connection_id, request_id) = (id.number(), self.response(id).request_id);
            self.emit(Event::ConnectionPendingResponseSucceeded {
                connection_id,
                request_id,
                duration: duration.into(),
            });
            self.forget_response(id);
            self.enter(id, self.in_use_for(request.purpose));
            return self.deliver(id, conn, request);
        }
        if self.is_past_lifetime(id) || self.has_surplus() {
            return self.close_with(id, conn, CloseReason::Idle, None);
        }
        self.forget_response(id);
        self.make_available(id, conn);
    }

    /// Its request is served again, before all that came later.
    pub(super) fn drain_failed(&mut self, id: ConnId, cause: S::Cause) {
        if self.has(id) {
            let owner = self.take_drain_owner(id, PendingResponseFailure::Error);
            self.close_connection(id, CloseReason::Error, Some(cause));
            owner.into_iter().for_each(|request| self.put_back(request));
        }
    }

    pub(super) fn drain_progress(&mut self, id: ConnId) {
        if self.has(id) {
            let now = self.now;
            self.response_mut(id).last_read = now;
        }
    }

    /// A request whose time is over fails, and its drain goes on without it. The oldest request is
    /// the first; each error has the snapshot from before the first of them left.
    pub(super) fn time_out_drains(&mut self, due: impl Fn(Instant, Instant) -> bool) {
        let mut overdue = Vec::new();
        for connection in &self.connections {
            if let Phase::Draining { owner: Some(request), .. } = &connection.phase
                && request.deadline.is_some_and(|deadline| due(deadline, self.now))
            {
                overdue.push((request.id, connection.id));
            }
        }
        if overdue.is_empty() {
            return;
        }
        let snapshot = Arc::new(self.snapshot());
        overdue.sort();
        for (_, id) in overdue {
            let request = self.take_drain_owner(id, PendingResponseFailure::Timeout);
            let request = request.expect("it has a request");
            self.fail_timed_out(request, &snapshot);
        }
    }

    /// Drains at their limits end.
    pub(super) fn give_up_drains(&mut self) {
        self.time_out_drains(|deadline, now| deadline <= now);
        self.abort_drains(
            |model, id| {
                let is_over =
                    model.drain_ends_at(model.connection(id)).is_some_and(|at| at <= model.now);
                is_over.then(|| (CloseReason::Error, Some(model.response(id).cause.clone())))
            },
            PendingResponseFailure::Timeout,
            None,
        );
    }

    /// 3 s after the last bytes, but not before 100 ms have passed, and after 30 s at the latest.
    pub(super) fn drain_ends_at(
        &self,
        connection: &Connection<S::Conn, S::Waiter>,
    ) -> Option<Instant> {
        let Phase::Draining { started, .. } = &connection.phase else { return None };
        let window = self.response(connection.id).last_read + Duration::from_secs(3);
        let at_least = *started + Duration::from_millis(100);
        Some(window.max(at_least).min(*started + Duration::from_secs(30)))
    }

    /// Those with a request first, each kind from the oldest. A request fails with the outcome, or is
    /// served again if there is none.
    pub(super) fn abort_drains(
        &mut self,
        unwanted: impl Fn(&Self, ConnId) -> Option<Unwanted<S::Cause>>,
        failure: PendingResponseFailure,
        outcome: Option<&CheckOutError<S::Cause>>,
    ) {
        for id in self.draining() {
            let Some((reason, error)) = unwanted(self, id) else { continue };
            let owner = self.take_drain_owner(id, failure);
            self.abort_drain(id, reason, error);
            if let Some(request) = owner {
                match outcome {
                    Some(error) => self.fail(request, error.clone()),
                    None => self.put_back(request),
                }
            }
        }
    }

    pub(super) fn abort_drain(&mut self, id: ConnId, reason: CloseReason, error: Option<S::Cause>) {
        self.close_connection(id, reason, error);
        self.actions.push(Action::AbortDrain { id });
    }

    /// As if everything that is pending a response had been checked in with an error.
    pub(super) fn close_late(&mut self) {
        for id in self.pending_response() {
            let cause = self.response(id).cause.clone();
            self.close_available(id, CloseReason::Error, Some(cause));
        }
        self.abort_drains(
            |model, id| Some((CloseReason::Error, Some(model.response(id).cause.clone()))),
            PendingResponseFailure::Error,
            None,
        );
    }

    /// What no request uses or waits for is closed.
    pub(super) fn release_idle(&mut self) {
        self.pause_population();
        let mut available = self.available();
        available.extend(self.pending_response());
        for id in available {
            let reason = self.perished(id).unwrap_or(CloseReason::Idle);
            self.close_available(id, reason, None);
        }
        for id in self.draining_for_none() {
            let reason = self.perished(id).unwrap_or(CloseReason::Idle);
            self.abort_drain(id, reason, None);
        }
        for id in self.which(|phase| matches!(phase, Phase::Pending { owner: None, .. })) {
            let reason = if self.is_stale(id) { CloseReason::Stale } else { CloseReason::Idle };
            self.close_connection(id, reason, None);
            self.actions.push(Action::AbortEstablish { id });
        }
    }

    /// Credentials changed: what is available, drains, or is established and not stale is closed, and its
    /// request is served again; everything else has reached the end of its lifetime.
    pub(super) fn retire(&mut self) {
        if self.status == cenote_core::pool::Status::Closed {
            return;
        }
        let mut available = self.available();
        available.extend(self.pending_response());
        for id in available {
            let reason = self.perished(id).unwrap_or(CloseReason::Idle);
            self.close_available(id, reason, None);
        }
        self.abort_drains(
            |model, id| Some((model.perished(id).unwrap_or(CloseReason::Idle), None)),
            PendingResponseFailure::Error,
            None,
        );
        for connection in &mut self.connections {
            (connection.expires, connection.expiry_seen) = (Some(self.now), true);
        }
        if self.status != cenote_core::pool::Status::Ready {
            return;
        }
        for id in self.pending() {
            if self.is_stale(id) {
                continue;
            }
            let owner = self.take_owner(id);
            self.close_connection(id, CloseReason::Idle, None);
            self.actions.push(Action::AbortEstablish { id });
            if let Some(request) = owner {
                self.put_back(request);
            }
        }
    }

    pub(super) fn take_drain_owner(
        &mut self,
        id: ConnId,
        reason: PendingResponseFailure,
    ) -> Option<Request<S::Waiter>> {
        let (request, duration) = self.end_wait(id)?;
        let (connection_id, request_id) = (id.number(), self.response(id).request_id);
        self.emit(Event::ConnectionPendingResponseFailed {
            connection_id,
            request_id,
            duration: duration.into(),
            reason,
        });
        Some(request)
    }

    /// The request of a drain and how long it waited; the drain is now one without a request.
    fn end_wait(&mut self, id: ConnId) -> Option<(Request<S::Waiter>, Duration)> {
        let Phase::Draining { owner, started, announced } = &mut self.connection_mut(id).phase
        else {
            return None;
        };
        let (started, announced) = (*started, *announced);
        let request = owner.take()?;
        self.enter(id, Phase::Draining { owner: None, started, announced });
        Some((request, self.now.saturating_since(announced)))
    }

    pub(super) fn forget_response(&mut self, id: ConnId) {
        self.responses.retain(|response| response.connection != id);
    }

    /// Back to its old place, behind those that own a connection.
    // WQ-17
    fn put_back(&mut self, request: Request<S::Waiter>) {
        self.queue.push(request);
        self.queue.sort_by_key(|request| request.id);
        // Its wait may be long, but nothing in the queue waited for as long.
        self.delayed_since = self.delayed_since.or(Some(self.now));
        self.watch_delay();
    }
}
