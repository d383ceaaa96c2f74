use std::sync::{Arc, Weak};

use cenote_core::address::ServerAddress;
use cenote_core::client::{Candidate, ServerStatus, is_hopeless};
use cenote_core::pool::Snapshot;

use crate::failure::Failure;
use crate::monitor::{MonitorDriver, MonitorRuntime};

/// A pool of a client, to look at.
pub trait ClientPool {
    /// The server that it is for.
    fn shared_address(&self) -> &Arc<ServerAddress>;

    /// Its state and its counts.
    fn snapshot(&self) -> Snapshot;
}

/// One host: its pool, and who watches it.
#[derive(Debug)]
pub struct Server<P, M> {
    /// Its pool.
    pub pool: P,
    /// Who watches it.
    pub watching: Watching<M>,
}

/// Who watches a server.
#[derive(Debug)]
pub enum Watching<M> {
    /// A monitor.
    Monitor(Arc<MonitorDriver<M>>),
    /// There is nothing to watch (LB-40).
    LoadBalancer,
}

impl<P: ClientPool, M: MonitorRuntime> Server<P, M> {
    /// What there is to know of it now.
    pub fn status(&self) -> ServerStatus {
        let description = self.watch().map(|watch| watch.description());
        ServerStatus::new(Arc::clone(self.pool.shared_address()), description, self.pool.snapshot())
    }

    /// What it is now.
    pub(super) fn candidate(&self) -> Candidate {
        self.watch().map_or(Candidate::LOAD_BALANCER, |watch| watch.candidate())
    }

    pub(super) fn is_hopeless(&self) -> bool {
        self.watch().is_some_and(|watch| is_hopeless(&watch.description()))
    }

    /// Has it checked as soon as may be.
    pub fn request_check(&self) {
        self.watch().into_iter().for_each(MonitorDriver::request_check);
    }
}

impl<P, M> Server<P, M> {
    /// Its monitor, if it has one.
    pub const fn watch(&self) -> Option<&Arc<MonitorDriver<M>>> {
        match &self.watching {
            Watching::Monitor(watch) => Some(watch),
            Watching::LoadBalancer => None,
        }
    }
}

/// What becomes of a failure of the application's in a pool of a client: SDAM first, before the pool
/// and the caller hear of it (ES-05).
pub fn failed<M: MonitorRuntime>(failure: &Failure<'_>, watch: Option<&Weak<MonitorDriver<M>>>) {
    match watch.and_then(Weak::upgrade) {
        Some(watch) => watch.application_failed(failure),
        // Behind a load balancer nobody watches, and nothing is Unknown (LB-22).
        None => {
            let verdict = cenote_core::sdam::verdict(&failure.context(None), failure.error());
            failure.clear(verdict.pool);
        }
    }
}
