use std::collections::BTreeSet;

use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    ConnectionInfo, ConnectionState, Instant, PoolState, PoolTypes, ServiceId, Status,
};

/// What a clear did: to the requests and connections that there were.
#[derive(Clone, Debug)]
pub(super) struct ClearReport {
    pub(super) at: Instant,
    pub(super) cause: ConnectionError,
    /// Connections in use were interrupted, not only closed when they were checked in.
    pub(super) interrupt: bool,
    pub(super) service: Option<ServiceId>,
    /// Requests that failed by it.
    pub(super) requests: u64,
    /// Connections that were in use.
    pub(super) in_use: u32,
    /// Connections that were idle, and closed at once.
    pub(super) idle: u32,
    /// Connections that were being established.
    pub(super) pending: u32,
}

/// What a [`ClearReport`] needs from before the clear.
#[derive(Debug)]
pub(super) struct BeforeClear {
    cause: ConnectionError,
    interrupt: bool,
    service: Option<ServiceId>,
    generation: Option<u64>,
    requests: u64,
    /// Those that are not stale.
    connections: Vec<ConnectionInfo>,
}

impl BeforeClear {
    /// `None` if no `ConnectionPoolCleared` can follow: the clear is one of many for the same trouble.
    #[cold]
    #[inline(never)]
    pub(super) fn new<S: PoolTypes>(
        state: &PoolState<S>,
        cause: &ConnectionError,
        interrupt: bool,
        service: Option<ServiceId>,
    ) -> Option<Box<Self>> {
        let is_ready = state.snapshot().status == Status::Ready;
        is_ready.then(|| {
            Box::new(Self {
                cause: cause.clone(),
                interrupt,
                service,
                generation: generation(state, service),
                requests: requests(state),
                connections: state.connections().filter(|it| !it.stale).collect(),
            })
        })
    }

    /// `None` if the clear hit nothing.
    pub(super) fn report<S: PoolTypes>(
        &self,
        state: &PoolState<S>,
        at: Instant,
    ) -> Option<ClearReport> {
        let Self { cause, interrupt, service, generation: before, .. } = self;
        if generation(state, *service) == *before {
            return None;
        }
        let mut report = ClearReport {
            at,
            cause: cause.clone(),
            interrupt: *interrupt,
            service: *service,
            requests: self.requests.saturating_sub(requests(state)),
            in_use: 0,
            idle: 0,
            pending: 0,
        };
        let left: BTreeSet<_> =
            state.connections().filter(|it| !it.stale).map(|it| it.id).collect();
        for connection in self.connections.iter().filter(|it| !left.contains(&it.id)) {
            match connection.state {
                ConnectionState::InUse { .. } => report.in_use += 1,
                ConnectionState::Pending { .. } => report.pending += 1,
                ConnectionState::Available
                | ConnectionState::PendingResponse { .. }
                | ConnectionState::Draining { .. } => report.idle += 1,
            }
        }
        Some(report)
    }
}

/// The generation of what is cleared.
fn generation<S: PoolTypes>(state: &PoolState<S>, service: Option<ServiceId>) -> Option<u64> {
    match service {
        Some(service) => state.service_generation(service),
        None => Some(state.generation()),
    }
}

/// How many wait, be it in the queue or for a connection of their own.
fn requests<S: PoolTypes>(state: &PoolState<S>) -> u64 {
    let snapshot = state.snapshot();
    snapshot.waiting.saturating_add(snapshot.owners)
}
