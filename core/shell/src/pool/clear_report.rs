use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    ConnectionInfo, ConnectionState, Instant, PoolState, PoolTypes, ServiceId, Status, WaitsFor,
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

impl ClearReport {
    /// About a clear that is about to happen. `None` if no `ConnectionPoolCleared` follows: then it is one of
    /// many for the same trouble, or hits nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn new<S: PoolTypes>(
        state: &PoolState<S>,
        at: Instant,
        cause: &ConnectionError,
        interrupt: bool,
        service: Option<ServiceId>,
    ) -> Option<Self> {
        let hits_nothing = service.is_some_and(|it| state.service_generation(it).is_none());
        if state.snapshot().status != Status::Ready || hits_nothing {
            return None;
        }
        let is_hit = |waits_for| match waits_for {
            WaitsFor::Establishment(_) => interrupt,
            WaitsFor::PendingResponse(_) | WaitsFor::Connection | WaitsFor::Permit | _ => true,
        };
        // The requests of a pool with services wait for any of them.
        let requests = match service {
            Some(_) => 0,
            None => state.waiters().filter(|waiter| is_hit(waiter.waits_for)).count() as u64,
        };
        let is_hit =
            |connection: &ConnectionInfo| service.is_none() || connection.service == service;
        let mut report = Self {
            at,
            cause: cause.clone(),
            interrupt,
            service,
            requests,
            in_use: 0,
            idle: 0,
            pending: 0,
        };
        for connection in state.connections().filter(is_hit).filter(|it| !it.stale) {
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
