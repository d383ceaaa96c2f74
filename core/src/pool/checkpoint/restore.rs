//! From a checkpoint back to a machine, if a pool can be in that state.

use alloc::vec::Vec;

use super::validate::{COUNT_MAX, check_connection, check_counts, check_slots, follows, list_of};
use super::{
    ConnectionCheckpoint, ConnectionStateCheckpoint, InvalidCheckpoint, PoolCheckpoint,
    RequestCheckpoint,
};
use crate::pool::id::{ConnId, ServiceId, WaiterId};
use crate::pool::options::Settings;
use crate::pool::state::PoolState;
use crate::pool::state::connections::{Connection, Connections, Doing};
use crate::pool::state::lists::List;
use crate::pool::state::services::Services;
use crate::pool::state::wait_queue::{Request, WaitQueue};
use crate::pool::status::Status;
use crate::pool::types::{NoPayload, PoolTypes};

/// Where the payloads of a restored state come from: a checkpoint has none.
pub trait PayloadSource<S: PoolTypes> {
    /// The socket of a connection that lies in the pool.
    fn conn(&mut self, id: ConnId) -> S::Conn;
    /// Whoever made a request that has no outcome yet.
    fn waiter(&mut self, id: WaiterId) -> S::Waiter;
    /// What the pool, or a service, was cleared with last.
    fn cause(&mut self, service: Option<ServiceId>) -> S::Cause;
}

impl PayloadSource<NoPayload> for () {
    fn conn(&mut self, _: ConnId) {}
    fn waiter(&mut self, _: WaiterId) {}
    fn cause(&mut self, _: Option<ServiceId>) {}
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
        let settings = Settings::new(&checkpoint.options)?;
        check_counts(checkpoint)?;
        let mut services = restore_services(checkpoint, payloads)?;
        let connections = restore_connections(checkpoint, &settings, &mut services, payloads)?;
        let (owners, queue) = restore_requests(checkpoint, payloads)?;
        let mut pool = Self {
            options: checkpoint.options.clone(),
            settings,
            status: checkpoint.status,
            generation: checkpoint.generation,
            services,
            connections,
            queue,
            owners: Vec::new(),
            purposes: [0; 3],
            cleared_by: checkpoint.was_cleared.then(|| payloads.cause(None)),
            populate_after: checkpoint.populate_after,
            inherited: checkpoint.inherited,
            last_waiter: checkpoint.last_waiter,
            now: checkpoint.now,
            clock_regressions: checkpoint.clock_regressions,
        };
        pool.take_in_owners(owners)?;
        pool.count_purposes();
        pool.check_consistency()?;
        Ok(pool)
    }

    /// An owner and its connection know each other.
    fn take_in_owners(
        &mut self,
        owners: Vec<(Request<S::Waiter>, ConnId)>,
    ) -> Result<(), InvalidCheckpoint> {
        for (request, id) in &owners {
            let problem = |problem| InvalidCheckpoint::Request { id: request.id, problem };
            if self.connections.get(*id).is_none() {
                return Err(problem("owns a connection that is not there"));
            }
            match &mut self.connections.known_mut(*id).doing {
                Doing::Pending { owner: owner @ None, .. } => *owner = Some(request.id),
                Doing::Pending { owner: Some(_), .. } => {
                    return Err(problem("owns a connection that another owns, too"));
                }
                Doing::Available { .. } | Doing::InUse { .. } => {
                    return Err(problem("owns a connection that is not pending"));
                }
            }
        }
        self.owners = owners;
        Ok(())
    }

    fn count_purposes(&mut self) {
        for list in [List::InUse, List::Overdue] {
            for (_, connection) in self.connections.iter(list) {
                if let Doing::InUse { purpose, .. } = connection.doing {
                    self.purposes[purpose as usize] += 1;
                }
            }
        }
    }

    /// What [`check_invariants`](Self::check_invariants) promises of the parts together.
    fn check_consistency(&self) -> Result<(), InvalidCheckpoint> {
        let available = self.connections.len(List::Available);
        let pending = self.connections.len(List::Pending);
        let must = |holds, otherwise| {
            if holds { Ok(()) } else { Err(InvalidCheckpoint::Contradiction(otherwise)) }
        };
        match self.status {
            Status::Ready => {}
            Status::Paused => {
                let current = self.connections().any(|connection| !connection.stale);
                must(!current, "a paused pool has nothing of its present generation")?;
                let prunes = self.settings.pause_after_failure.is_some();
                must(!prunes || available == 0, "a paused pool has closed what was available")?;
            }
            Status::Closed => {
                must(available + pending == 0, "a closed pool offers and makes nothing")?;
            }
        }
        must(available == 0 || !self.has_surplus(), "surplus is not kept available")?;
        let waits = !self.queue.is_empty();
        must(!waits || self.status == Status::Ready, "only in a ready pool requests wait")?;
        must(!waits || available == 0, "a request waits beside an available connection")?;
        must(!waits || !self.may_create(), "a request waits although a connection could be made")
    }
}

fn restore_services<S: PoolTypes>(
    checkpoint: &PoolCheckpoint,
    payloads: &mut impl PayloadSource<S>,
) -> Result<Services<S::Cause>, InvalidCheckpoint> {
    let mut services = Services::new();
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
        services.restore(service.id, service.generation, cause);
    }
    Ok(services)
}

fn restore_connections<S: PoolTypes>(
    checkpoint: &PoolCheckpoint,
    settings: &Settings,
    services: &mut Services<S::Cause>,
    payloads: &mut impl PayloadSource<S>,
) -> Result<Connections<S::Conn>, InvalidCheckpoint> {
    check_slots(checkpoint)?;
    let mut listed = Vec::with_capacity(checkpoint.connections.len());
    let mut previous: Option<(usize, &ConnectionCheckpoint)> = None;
    for connection in &checkpoint.connections {
        let problem = |problem| InvalidCheckpoint::Connection { id: connection.id, problem };
        let list = list_of(connection.state);
        check_connection(checkpoint, settings, services, connection).map_err(problem)?;
        let place = (list as usize, connection);
        if previous.is_some_and(|previous| !follows(previous, place)) {
            return Err(problem("is not in the order of time"));
        }
        previous = Some(place);
        if let Some(service) = connection.service {
            services.join(service);
        }
        let doing = restore_doing(connection, payloads);
        listed.push((connection.id, list, Connection::of(connection, doing)));
    }
    if let Some((id, _, _)) = services.iter().find(|&(_, _, connections)| connections == 0) {
        let problem = "has no connections, so it is forgotten";
        return Err(InvalidCheckpoint::Service { id, problem });
    }
    Ok(Connections::restore(checkpoint.last_connection, listed, &checkpoint.free_slots))
}

fn restore_doing<S: PoolTypes>(
    connection: &ConnectionCheckpoint,
    payloads: &mut impl PayloadSource<S>,
) -> Doing<S::Conn> {
    match connection.state {
        ConnectionStateCheckpoint::Pending { handshaken } => {
            Doing::Pending { owner: None, handshaken }
        }
        ConnectionStateCheckpoint::Available { since } => {
            Doing::Available { conn: payloads.conn(connection.id), since }
        }
        ConnectionStateCheckpoint::InUse { since, purpose, interrupted, reported: _ } => {
            Doing::InUse { since, purpose, interrupted }
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
        let problem = |problem| Err(InvalidCheckpoint::Request { id, problem });
        if last >= Some(id) {
            return problem("is not in the order of ids");
        }
        if Some(id) > checkpoint.last_waiter {
            return problem("has an id above the last");
        }
        if started > checkpoint.now {
            return problem("has not begun to wait yet");
        }
        last = Some(id);
        let waiter = payloads.waiter(id);
        let request = Request { id, waiter, started, deadline, deadline_is_callers, purpose };
        match owns {
            Some(connection) if queue.is_empty() => owners.push((request, connection)),
            Some(_) => return problem("was served before one that came earlier"),
            None => queue.push(request),
        }
    }
    Ok((owners, queue))
}
