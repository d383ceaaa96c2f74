use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use cenote_core::address::ServerAddress;
use cenote_core::client::ServerStatus;
use cenote_core::pool::Snapshot;
use cenote_core::sdam;
use cenote_core::topology::{ServerId, TopologyDescription};

use super::{ClientBuildError, ClientPlan};
use crate::builder::BuiltPool;
use crate::connection::MongoConnector;
use crate::failure::Failure;
use crate::monitor::{MonitorDriver, MonitorShared};
use crate::pool::{Pool, PoolDriver};
use crate::runtime::Network;

/// One host of a client: its pool and its monitor.
pub struct Server<R: Network> {
    pool: Pool<R, MongoConnector<R>>,
    monitor: Option<Arc<MonitorDriver<R>>>,
}

impl<R: Network> Server<R> {
    /// A pool and, unless it is a load balancer, a monitor. Nothing runs before its [`start`](Self::start).
    pub(super) fn build<P>(
        plan: &ClientPlan<P>,
        shared: &Arc<MonitorShared<R>>,
        address: &ServerAddress,
    ) -> Result<Arc<Self>, ClientBuildError>
    where
        P: BuiltPool<Connector = MongoConnector<R>>,
    {
        let monitor = Arc::new(OnceLock::new());
        let of_pool = Arc::clone(&monitor);
        let builder = plan.pool(address)?.on_failure(move |failure| {
            Self::handle_failure(failure, of_pool.get());
        });
        let mut pool = builder.into_plan();
        pool.origin = Some(shared.origin);
        let pool = Pool::start(pool, shared.runtime.clone())?;
        if !plan.is_watched() {
            return Ok(Arc::new(Self::new(pool, None)));
        }
        let driver = MonitorDriver::new(shared, pool.driver())?;
        let _ = monitor.set(Arc::downgrade(&driver));
        Ok(Arc::new(Self::new(pool, Some(driver))))
    }

    const fn new(pool: Pool<R, MongoConnector<R>>, monitor: Option<Arc<MonitorDriver<R>>>) -> Self {
        Self { pool, monitor }
    }

    /// Starts the monitor, or marks the pool of a load balancer ready.
    // LB-08.
    pub(super) fn start(&self, id: ServerId) {
        match &self.monitor {
            Some(monitor) => monitor.start(id),
            None => self.pool.ready(),
        }
    }

    /// Its pool.
    #[must_use]
    pub const fn pool(&self) -> &Pool<R, MongoConnector<R>> {
        &self.pool
    }

    /// Its monitor. A load balancer has none.
    // LB-40.
    #[must_use]
    pub const fn monitor(&self) -> Option<&Arc<MonitorDriver<R>>> {
        self.monitor.as_ref()
    }

    /// Whether a cursor or a transaction keeps its connection: only behind a load balancer may another
    /// connection lead to another server.
    // LB-30.
    #[must_use]
    pub const fn is_load_balancer(&self) -> bool {
        self.monitor.is_none()
    }

    /// The address of its pool.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.pool.driver().address()
    }

    /// What the topology knows of it now, and the counts of its pool.
    pub(super) fn status(&self, topology: &TopologyDescription) -> ServerStatus {
        let address = Arc::clone(self.pool.driver().address());
        let description = topology.server(&address).cloned().unwrap_or_default();
        ServerStatus::new(address, description, self.snapshot())
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.pool.driver().snapshot()
    }

    /// How much its pool has to do.
    // SD-53
    pub(super) fn operations(&self) -> u64 {
        let pool = self.snapshot();
        u64::from(pool.in_use) + pool.waiting
    }

    /// Closes its monitor, and then its pool.
    pub(super) fn close(&self) {
        self.monitor().into_iter().for_each(MonitorDriver::close);
        self.pool.driver().close();
    }

    pub(super) fn request_check(&self) {
        self.monitor().into_iter().for_each(MonitorDriver::request_check);
    }

    /// SDAM's error handling for a connection of the pool, before the pool and the caller get the error.
    // ES-05, SD-24, SD-25, SD-26.
    pub(super) fn handle_failure(failure: &Failure<'_>, monitor: Option<&Weak<MonitorDriver<R>>>) {
        match monitor.and_then(Weak::upgrade) {
            Some(monitor) => monitor.application_failed(failure),
            // A load balancer is never Unknown (LB-22); its pool clears the service alone.
            None => {
                let verdict = sdam::verdict(&failure.context(None), failure.error());
                failure.clear(verdict.pool);
            }
        }
    }
}

/// A server that was removed. It is left for as long as one of its connections is in use, one of its tasks runs, or a
/// handle of its pool is kept.
pub(super) struct RemovedServer<R: Network> {
    pool: Weak<PoolDriver<R, MongoConnector<R>>>,
    monitor: Option<Weak<MonitorDriver<R>>>,
}

impl<R: Network> RemovedServer<R> {
    pub(super) fn of(server: &Server<R>) -> Self {
        let monitor = server.monitor().map(Arc::downgrade);
        Self { pool: Arc::downgrade(server.pool().driver()), monitor }
    }

    pub(super) fn is_left(&self) -> bool {
        self.pool.strong_count() > 0
    }

    pub(super) fn upgrade(&self) -> Option<Arc<Server<R>>> {
        let pool = Pool::of_driver(self.pool.upgrade()?);
        let monitor = self.monitor.as_ref().and_then(Weak::upgrade);
        Some(Arc::new(Server::new(pool, monitor)))
    }
}

impl<R: Network> fmt::Debug for Server<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("pool", &self.pool).finish_non_exhaustive()
    }
}
