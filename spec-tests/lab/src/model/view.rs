//! Views of the model, always counted again.

use cenote_core::pool::{
    ConnId, ConnectionInfo, ConnectionState, Instant, PoolTypes, Purpose, ServiceId, Snapshot,
    WaiterInfo, WaitsFor,
};

use super::{Connection, Model, Phase, Request, Service};

impl<S: PoolTypes> Model<S> {
    /// The counts, the state and the generation.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.blank;
        snapshot.status = self.status;
        snapshot.generation = self.generation;
        snapshot.total = count(self.connections.len());
        let late = self.how_many(is_pending_response) + self.how_many(drains_for_none);
        snapshot.available = count(self.how_many(is_available) + late);
        snapshot.pending_response = count(late);
        snapshot.in_use = count(self.how_many(is_in_use) + self.how_many(drains_for_request));
        snapshot.pending = count(self.how_many(is_pending));
        snapshot.waiting = self.queue.len() as u64;
        snapshot.owners = self.how_many(|phase| owner_of(phase).is_some()) as u64;
        snapshot.max_pool_size = self.max_total().map(count);
        snapshot.min_pool_size = count(self.min_total());
        snapshot.max_connecting = count(self.max_pending());
        snapshot.load_balanced = self.load_balanced();
        snapshot.in_use_by_cursors = self.in_use_by(Purpose::Cursor);
        snapshot.in_use_by_transactions = self.in_use_by(Purpose::Transaction);
        snapshot.in_use_by_others = self.in_use_by(Purpose::Other);
        snapshot.connections_created = self.created;
        snapshot.clock_regressions = self.clock_regressions;
        snapshot
    }

    /// Each connection: pending ones, available ones, those in use, those that are pending a response,
    /// those that drain for requests and those that drain for none, each kind from the oldest.
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        let mut all = Vec::with_capacity(self.connections.len());
        let mut describe = |wanted: fn(&Phase<S::Conn, S::Waiter>) -> bool| {
            let those = self.connections.iter().filter(|connection| wanted(&connection.phase));
            all.extend(those.map(|connection| self.describe(connection)));
        };
        describe(is_pending);
        describe(is_available);
        describe(is_in_use);
        describe(is_pending_response);
        describe(drains_for_request);
        describe(drains_for_none);
        all
    }

    /// The generation that each connection belongs to.
    pub fn generations(&self) -> impl Iterator<Item = (ConnId, u64)> {
        self.connections.iter().map(|connection| (connection.id, connection.generation))
    }

    /// Each request without an outcome: those that own a connection, then those in the queue, each
    /// kind in arrival order.
    pub fn waiters(&self) -> Vec<WaiterInfo> {
        let room = self.max_total().is_none_or(|max| self.connections.len() < max);
        let permit = self.how_many(is_pending) < self.max_pending();
        let waits_for = match (room, permit) {
            (false, _) => WaitsFor::Connection,
            (true, false) => WaitsFor::Permit,
            (true, true) => WaitsFor::Pacing,
        };
        let mut all = Vec::new();
        for connection in &self.connections {
            if let Phase::Pending { owner: Some(request), .. } = &connection.phase {
                let mut info = self.describe_request(request);
                info.deadline = request.deadline.filter(|_| request.callers);
                info.waits_for = WaitsFor::Establishment(connection.id);
                all.push(info);
            }
            if let Phase::Draining { owner: Some(request), .. } = &connection.phase {
                let waits_for = WaitsFor::PendingResponse(connection.id);
                all.push(WaiterInfo { waits_for, ..self.describe_request(request) });
            }
        }
        all.sort_by_key(|info| info.id);
        for request in &self.queue {
            all.push(WaiterInfo { waits_for, ..self.describe_request(request) });
        }
        all
    }

    /// The services, their generations and their connections, in the order of ids.
    // LB-01.
    pub fn services(&self) -> Vec<(ServiceId, u64, u32)> {
        let mut all = Vec::new();
        for service in &self.services {
            let of_service =
                |connection: &&Connection<_, _>| connection.service == Some(service.id);
            all.push((
                service.id,
                service.generation,
                count(self.connections.iter().filter(of_service).count()),
            ));
        }
        all.sort();
        all
    }

    /// How often a service was cleared.
    pub fn service_clears(&self) -> u64 {
        self.clears.len() as u64
    }

    /// The time of the last input.
    pub fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn pending(&self) -> Vec<ConnId> {
        self.which(is_pending)
    }

    pub(super) fn available(&self) -> Vec<ConnId> {
        self.which(is_available)
    }

    pub(super) fn in_use(&self) -> Vec<ConnId> {
        self.which(is_in_use)
    }

    fn in_use_by(&self, of: Purpose) -> u32 {
        let in_use = self.how_many(|phase| match phase {
            Phase::InUse { purpose, .. } => *purpose == of,
            Phase::Draining { owner: Some(request), .. } => request.purpose == of,
            Phase::Pending { .. }
            | Phase::Available { .. }
            | Phase::PendingResponse { .. }
            | Phase::Draining { owner: None, .. } => false,
        });
        count(in_use)
    }

    pub(super) fn how_many(&self, wanted: impl Fn(&Phase<S::Conn, S::Waiter>) -> bool) -> usize {
        self.connections.iter().filter(|connection| wanted(&connection.phase)).count()
    }

    pub(super) fn which(&self, wanted: impl Fn(&Phase<S::Conn, S::Waiter>) -> bool) -> Vec<ConnId> {
        let wanted = self.connections.iter().filter(|connection| wanted(&connection.phase));
        wanted.map(|connection| connection.id).collect()
    }

    pub(super) fn has(&self, id: ConnId) -> bool {
        self.connections.iter().any(|connection| connection.id == id)
    }

    pub(super) fn index(&self, id: ConnId) -> usize {
        let index = self.connections.iter().position(|connection| connection.id == id);
        index.expect("a connection that is not closed")
    }

    pub(super) fn connection(&self, id: ConnId) -> &Connection<S::Conn, S::Waiter> {
        &self.connections[self.index(id)]
    }

    pub(super) fn connection_mut(&mut self, id: ConnId) -> &mut Connection<S::Conn, S::Waiter> {
        let index = self.index(id);
        &mut self.connections[index]
    }

    // CO-09, T-47: not of the present generation of its service or pool.
    pub(super) fn is_stale(&self, id: ConnId) -> bool {
        self.is_stale_connection(self.connection(id))
    }

    fn is_stale_connection(&self, connection: &Connection<S::Conn, S::Waiter>) -> bool {
        let current = match connection.service {
            Some(service) => self.generation_of(service),
            None => Some(self.generation),
        };
        current != Some(connection.generation)
    }

    pub(super) fn generation_of(&self, service: ServiceId) -> Option<u64> {
        self.service(service).map(|service| service.generation)
    }

    // SI-19: the most recent clear that affected this connection.
    pub(super) fn made_stale_by(&self, id: ConnId) -> Option<S::Cause> {
        match self.connection(id).service {
            Some(service) => self.service(service)?.cleared_by.clone(),
            None => self.cleared_by.clone(),
        }
    }

    fn service(&self, id: ServiceId) -> Option<&Service<S::Cause>> {
        self.services.iter().find(|service| service.id == id)
    }

    fn describe(&self, connection: &Connection<S::Conn, S::Waiter>) -> ConnectionInfo {
        let id = connection.id;
        let (state, since) = match &connection.phase {
            Phase::Pending { owner, handshaken, reported: _ } => {
                let owner = owner.as_ref().map(|request| request.id);
                let state = ConnectionState::Pending { owner, handshaken: *handshaken };
                (state, connection.created)
            }
            Phase::Available { since, .. } => (ConnectionState::Available, *since),
            Phase::InUse { since, purpose, interrupted, .. } => {
                let (purpose, interrupted) = (*purpose, *interrupted);
                (ConnectionState::InUse { purpose, interrupted }, *since)
            }
            Phase::PendingResponse { since, .. } => {
                let request_id = self.response(id).request_id;
                (ConnectionState::PendingResponse { request_id }, *since)
            }
            Phase::Draining { owner, started, .. } => {
                let request_id = self.response(id).request_id;
                let owner = owner.as_ref().map(|request| request.id);
                (ConnectionState::Draining { request_id, owner }, *started)
            }
        };
        ConnectionInfo {
            id,
            state,
            stale: self.is_stale_connection(connection),
            service: connection.service,
            created: connection.created,
            since,
            age: self.now.saturating_since(connection.created),
        }
    }

    fn describe_request(&self, request: &Request<S::Waiter>) -> WaiterInfo {
        WaiterInfo {
            id: request.id,
            started: request.started,
            age: self.now.saturating_since(request.started),
            deadline: request.deadline,
            purpose: request.purpose,
            waits_for: WaitsFor::Permit,
        }
    }
}

pub(super) fn is_pending<C, W>(phase: &Phase<C, W>) -> bool {
    matches!(phase, Phase::Pending { .. })
}

pub(super) fn is_available<C, W>(phase: &Phase<C, W>) -> bool {
    matches!(phase, Phase::Available { .. })
}

pub(super) fn is_in_use<C, W>(phase: &Phase<C, W>) -> bool {
    matches!(phase, Phase::InUse { .. })
}

pub(super) fn is_pending_response<C, W>(phase: &Phase<C, W>) -> bool {
    matches!(phase, Phase::PendingResponse { .. })
}

pub(super) fn drains_for_request<C, W>(phase: &Phase<C, W>) -> bool {
    matches!(phase, Phase::Draining { owner: Some(_), .. })
}

pub(super) fn drains_for_none<C, W>(phase: &Phase<C, W>) -> bool {
    matches!(phase, Phase::Draining { owner: None, .. })
}

/// The request that a connection is being established or drained for.
pub(super) fn owner_of<C, W>(phase: &Phase<C, W>) -> Option<&Request<W>> {
    match phase {
        Phase::Pending { owner, .. } | Phase::Draining { owner, .. } => owner.as_ref(),
        Phase::Available { .. } | Phase::InUse { .. } | Phase::PendingResponse { .. } => None,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a small pool")
}
