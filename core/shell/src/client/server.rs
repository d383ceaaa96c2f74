use std::fmt;
use std::sync::{Arc, Weak};

use cenote_core::address::ServerAddress;
use cenote_core::client::ServerStatus;
use cenote_core::pool::Snapshot;
use cenote_core::topology::TopologyDescription;

use crate::connection::MongoConnector;
use crate::pool::{Pool, PoolDriver};
use crate::runtime::Network;

/// One host of a client: its pool.
pub struct Server<R: Network> {
    pool: Pool<R, MongoConnector<R>>,
    is_load_balancer: bool,
}

impl<R: Network> Server<R> {
    pub(super) const fn new(pool: Pool<R, MongoConnector<R>>, is_load_balancer: bool) -> Self {
        Self { pool, is_load_balancer }
    }

    /// Its pool.
    #[must_use]
    pub const fn pool(&self) -> &Pool<R, MongoConnector<R>> {
        &self.pool
    }

    /// Whether a cursor or a transaction keeps its connection: only behind a load balancer may another
    /// connection lead to another server.
    // LB-30.
    #[must_use]
    pub const fn is_load_balancer(&self) -> bool {
        self.is_load_balancer
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
}

/// A server that was removed. It is left for as long as one of its connections is in use, one of its tasks runs, or a
/// handle of its pool is kept.
pub(super) struct RemovedServer<R: Network> {
    pool: Weak<PoolDriver<R, MongoConnector<R>>>,
    is_load_balancer: bool,
}

impl<R: Network> RemovedServer<R> {
    pub(super) fn of(server: &Server<R>) -> Self {
        let Server { pool, is_load_balancer } = server;
        Self { pool: Arc::downgrade(pool.driver()), is_load_balancer: *is_load_balancer }
    }

    pub(super) fn is_left(&self) -> bool {
        self.pool.strong_count() > 0
    }

    pub(super) fn upgrade(&self) -> Option<Arc<Server<R>>> {
        let pool = Pool::of_driver(self.pool.upgrade()?);
        Some(Arc::new(Server::new(pool, self.is_load_balancer)))
    }
}

impl<R: Network> fmt::Debug for Server<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("pool", &self.pool).finish_non_exhaustive()
    }
}
