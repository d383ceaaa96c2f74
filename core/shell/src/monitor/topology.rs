//! The servers of a client as its log tells of them.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use bson::oid::ObjectId;
use cenote_core::address::ServerAddress;
use cenote_core::log::LogSettings;
use cenote_core::monitor::{Event, ServerDescription};

use crate::log::{OF_ENVIRONMENT, topology as log};
use crate::runtime::Lock;

/// What is known of each server, in words, and the id of all of them in the log.
pub(crate) struct TopologyLog {
    id: String,
    settings: LogSettings,
    servers: Mutex<Vec<(Arc<ServerAddress>, String)>>,
}

/// The description of a topology before it is watched, and after.
const NOTHING: &str = "no servers";

impl TopologyLog {
    /// All servers are Unknown.
    pub(crate) fn new(hosts: &[ServerAddress], settings: Option<LogSettings>) -> Self {
        let unknown = ServerDescription::default();
        let server = |address: &ServerAddress| (Arc::new(address.clone()), unknown.to_string());
        let servers = Mutex::new(hosts.iter().map(server).collect());
        let settings = settings.unwrap_or_else(|| *OF_ENVIRONMENT);
        Self { id: ObjectId::new().to_hex(), settings, servers }
    }

    pub(crate) fn opened(&self) {
        if log::is_wanted() {
            let servers = Lock::lock(&self.servers).clone();
            log::topology_monitoring(&self.id, "Starting topology monitoring");
            log::description_changed(&self.id, NOTHING, &shown(&servers));
            for (address, _) in &servers {
                log::server_monitoring(&self.id, address, "Starting server monitoring");
            }
        }
    }

    pub(crate) fn closed(&self) {
        if log::is_wanted() {
            let servers = Lock::lock(&self.servers).clone();
            for (address, _) in &servers {
                log::server_monitoring(&self.id, address, "Stopped server monitoring");
            }
            log::description_changed(&self.id, &shown(&servers), NOTHING);
            log::topology_monitoring(&self.id, "Stopped topology monitoring");
        }
    }

    /// Other servers are watched from now on; those that stay are as they were. To be called without a lock.
    #[cfg(feature = "srv")]
    pub(crate) fn replaced(&self, hosts: &[ServerAddress]) {
        let (previous, new) = {
            let mut servers = Lock::lock(&self.servers);
            let previous = servers.clone();
            let found = |address: &ServerAddress| {
                previous.iter().find(|(its, _)| **its == *address).cloned()
            };
            let unknown = |address: &ServerAddress| {
                (Arc::new(address.clone()), ServerDescription::default().to_string())
            };
            let server = |address| found(address).unwrap_or_else(|| unknown(address));
            *servers = hosts.iter().map(server).collect();
            (previous, servers.clone())
        };
        if log::is_wanted() {
            let is_in = |list: &[(Arc<ServerAddress>, String)], address: &ServerAddress| {
                list.iter().any(|(its, _)| **its == *address)
            };
            for (address, _) in previous.iter().filter(|(address, _)| !is_in(&new, address)) {
                log::server_monitoring(&self.id, address, "Stopped server monitoring");
            }
            log::description_changed(&self.id, &shown(&previous), &shown(&new));
            for (address, _) in new.iter().filter(|(address, _)| !is_in(&previous, address)) {
                log::server_monitoring(&self.id, address, "Starting server monitoring");
            }
        }
    }

    /// To be called without a lock.
    pub(super) fn event(&self, address: &ServerAddress, event: &Event) {
        let Event::ServerDescriptionChanged { new, .. } = event else {
            if log::is_wanted() {
                // The application's `tracing` subscriber may panic.
                let logged = || log::heartbeat(&self.id, address, event, self.settings);
                let _ = catch_unwind(AssertUnwindSafe(logged));
            }
            return;
        };
        self.changed(address, &**new);
    }

    /// To be called without a lock.
    pub(crate) fn changed(&self, address: &ServerAddress, new: &impl Display) {
        let (previous, new) = {
            let mut servers = Lock::lock(&self.servers);
            let previous = shown(&servers);
            for (its, description) in &mut *servers {
                if **its == *address {
                    *description = new.to_string();
                }
            }
            (previous, shown(&servers))
        };
        if log::is_wanted() {
            log::description_changed(&self.id, &previous, &new);
        }
    }
}

/// As in `a:27017: RSPrimary of rs0; b:27017: Unknown: not checked yet`.
fn shown(servers: &[(Arc<ServerAddress>, String)]) -> String {
    let shown: Vec<_> =
        servers.iter().map(|(address, description)| format!("{address}: {description}")).collect();
    shown.join("; ")
}
