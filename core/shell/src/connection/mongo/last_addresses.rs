use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The addresses at which each host was reached last, for a resolver that does not answer.
#[derive(Debug, Default)]
pub(super) struct LastAddresses(Mutex<BTreeMap<(String, u16), Vec<SocketAddr>>>);

/// As many as a client has servers: a member may name others each time.
const MAX: usize = 1_000;

impl LastAddresses {
    pub(super) fn get(&self, host: &str, port: u16) -> Option<Vec<SocketAddr>> {
        self.hosts().get(&(host.to_owned(), port)).cloned()
    }

    /// A connection was established to one of these addresses.
    pub(super) fn learn(&self, host: &str, port: u16, addresses: Vec<SocketAddr>) {
        let mut hosts = self.hosts();
        if hosts.len() >= MAX {
            hosts.pop_first();
        }
        hosts.insert((host.to_owned(), port), addresses);
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<(String, u16), Vec<SocketAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
