//! Connections that fail, as whoever watches the server sees them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{ConnId, PoolState, PoolTypes, ServiceId};
use cenote_core::sdam::{Context, PoolVerdict, TopologyVersion};

/// A connection that failed, as `Builder::on_failure` shows it to whoever watches the server, before
/// the pool hears of it (ES-05, T-03).
///
/// ```
/// use cenote_core::sdam;
/// use cenote_shell::failure::Failure;
///
/// /// For `Pool::builder(uri)?.on_failure(watch)`.
/// fn watch(failure: &Failure<'_>) {
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

/// Who is shown failures.
pub type FailureHandler = Box<dyn Fn(&Failure<'_>) + Send + Sync>;

/// A pool with a lock of the shell's own choice, as far as its failures are concerned.
pub trait FailingPool: Send + Sync {
    /// The server that the pool is for.
    fn address(&self) -> &ServerAddress;

    /// How things stand with a connection, looked up under the pool's lock.
    fn standing(&self, id: ConnId) -> ConnectionStatus;

    /// Asks `judge` how things stand with a connection, and clears the pool as that says, all under
    /// one lock. What comes of it waits for the caller to settle it. `None`: nothing was cleared.
    fn clear(
        self: Arc<Self>,
        id: ConnId,
        judge: &dyn Fn(ConnectionStatus) -> Option<ClearRequest>,
    ) -> Option<DeferredEffects>;
}

/// What comes of an input that was fed under a lock of the caller's, to be called when that lock is
/// given back: only then is anything told or done, and anybody woken.
pub type DeferredEffects = Box<dyn FnOnce()>;

/// How things stand with a connection that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Whether the pool is behind a load balancer.
    pub load_balanced: bool,
    /// Whether the pool, or the service, was cleared since the connection was made.
    pub is_stale: bool,
    /// The service at the other end, behind a load balancer and once hello is done.
    pub service: Option<ServiceId>,
}

/// What is cleared.
#[derive(Clone, Debug)]
pub struct ClearRequest {
    /// Why.
    pub cause: ConnectionError,
    /// Whether connections in use are broken off.
    pub interrupt: bool,
    /// Only this service.
    pub service: Option<ServiceId>,
}

impl ConnectionStatus {
    /// As the machine has it.
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
        self.pool.standing(self.id).service
    }

    /// What [`sdam::verdict`](cenote_core::sdam::verdict) has to know besides the error.
    /// `topology_version` is that of the server's description, if there is one.
    #[must_use]
    pub fn context(&self, topology_version: Option<TopologyVersion>) -> Context {
        let ConnectionStatus { load_balanced, is_stale, service: _ } = self.pool.standing(self.id);
        Context { load_balanced, current_generation: !is_stale, topology_version }
    }

    /// Does to the pool what SDAM's verdict says, unless the pool, or the service, was cleared since
    /// the connection was made: of connections that fail together one clears (SD-20, T-62). That is
    /// looked up and done at once, whoever else clears meanwhile. Says whether it cleared.
    ///
    /// # Panics
    ///
    /// For a [`PoolVerdict::Clear`] in load-balanced mode, which SDAM never says with such a
    /// [`context`](Self::context).
    pub fn clear(&self, verdict: PoolVerdict) -> bool {
        self.clear_within(verdict).map(|settle| settle()).is_some()
    }

    /// As [`clear`](Self::clear), under a lock of the caller's.
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

/// Shows a failure to whoever watches the server, if anybody does. Never under the lock.
pub fn show<P: FailingPool + 'static>(
    watcher: Option<&FailureHandler>,
    pool: &Arc<P>,
    id: ConnId,
    error: &ConnectionError,
) {
    if let Some(watcher) = watcher {
        let failure = Failure { pool: Arc::<P>::clone(pool), id, error };
        // One that panics has said so; whoever waits for the connection is not to suffer.
        let _ = catch_unwind(AssertUnwindSafe(|| watcher(&failure)));
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
