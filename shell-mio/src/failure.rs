use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{ConnId, Input, ServiceId};
use cenote_core::sdam::{Context, PoolVerdict, TopologyVersion};

use crate::connector::Connector;
use crate::fed::Fed;
use crate::shared::Shared;

/// A connection that failed, as [`Builder::on_failure`](crate::Builder::on_failure) shows it to
/// whoever watches the server, before the pool hears of it (ES-05, T-03).
///
/// ```no_run
/// use cenote_core::sdam;
/// use cenote_mio::Pool;
///
/// # fn example() -> Result<(), cenote_mio::BuildError> {
/// let pool = Pool::builder("mongodb://db.example.com")?
///     .on_failure(|failure| {
///         let verdict = sdam::verdict(&failure.context(None), failure.error());
///         // The server's description first, under the lock that the monitor takes, too; then:
///         failure.clear(verdict.pool);
///     })
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub struct Failure<'a, K: Connector> {
    shared: &'a Arc<Shared<K>>,
    id: ConnId,
    error: &'a ConnectionError,
}

/// Who is shown failures.
pub(crate) type Watcher<K> = Box<dyn Fn(&Failure<'_, K>) + Send + Sync>;

impl<K: Connector> Failure<'_, K> {
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
        &self.shared.address
    }

    /// The service at the other end, behind a load balancer and once hello is done.
    #[must_use]
    pub fn service_id(&self) -> Option<ServiceId> {
        self.shared.lock().state.service_of(self.id)
    }

    /// What [`sdam::verdict`](cenote_core::sdam::verdict) has to know besides the error.
    /// `topology_version` is that of the server's description, if there is one.
    #[must_use]
    pub fn context(&self, topology_version: Option<TopologyVersion>) -> Context {
        let desk = self.shared.lock();
        Context {
            load_balanced: desk.state.options().load_balanced.unwrap_or(false),
            current_generation: !desk.state.is_stale(self.id),
            topology_version,
        }
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
        self.clear_within(verdict).map(Fed::settle).is_some()
    }

    /// As [`clear`](Self::clear), under a lock of the caller's.
    pub(crate) fn clear_within(&self, verdict: PoolVerdict) -> Option<Fed<K>> {
        let desk = self.shared.lock();
        if desk.state.is_stale(self.id) {
            return None;
        }
        let (interrupt, service) = match verdict {
            PoolVerdict::Keep => return None,
            PoolVerdict::Clear { interrupt } => (interrupt, None),
            PoolVerdict::ClearService => (false, Some(desk.state.service_of(self.id)?)),
        };
        let cause = self.error.clone();
        Some(self.shared.feed_locked(desk, Input::Clear { cause, interrupt, service }))
    }
}

/// Shows a failure to whoever watches the server, if anybody does. Never under the lock.
pub(crate) fn show<K: Connector>(shared: &Arc<Shared<K>>, id: ConnId, error: &ConnectionError) {
    if let Some(watcher) = &shared.watcher {
        let failure = Failure { shared, id, error };
        // One that panics has said so; whoever waits for the connection is not to suffer.
        let _ = catch_unwind(AssertUnwindSafe(|| watcher(&failure)));
    }
}

impl<K: Connector> fmt::Debug for Failure<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("address", &self.shared.address)
            .field("connection_id", &self.connection_id())
            .field("error", &self.error)
            .finish()
    }
}
