//! Creating and establishing connections.

use crate::pool::action::Action;
use crate::pool::error::CheckOutError;
use crate::pool::event::{CloseReason, Event};
use crate::pool::id::{ConnId, ServiceId, WaiterId};
use crate::pool::sink::{ActionSink, emit};
use crate::pool::state::PoolState;
use crate::pool::state::connections::{ConnState, Connection};
use crate::pool::state::lists::List;
use crate::pool::state::request::Request;
use crate::pool::status::Status;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Whether one more connection is allowed, and its time has come if the pool paces them.
    // PCR-03, PCL-08, OUT-06, LB-07
    #[inline]
    pub(in crate::pool) fn may_create(&self) -> bool {
        self.has_permit() && (!self.settings.paces || self.is_time_to_establish())
    }

    /// Whether neither the total nor the number of pending connections is at its limit. Pending ones from before a
    /// clear count, too.
    // PS-11, PS-12, T-16
    #[inline]
    pub(in crate::pool) fn has_permit(&self) -> bool {
        self.status == Status::Ready
            && self.connections.total() < self.settings.max_total
            && self.connections.len(List::Pending) < self.settings.max_pending
    }

    /// Creates a pending connection: counted, numbered and announced, without any I/O yet.
    // EV-14, CC-02
    pub(super) fn create(
        &mut self,
        owner: Option<WaiterId>,
        out: &mut impl ActionSink<S>,
    ) -> ConnId {
        assert!(self.has_permit(), "never above a limit");
        let id = self.connections.create(self.now, self.generation, owner);
        emit(out, || Event::ConnectionCreated { connection_id: id.number() });
        id
    }

    /// Creates connections ahead of need while there are fewer than the minimum and the pool is
    /// ready. Runs after every input, and so after every establishment that made a permit free;
    /// after one that failed, only when the pause is over.
    // LG-36, PO-01, PO-03, PO-05, PO-08, PO-09, BG-02, BG-07, ND-05, T-37, T-36
    #[inline(never)]
    pub(super) fn populate(&mut self, out: &mut impl ActionSink<S>) {
        if self.populate_after.is_some_and(|pause_ends| self.now < pause_ends) {
            return;
        }
        self.populate_after = None;
        if !self.wants_population() {
            return;
        }
        for _ in self.populating()..self.settings.max_populating() {
            let id = self.create(None, out);
            let generation = self.generation;
            out.act(Action::StartEstablish { id, owner: None, deadline: None, generation });
            if !self.is_below_minimum() || !self.may_create() {
                return;
            }
        }
    }

    /// Whether there are too few connections and one more may be made ahead of need.
    pub(super) fn wants_population(&self) -> bool {
        self.may_create() && self.has_place_to_populate()
    }

    /// When the next connection may be made ahead of need, as far as that is up to the minimum.
    pub(super) fn next_population(&self) -> Option<Instant> {
        self.has_place_to_populate().then(|| self.populate_after.unwrap_or(self.now))
    }

    fn has_place_to_populate(&self) -> bool {
        self.is_below_minimum()
            && self.settings.pause_after_failure.is_some()
            && self.populating() < self.settings.max_populating()
    }

    #[inline]
    pub(super) fn is_below_minimum(&self) -> bool {
        self.connections.total() < self.settings.min_total
    }

    /// How many connections are being made ahead of need. One that became stale meanwhile
    /// will never be of use, so it does not hold up the next.
    // SI-07
    fn populating(&self) -> usize {
        let useful = |connection: &Connection<S::Conn>| {
            matches!(connection.state, ConnState::Pending { owner: None, .. })
                && !self.has_old_generation(connection)
        };
        self.connections.iter(List::Pending).filter(|(_, connection)| useful(connection)).count()
    }

    /// In load-balanced mode the connection takes its generation from its service, and is counted
    /// there, when hello is done. One whose service was cleared since its hello ends here: nothing that
    /// it could still be established for may use it.
    // LB-03, T-61, SI-07
    pub(super) fn handshaken(
        &mut self,
        id: ConnId,
        service: Option<ServiceId>,
        clears_at_hello: Option<u64>,
        out: &mut impl ActionSink<S>,
    ) {
        if self.connections.get(id).is_none() {
            return;
        }
        if let (Some(service), Some(seen)) = (service, clears_at_hello)
            && seen < self.services.clears_of(service)
        {
            let cause = self.services.cleared_by(service).cloned();
            let owner = self.abort_establishment(id, CloseReason::Stale, None, out);
            if let Some(request) = owner {
                self.fail_cleared(request, cause, out);
            }
            return;
        }
        let service = service.map(|service| (service, self.services.join(service)));
        self.connections.set_handshaken(id, service);
    }

    /// ConnectionReady comes first. A connection that became stale on the way is never handed out,
    /// whatever the state of the pool is by now. Otherwise it goes to the request that started it,
    /// or else into the pool, where the oldest request finds it before it could find the permit.
    // CO-07, EV-15, ES-01, ES-07, AV-01, PO-07, PO-10, OUT-14, DU-02, T-38, T-39, T-10, T-12, SI-07, WQ-17
    pub(super) fn establish_succeeded(
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
        let created = connection.created;
        let duration = self.now.saturating_since(created);
        let stale = self.has_old_generation(connection);
        emit(out, || Event::ConnectionReady { connection_id: id.number(), duration });
        let owner = self.take_owner(id);
        if stale {
            let cause = self.made_stale_by(id);
            self.remove(id, CloseReason::Stale, None, out);
            out.act(Action::CloseSocket { id, conn });
            if let Some(request) = owner {
                self.fail_cleared(request, cause, out);
            }
            return;
        }
        self.populate_after = None;
        self.note_establishment(created);
        self.start_lifetime(id);
        match owner {
            Some(request) => {
                let Request { id: request, waiter, started, purpose, .. } = request;
                self.connections.start_use(id, self.now, purpose);
                self.deliver((id, conn), request, waiter, started, out);
            }
            None if self.has_surplus() => {
                self.remove(id, CloseReason::Idle, None, out);
                out.act(Action::CloseSocket { id, conn });
            }
            None => self.make_available(id, conn),
        }
    }

    /// ConnectionClosed, then CheckOutFailed, and the minimum waits for a while, as does everything after an
    /// overload if the pool backs off, unless the failure is old news: the connection was of an earlier generation.
    /// SDAM has seen the failure before.
    // LG-35, ES-03, ES-05, PO-08, OUT-19, OUT-20, ER-38, LB-23, T-05, T-37, T-03
    pub(super) fn establish_failed(
        &mut self,
        id: ConnId,
        cause: S::Cause,
        overloaded: bool,
        out: &mut impl ActionSink<S>,
    ) {
        let Some(connection) = self.connections.get(id) else { return };
        let stale = self.has_old_generation(connection);
        let owner = self.take_owner(id);
        self.remove(id, CloseReason::Error, Some(cause.clone()), out);
        if let Some(request) = owner {
            self.fail(request, CheckOutError::EstablishFailed { cause }, out);
        }
        if !stale {
            self.pause_population();
            if overloaded {
                self.back_off(id.number());
            }
        }
    }

    /// The server had reasons to refuse, so the minimum, if there is one, pauses.
    // T-37
    pub(super) fn pause_population(&mut self) {
        let pause = self.settings.pause_after_failure.filter(|_| self.settings.min_total > 0);
        self.populate_after = pause.map(|pause| self.now.after(pause));
    }

    /// Takes the request that a pending or draining connection belongs to.
    pub(super) fn take_owner(&mut self, id: ConnId) -> Option<Request<S::Waiter>> {
        let owner = self.connections.take_owner(id)?;
        let index = self.owners.binary_search_by_key(&owner, |(request, _)| request.id);
        let (request, _) = self.owners.remove(index.expect("an owner is listed"));
        self.schedule_owners();
        Some(request)
    }

    /// The most recent clear of the pool, or of the connection's service.
    // SI-19
    fn made_stale_by(&self, id: ConnId) -> Option<S::Cause> {
        match self.connections.known(id).service {
            Some(service) => self.services.cleared_by(service).cloned(),
            None => self.cleared_by.clone(),
        }
    }

    fn start_lifetime(&mut self, id: ConnId) {
        if let Some(lifetime) = self.settings.lifetime_of(id.number()) {
            let expires = self.connections.known(id).created.after(lifetime);
            self.connections.set_expiry(id, expires);
        }
    }
}
