//! Failed connections, as the failure handler sees them: the place where SDAM comes in.

use std::fmt;

use crate::runtime::contain;
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
///     // The server's description first, under the lock that its checks take, too; then:
///     failure.clear(verdict.pool);
/// }
/// ```
pub struct Failure<'a> {
    address: &'a ServerAddress,
    id: ConnId,
    error: &'a ConnectionError,
    status: &'a dyn Fn() -> ConnectionStatus,
    clear: &'a dyn Fn(PoolVerdict) -> bool,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "clients have steps"))]
    record: &'a dyn Fn(u64),
}

/// The callback of [`Builder::on_failure`](crate::builder::Builder::on_failure).
pub type FailureHandler = Box<dyn Fn(&Failure<'_>) + Send + Sync>;

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

impl<'a> Failure<'a> {
    /// `status` looks the connection up under the lock of its pool, `clear` does so and clears, and `record` writes
    /// the step of the client into the pool's trace.
    pub(crate) const fn new(
        address: &'a ServerAddress,
        id: ConnId,
        error: &'a ConnectionError,
        status: &'a dyn Fn() -> ConnectionStatus,
        clear: &'a dyn Fn(PoolVerdict) -> bool,
        record: &'a dyn Fn(u64),
    ) -> Self {
        Self { address, id, error, status, clear, record }
    }

    pub(crate) fn show(&self, handler: &FailureHandler) {
        // A panic of the handler must not keep the caller from its answer.
        contain(|| handler(self));
    }

    /// Why the connection failed. Its [stage](ConnectionError::stage) says whether it was being
    /// established or in use.
    #[must_use]
    pub const fn error(&self) -> &ConnectionError {
        self.error
    }

    /// The number of the connection, as in events: 1, 2, 3, …
    #[must_use]
    pub fn connection_id(&self) -> u64 {
        self.id.number()
    }

    /// The server that the pool is for.
    #[must_use]
    pub const fn address(&self) -> &ServerAddress {
        self.address
    }

    /// The service at the other end, behind a load balancer and once hello is done.
    #[must_use]
    pub fn service_id(&self) -> Option<ServiceId> {
        self.status().service
    }

    /// What [`sdam::verdict`](cenote_core::sdam::verdict) has to know besides the error.
    /// `topology_version` is that of the server's description, if there is one.
    #[must_use]
    pub fn context(&self, topology_version: Option<TopologyVersion>) -> Context {
        let ConnectionStatus { load_balanced, is_stale, service: _ } = self.status();
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
        (self.clear)(verdict)
    }

    /// By this step of the client the server is another.
    #[cfg(feature = "tls")]
    pub(crate) fn record(&self, step: u64) {
        (self.record)(step);
    }

    /// The connection as it is now, looked up under the pool's lock.
    pub(crate) fn status(&self) -> ConnectionStatus {
        (self.status)()
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
