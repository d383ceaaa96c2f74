//! From a checkpoint back to a machine, if a pool can be in that state.

use alloc::vec::Vec;

use super::validate::{COUNT_MAX, check_counts, check_slots};
use super::{
    ConnectionCheckpoint, ConnectionStateCheckpoint, InvalidCheckpoint, PoolCheckpoint,
    RequestCheckpoint,
};
use crate::pool::id::{ConnId, ServiceId, WaiterId};
use crate::pool::options::Settings;
use crate::pool::state::PoolState;
use crate::pool::state::connections::{ConnState, Connection, Connections};
use crate::pool::state::lists::List;
use crate::pool::state::pending_responses::{Drain, PendingResponse, PendingResponses};
use crate::pool::state::request::Request;
use crate::pool::state::services::Services;
use crate::pool::state::wait_queue::WaitQueue;
use crate::pool::types::{NoPayload, PoolTypes};

/// Where the payloads of a restored state come from: a checkpoint has none.
pub trait PayloadSource<S: PoolTypes> {
    /// The socket of a connection that lies in the pool.
    fn conn(&mut self, id: ConnId) -> S::Conn;
    /// The waiter of a request without an outcome.
    fn waiter(&mut self, id: WaiterId) -> S::Waiter;
    /// What the pool, or a service, was cleared with last.
    fn cause(&mut self, service: Option<ServiceId>) -> S::Cause;
    /// The timeout after which this connection was checked in, pending a response.
    fn timeout(&mut self, id: ConnId) -> S::Cause;
}

impl PayloadSource<NoPayload> for () {
    fn conn(&mut self, _: ConnId) {}
    fn waiter(&mut self, _: WaiterId) {}
    fn cause(&mut self, _: Option<ServiceId>) {}
    fn timeout(&mut self, _: ConnId) {}
}

impl<S: PoolTypes> PoolState<S> {
    /// The machine that a checkpoint was taken of, with payloads from elsewhere. Emits nothing.
    /// Allocates as much as the pool is large.
    ///
    /// # Errors
    ///
    /// When no pool can be in such a state. Whatever is accepted keeps all the promises of
    /// [`check_invariants`](Self::check_invariants), now and after every input.
    pub fn restore(
        checkpoint: &PoolCheckpoint,
        payloads: &mut impl PayloadSource<S>,
    ) -> Result<Self, InvalidCheckpoint> {
        let settings = Settings::new(&checkpoint.options).map_err(InvalidCheckpoint::Options)?;
        check_counts(checkpoint)?;
        check_slots(checkpoint)?;
        let mut services = restore_services(checkpoint, payloads)?;
        let pending_responses = restore_pending_responses(checkpoint, payloads);
        let mut connections = restore_connections(checkpoint, &mut services, payloads)?;
        let (owners, queue) = restore_requests(checkpoint, payloads)?;
        for (request, id) in &owners {
            let owns = connections.restore_owner(*id, request.id, request.purpose);
            owns.map_err(|problem| InvalidCheckpoint::Request { id: request.id, problem })?;
        }
        let mut pool = Self {
            options: checkpoint.options.clone(),
            settings,
            status: checkpoint.status,
            generation: checkpoint.generation,
            services,
            connections,
            queue,
            pending_responses,
            owners,
            owners_due: None,
            old_rules: checkpoint.old_rules,
            cleared_by: checkpoint.was_cleared.then(|| payloads.cause(None)),
            populate_after: checkpoint.populate_after,
            standing_since: checkpoint.standing_since,
            pacing: checkpoint.pacing,
            demand: checkpoint.demand,
            inherited: checkpoint.inherited,
            reported: checkpoint.reported,
            last_waiter: checkpoint.last_waiter,
            now: checkpoint.now,
            clock_regressions: checkpoint.clock_regressions,
        };
        pool.schedule_drains();
        pool.schedule_owners();
        pool.follow_demand();
        pool.verify()?;
        Ok(pool)
    }
}

fn restore_services<S: PoolTypes>(
    checkpoint: &PoolCheckpoint,
    payloads: &mut impl PayloadSource<S>,
) -> Result<Services<S::Cause>, InvalidCheckpoint> {
    let mut services = Services::restore(checkpoint.service_clears);
    let mut last = None;
    for service in &checkpoint.services {
        let problem = |problem| Err(InvalidCheckpoint::Service { id: service.id, problem });
        if last >= Some(service.id) {
            return problem("is not in the order of ids");
        }
        if service.generation > COUNT_MAX {
            return problem("has a generation that none ever reaches");
        }
        last = Some(service.id);
        let cause = service.was_cleared.then(|| payloads.cause(Some(service.id)));
        services.put_back(service.id, service.generation, cause, service.clears);
    }
    Ok(services)
}

fn restore_pending_responses<S: PoolTypes>(
    checkpoint: &PoolCheckpoint,
    payloads: &mut impl PayloadSource<S>,
) -> PendingResponses<S::Cause> {
    let mut responses = PendingResponses::new();
    for &ConnectionCheckpoint { id, state, .. } in &checkpoint.connections {
        let (request_id, last_read, drain) = match state {
            ConnectionStateCheckpoint::PendingResponse { since: _, request_id, last_read } => {
                (request_id, last_read, None)
            }
            ConnectionStateCheckpoint::Draining { since, announced, request_id, last_read } => {
                (request_id, last_read, Some(Drain { started: since, announced }))
            }
            ConnectionStateCheckpoint::Pending { .. }
            | ConnectionStateCheckpoint::Available { .. }
            | ConnectionStateCheckpoint::InUse { .. } => continue,
        };
        let cause = payloads.timeout(id);
        responses.insert(id, PendingResponse { request_id, last_read, cause, drain });
    }
    responses
}

fn restore_connections<S: PoolTypes>(
    checkpoint: &PoolCheckpoint,
    services: &mut Services<S::Cause>,
    payloads: &mut impl PayloadSource<S>,
) -> Result<Connections<S::Conn>, InvalidCheckpoint> {
    let mut listed = Vec::with_capacity(checkpoint.connections.len());
    let mut last = List::Pending;
    for connection in &checkpoint.connections {
        let &ConnectionCheckpoint { id, generation, service, created, expires, expiry_met, .. } =
            connection;
        let (list, state) = restore_state(connection, payloads);
        if (list as usize) < last as usize {
            let problem = "is not in the order of time";
            return Err(InvalidCheckpoint::Connection { id, problem });
        }
        last = list;
        // A service that is not there is found when the whole is verified.
        if let Some(service) = service.filter(|&service| services.generation(service).is_some()) {
            services.join(service);
        }
        let number = id.number();
        let connection =
            Connection { number, generation, service, created, expires, expiry_met, state };
        listed.push((id.slot(), list, connection));
    }
    Ok(Connections::restore(checkpoint.last_connection, listed, &checkpoint.free_slots))
}

fn restore_state<S: PoolTypes>(
    connection: &ConnectionCheckpoint,
    payloads: &mut impl PayloadSource<S>,
) -> (List, ConnState<S::Conn>) {
    match connection.state {
        ConnectionStateCheckpoint::Pending { handshaken } => {
            (List::Pending, ConnState::Pending { owner: None, handshaken })
        }
        ConnectionStateCheckpoint::Available { since } => {
            let conn = payloads.conn(connection.id);
            (List::Available, ConnState::Available { conn, since })
        }
        ConnectionStateCheckpoint::InUse { since, purpose, interrupted, reported } => {
            let list = if reported { List::Overdue } else { List::InUse };
            (list, ConnState::InUse { since, purpose, interrupted })
        }
        ConnectionStateCheckpoint::PendingResponse { since, .. } => {
            let conn = payloads.conn(connection.id);
            (List::PendingResponse, ConnState::Available { conn, since })
        }
        // A request that owns it says so later.
        ConnectionStateCheckpoint::Draining { announced, .. } => {
            let owned = announced.is_some();
            let list = if owned { List::Draining } else { List::DrainingUnowned };
            (list, ConnState::Draining { owner: None })
        }
    }
}

type Requests<W> = (Vec<(Request<W>, ConnId)>, WaitQueue<W>);

fn restore_requests<S: PoolTypes>(
    checkpoint: &PoolCheckpoint,
    payloads: &mut impl PayloadSource<S>,
) -> Result<Requests<S::Waiter>, InvalidCheckpoint> {
    let (mut owners, mut queue) = (Vec::new(), WaitQueue::new());
    let mut last = None;
    for request in &checkpoint.requests {
        let &RequestCheckpoint { id, started, deadline, deadline_is_callers, purpose, owns } =
            request;
        if last >= Some(id) {
            let problem = "is not in the order of ids";
            return Err(InvalidCheckpoint::Request { id, problem });
        }
        last = Some(id);
        let limit = (deadline, deadline_is_callers);
        let request = Request::new(id, payloads.waiter(id), started, limit, purpose);
        match owns {
            // Perhaps before one that came earlier and has returned to the queue (WQ-17).
            Some(connection) => owners.push((request, connection)),
            None => queue.push(request),
        }
    }
    Ok((owners, queue))
}
