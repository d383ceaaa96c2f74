use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use cenote_core::address::ServerAddress;
use cenote_core::client::Hosts;

use super::Server;
use super::server::RemovedServer;
#[cfg(unix)]
use crate::inspect::Inspector;
use crate::runtime::{Lock, Network};

/// The servers of a client, which may change while it is in use.
pub(super) struct Servers<R: Network> {
    /// Locked for as long as it takes to copy or to replace it. A child process only reads.
    list: RwLock<Arc<ServerList<R>>>,
    /// Those that were removed.
    removed: Mutex<Vec<RemovedServer<R>>>,
    is_closed: AtomicBool,
    #[cfg(unix)]
    pub(super) inspector: Option<Inspector>,
}

/// The servers at one moment.
pub(super) struct ServerList<R: Network> {
    pub(super) hosts: Hosts,
    /// Those of the connection string in its order, then those that were found.
    pub(super) servers: Arc<[Arc<Server<R>>]>,
}

impl<R: Network> Servers<R> {
    pub(super) fn new(list: ServerList<R>) -> Self {
        let list = RwLock::new(Arc::new(list));
        Self {
            list,
            removed: Mutex::default(),
            is_closed: AtomicBool::new(false),
            #[cfg(unix)]
            inspector: None,
        }
    }

    #[cfg(unix)]
    pub(super) fn with_inspector(self, inspector: Option<Inspector>) -> Self {
        Self { inspector, ..self }
    }

    pub(super) fn list(&self) -> Arc<ServerList<R>> {
        Arc::clone(&self.read())
    }

    /// Those of the list, and those that were removed and of which something is left.
    pub(super) fn all(&self) -> Vec<Arc<Server<R>>> {
        let mut all = self.list().servers.to_vec();
        all.extend(Lock::lock(&self.removed).iter().filter_map(RemovedServer::upgrade));
        all
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// No server is added from now on. Returns whether that was so already.
    pub(super) fn close(&self) -> bool {
        // Under the lock, so that a server is either on the list that is closed, or not added.
        let _list = self.read();
        self.is_closed.swap(true, Ordering::AcqRel)
    }

    fn read(&self) -> RwLockReadGuard<'_, Arc<ServerList<R>>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes, which come one after another: from the machine of the topology.
impl<R: Network> Servers<R> {
    /// Adds a server, unless the client is closed. Returns whether it did.
    pub(super) fn add(&self, server: &Arc<Server<R>>) -> bool {
        let mut current = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed() {
            return false;
        }
        let servers = current.servers.iter().chain([server]).cloned();
        *current = Arc::new(ServerList::new(servers.collect()));
        #[cfg(unix)]
        if let Some(inspector) = &self.inspector {
            inspector.show(server.pool().driver().inspected());
        }
        true
    }

    /// Removes a server, unless the client is closed.
    pub(super) fn remove(&self, address: &ServerAddress) -> Option<Arc<Server<R>>> {
        let mut current = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let removed = current.server(address).filter(|_| !self.is_closed()).cloned()?;
        let servers = current.servers.iter().filter(|server| !Arc::ptr_eq(server, &removed));
        *current = Arc::new(ServerList::new(servers.cloned().collect()));
        let mut leaving = Lock::lock(&self.removed);
        leaving.retain(RemovedServer::is_left);
        leaving.push(RemovedServer::of(&removed));
        Some(removed)
    }
}

impl<R: Network> ServerList<R> {
    pub(super) fn new(servers: Arc<[Arc<Server<R>>]>) -> Self {
        let addresses = servers.iter().map(|server| server.address().clone());
        Self { hosts: Hosts::new(&addresses.collect::<Vec<_>>()), servers }
    }

    pub(super) fn server(&self, address: &ServerAddress) -> Option<&Arc<Server<R>>> {
        self.servers.get(self.hosts.place_of(address)?)
    }
}
