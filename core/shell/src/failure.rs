//! Failed connections, as the failure handler sees them: the place where SDAM comes in.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{ConnId, PoolState, PoolTypes, ServiceId};
use cenote_core::sdam::{Context, PoolVerdict, TopologyVersion};

/// A connection that failed, as [`Builder::on_failure`](crate::builder::Builder::on_failure) shows it before
/// the pool processes the failure.
///
/// ```
/// use cenote_core::sdam;
/// use cenote_shell::failure::Failure;
///
/// /// For `Pool::builder(uri)?.on_failure(handle)`.
/// fn handle(failure: &Failure<'_>) {
///     let verdict = sdam::verdict(&failure.context(None), failure.error());
///     // The server's description first, under the lock that the monitor takes, too; then:
///     failure.clear(verdict.pool);
/// }
/// ```
pub struct Failure<'a> {
    pool: Arc<dyn FailingPool>,
    id: ConnId,
    error: &'a ConnectionError,
}

/// The callback of [`Builder::on_failure`](crate::builder::Builder::on_failure).
pub type FailureHandler = Box<dyn Fn(&Failure<'_>) + Send + Sync>;

/// A pool, as far as its failures are concerned.
pub trait FailingPool: Send + Sync {
    /// The server that the pool is for.
    fn address(&self) -> &ServerAddress;

    /// The status of a connection, looked up under the pool's lock.
    fn connection_status(&self, id: ConnId) -> ConnectionStatus;

    /// Clears the pool as `judge` decides from the connection's status, under one lock. The caller
    /// drops the effects, which runs them. `None` means that nothing was cleared.
    fn clear(
        self: Arc<Self>,
        id: ConnId,
        judge: &dyn Fn(ConnectionStatus) -> Option<ClearRequest>,
    ) -> Option<DeferredEffects>;
}

/// The effects of an input that was fed while the caller held a lock of its own. To be dropped after that lock
/// is released: dropping it runs what has not run yet.
#[must_use = "dropping it runs the effects, which must not happen under a lock"]
pub struct DeferredEffects {
    work: Option<Box<dyn FnOnce()>>,
    notifications: Option<Box<dyn FnOnce()>>,
}

impl DeferredEffects {
    pub(crate) fn new(
        work: impl FnOnce() + 'static,
        notifications: impl FnOnce() + 'static,
    ) -> Self {
        Self { work: Some(Box::new(work)), notifications: Some(Box::new(notifications)) }
    }

    /// Wakes callers, and opens, interrupts and closes sockets. Subscribers, which may take long, are left to
    /// the drop.
    pub fn run_work(&mut self) {
        self.work.take().into_iter().for_each(|work| work());
    }
}

impl Drop for DeferredEffects {
    fn drop(&mut self) {
        self.run_work();
        self.notifications.take().into_iter().for_each(|notify| notify());
    }
}

impl fmt::Debug for DeferredEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredEffects").finish_non_exhaustive()
    }
}

/// The status of a connection that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Whether the pool is behind a load balancer.
    pub load_balanced: bool,
    /// Whether the pool, or the service, was cleared since the connection was made.
    pub is_stale: bool,
    /// The service at the other end, behind a load balancer and once hello is done.
    pub service: Option<ServiceId>,
}

/// A clear of the pool, or of one service.
#[derive(Clone, Debug)]
pub struct ClearRequest {
    /// Why.
    pub cause: ConnectionError,
    /// Whether connections in use are interrupted.
    pub interrupt: bool,
    /// Only this service.
    pub service: Option<ServiceId>,
}

impl ConnectionStatus {
    /// Looks it up in the machine.
    #[must_use]
    pub fn of<S: PoolTypes>(state: &PoolState<S>, id: ConnId) -> Self {
        Self {
            load_balanced: state.options().load_balanced.unwrap_or(false),
            is_stale: state.is_stale(id),
            service: state.service_of(id),
        }
    }
}

impl Failure<'_> {
    /// Why the connection failed. Its [stage](ConnectionError::stage) says whether it was being
    /// established or in use.
    #[must_use]
    pub fn error(&self) -> &ConnectionError {
        self.error
    }

    /// The number of the connection, as in events: 1, 2, 3, …
    #[must_use]
    pub fn connection_id(&self) -> u64 {
        self.id.number()
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.pool.address()
    }

    /// The service at the other end, behind a load balancer and once hello is done.
    #[must_use]
    pub fn service_id(&self) -> Option<ServiceId> {
        self.pool.connection_status(self.id).service
    }

    /// What [`sdam::verdict`](cenote_core::sdam::verdict) has to know besides the error.
    /// `topology_version` is that of the server's description, if there is one.
    #[must_use]
    pub fn context(&self, topology_version: Option<TopologyVersion>) -> Context {
        let ConnectionStatus { load_balanced, is_stale, service: _ } =
            self.pool.connection_status(self.id);
        Context { load_balanced, current_generation: !is_stale, topology_version }
    }

    /// Does to the pool what SDAM's verdict says, unless the pool, or the service, was cleared since the
    /// connection was made: of connections that fail together, only the first clears. Checked and done under one
    /// lock. Returns whether it cleared.
    ///
    /// # Panics
    ///
    /// For a [`PoolVerdict::Clear`] in load-balanced mode, which SDAM never says with such a
    /// [`context`](Self::context).
    pub fn clear(&self, verdict: PoolVerdict) -> bool {
        self.clear_within(verdict).map(drop).is_some()
    }

    /// As [`clear`](Self::clear), under a lock of the caller's.
    // SD-31
    pub(crate) fn clear_within(&self, verdict: PoolVerdict) -> Option<DeferredEffects> {
        Arc::clone(&self.pool).clear(self.id, &|standing| {
            if standing.is_stale {
                return None;
            }
            let (interrupt, service) = match verdict {
                PoolVerdict::Keep => return None,
                PoolVerdict::Clear { interrupt } => (interrupt, None),
                PoolVerdict::ClearService => (false, Some(standing.service?)),
            };
            Some(ClearRequest { cause: self.error.clone(), interrupt, service })
        })
    }
}

/// Calls the failure handler, if there is one. Never under the lock.
pub fn show<P: FailingPool + 'static>(
    handler: Option<&FailureHandler>,
    pool: &Arc<P>,
    id: ConnId,
    error: &ConnectionError,
) {
    if let Some(handler) = handler {
        let failure = Failure { pool: Arc::<P>::clone(pool), id, error };
        // A panic of the handler must not keep the caller from its answer.
        let _ = catch_unwind(AssertUnwindSafe(|| handler(&failure)));
    }
}

impl fmt::Debug for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("address", self.address())
            .field("connection_id", &self.connection_id())
            .field("error", &self.error)
            .finish()
    }
}
