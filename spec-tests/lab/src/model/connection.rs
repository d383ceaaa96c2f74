//! The lifecycle of a connection: created, established, checked in, closed.

use std::time::Duration;

use cenote_core::pool::{
    Action, CheckOutError, CloseReason, ConnId, Event, Health, PoolTypes, Purpose, ServiceId,
    Status,
};

use super::view::is_pending;
use super::{Connection, Model, Phase, Request, Service};

impl<S: PoolTypes> Model<S> {
    // PS-11, PS-12, T-14, T-16.
    pub(super) fn may_create(&self) -> bool {
        self.status == Status::Ready
            && self.max_total().is_none_or(|max| self.connections.len() < max)
            && self.how_many(is_pending) < self.max_pending()
            && self.is_in_pace()
    }

    // CC-02, CO-05.
    pub(super) fn create(&mut self, owner: Option<Request<S::Waiter>>) -> ConnId {
        self.created += 1;
        let id = ConnId::from_parts(self.created, u32::MAX);
        self.connections.push(Connection {
            id,
            generation: self.generation,
            service: None,
            created: self.now,
            expires: None,
            expiry_seen: false,
            phase: Phase::Pending { owner, handshaken: false, reported: false },
        });
        self.emit(Event::ConnectionCreated { connection_id: id.number() });
        id
    }

    // LB-03: joins its service and takes over its generation, unless hello was before a clear.
    pub(super) fn handshaken(
        &mut self,
        id: ConnId,
        service: Option<ServiceId>,
        clears_at_hello: Option<u64>,
    ) {
        if !self.has(id) {
            return;
        }
        if let Some(service) = service {
            if clears_at_hello.is_some_and(|seen| self.may_be_cleared_since(service, seen)) {
                return self.end_late_hello(id, service);
            }
            if self.generation_of(service).is_none() {
                let since = self.clears.len();
                self.services.push(Service { id: service, generation: 0, cleared_by: None, since });
            }
            let generation = self.generation_of(service).expect("just made sure of");
            let connection = self.connection_mut(id);
            connection.generation = generation;
            connection.service = Some(service);
        }
        if let Phase::Pending { handshaken, .. } = &mut self.connection_mut(id).phase {
            *handshaken = true;
        }
    }

    /// Whether a clear after the first `seen` was of this service, as far as is remembered.
    fn may_be_cleared_since(&self, service: ServiceId, seen: u64) -> bool {
        let known = self.services.iter().find(|known| known.id == service);
        let since = known.map_or(self.clears.len(), |known| known.since);
        let later = self.clears.iter().enumerate().skip(seen as usize);
        later.into_iter().any(|(index, &cleared)| cleared == service || index < since)
    }

    // SI-07, before it is established.
    fn end_late_hello(&mut self, id: ConnId, service: ServiceId) {
        let known = self.services.iter().find(|known| known.id == service);
        let cause = known.and_then(|known| known.cleared_by.clone());
        let owner = self.take_owner(id);
        self.close_connection(id, CloseReason::Stale, None);
        self.actions.push(Action::AbortEstablish { id });
        if let Some(request) = owner {
            self.fail_cleared(request, cause);
        }
    }

    // ES-07, then SI-07 for a stale one, its request, or the pool.
    pub(super) fn established(&mut self, id: ConnId, conn: S::Conn) {
        if !self.has(id) {
            return self.actions.push(Action::CloseSocket { id, conn });
        }
        let duration = self.now.saturating_since(self.connection(id).created);
        self.emit(Event::ConnectionReady { connection_id: id.number(), duration });
        let owner = self.take_owner(id);
        if self.is_stale(id) {
            let cause = self.made_stale_by(id);
            self.close_with(id, conn, CloseReason::Stale, None);
            if let Some(request) = owner {
                self.fail_cleared(request, cause);
            }
            return;
        }
        // T-37: the server answers again.
        self.populate_after = None;
        self.measure_establishment(self.connection(id).created);
        self.start_lifetime(id);
        match owner {
            Some(request) => {
                self.enter(id, self.in_use_for(request.purpose));
                self.deliver(id, conn, request);
            }
            None if self.has_surplus() => {
                self.close_with(id, conn, CloseReason::Idle, None);
            }
            None => self.make_available(id, conn),
        }
    }

    // OUT-19, T-05, T-37.
    pub(super) fn establish_failed(&mut self, id: ConnId, cause: S::Cause, overloaded: bool) {
        if !self.has(id) {
            return;
        }
        let stale = self.is_stale(id);
        let owner = self.take_owner(id);
        self.close_connection(id, CloseReason::Error, Some(cause.clone()));
        if let Some(request) = owner {
            self.fail(request, CheckOutError::EstablishFailed { cause });
        }
        // A failure of an earlier generation says nothing about this one.
        if !stale {
            self.pause_population();
            if overloaded {
                self.back_off(id.number());
            }
        }
    }

    // INT-09, SI-06: oldest first, each with its request.
    pub(super) fn abort_pending(
        &mut self,
        reason: impl Fn(&Self, ConnId) -> CloseReason,
        error: Option<&S::Cause>,
        outcome: &CheckOutError<S::Cause>,
    ) {
        for id in self.pending() {
            let owner = self.take_owner(id);
            let reason = reason(self, id);
            self.close_connection(id, reason, error.cloned());
            self.actions.push(Action::AbortEstablish { id });
            if let Some(request) = owner {
                self.fail(request, outcome.clone());
            }
        }
    }

    // IN-03, IN-04, T-07.
    pub(super) fn check_in(&mut self, id: ConnId, conn: S::Conn, health: Health<S::Cause>) {
        if !self.has(id) {
            // Inherited from the parent process: it is not counted any more.
            return self.actions.push(Action::CloseSocket { id, conn });
        }
        self.emit(Event::ConnectionCheckedIn { connection_id: id.number() });
        if let Phase::InUse { since, .. } = self.connection(id).phase {
            self.measure_use(since);
        }
        let health = match health {
            Health::PendingResponse { cause, .. } if !self.keeps_late_replies() => {
                Health::Errored(cause)
            }
            Health::PendingResponse { request_id, cause } => {
                return match self.unfit(id, Health::Healthy) {
                    Some((reason, error)) => self.close_with(id, conn, reason, error),
                    None => self.keep_for_late_reply(id, conn, (request_id, cause)),
                };
            }
            Health::Healthy | Health::Errored(_) => health,
        };
        match self.unfit(id, health) {
            Some((reason, error)) => self.close_with(id, conn, reason, error),
            None => self.make_available(id, conn),
        }
    }

    // SI-01: error, stale, idle, poolClosed. An interrupted one has an error.
    fn unfit(
        &self,
        id: ConnId,
        health: Health<S::Cause>,
    ) -> Option<(CloseReason, Option<S::Cause>)> {
        if let Health::Errored(cause) = health {
            return Some((CloseReason::Error, Some(cause)));
        }
        if matches!(self.connection(id).phase, Phase::InUse { interrupted: true, .. }) {
            return Some((CloseReason::Error, self.cleared_by.clone()));
        }
        if self.is_stale(id) {
            return Some((CloseReason::Stale, None));
        }
        // IN-07: the time in use does not matter, but its lifetime does, and the size of the pool.
        if self.is_past_lifetime(id) {
            return Some((CloseReason::Idle, None));
        }
        if self.status == Status::Closed {
            return Some((CloseReason::PoolClosed, None));
        }
        self.has_surplus().then_some((CloseReason::Idle, None))
    }

    // AV-03.
    pub(super) fn make_available(&mut self, id: ConnId, conn: S::Conn) {
        self.enter(id, Phase::Available { conn, since: self.now });
    }

    // LB-30.
    pub(super) fn repurpose(&mut self, id: ConnId, to: Purpose) {
        if let Phase::InUse { purpose, .. } = &mut self.connection_mut(id).phase {
            *purpose = to;
        }
    }

    // SI-20.
    pub(super) fn closed_by_peer(&mut self, id: ConnId, cause: S::Cause) {
        if self.available().contains(&id) || self.pending_response().contains(&id) {
            let age = self.now.saturating_since(self.connection(id).created);
            self.close_available(id, CloseReason::Error, Some(cause));
            if self.pause_after_failure().is_some_and(|pause| age < pause) {
                self.pause_population();
            }
        }
    }

    // KX-01: it is discounted first, then its socket is closed.
    pub(super) fn close_available(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
    ) {
        let closed = self.close_connection(id, reason, error);
        let (Phase::Available { conn, .. } | Phase::PendingResponse { conn, .. }) = closed else {
            panic!("c{} is available", id.number())
        };
        self.actions.push(Action::CloseSocket { id, conn });
    }

    pub(super) fn close_with(
        &mut self,
        id: ConnId,
        conn: S::Conn,
        reason: CloseReason,
        error: Option<S::Cause>,
    ) {
        self.close_connection(id, reason, error);
        self.actions.push(Action::CloseSocket { id, conn });
    }

    // KX-03; LB-02: the last connection of a service removes the service and its generation.
    pub(super) fn close_connection(
        &mut self,
        id: ConnId,
        reason: CloseReason,
        error: Option<S::Cause>,
    ) -> Phase<S::Conn, S::Waiter> {
        let closed = self.connections.remove(self.index(id));
        self.forget_response(id);
        let connections = &self.connections;
        self.services.retain(|service| {
            connections.iter().any(|connection| connection.service == Some(service.id))
        });
        self.emit(Event::ConnectionClosed { connection_id: id.number(), reason, error });
        closed.phase
    }

    /// Enters another state, as the last one of that state.
    pub(super) fn enter(
        &mut self,
        id: ConnId,
        phase: Phase<S::Conn, S::Waiter>,
    ) -> Phase<S::Conn, S::Waiter> {
        let mut connection = self.connections.remove(self.index(id));
        let was = std::mem::replace(&mut connection.phase, phase);
        self.connections.push(connection);
        was
    }

    pub(super) fn take_owner(&mut self, id: ConnId) -> Option<Request<S::Waiter>> {
        match &mut self.connection_mut(id).phase {
            Phase::Pending { owner, .. } => owner.take(),
            Phase::Available { .. }
            | Phase::InUse { .. }
            | Phase::PendingResponse { .. }
            | Phase::Draining { .. } => None,
        }
    }

    pub(super) fn has_surplus(&self) -> bool {
        self.max_total().is_some_and(|max| self.connections.len() > max)
    }

    pub(super) fn is_past_lifetime(&self, id: ConnId) -> bool {
        self.connection(id).expires.is_some_and(|expires| self.now >= expires)
    }

    /// Shortens the lifetime by up to 10 %, by a random number from the seed and the connection
    /// number.
    fn start_lifetime(&mut self, id: ConnId) {
        let Some(max) = self.options.max_lifetime.filter(|max| !max.is_zero()) else { return };
        let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        let chance = split_mix(self.options.jitter_seed.unwrap_or(0) ^ id.number());
        let lifetime = nanos - chance % (nanos / 10 + 1);
        let connection = self.connection_mut(id);
        connection.expires = Some(connection.created + Duration::from_nanos(lifetime));
    }
}

/// One step of the generator SplitMix64.
pub(super) fn split_mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        z = (z ^ (z >> shift)).wrapping_mul(factor);
    }
    z ^ (z >> 31)
}
