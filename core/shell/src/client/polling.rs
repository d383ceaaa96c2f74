//! Looks the SRV records of a sharded cluster up again, for the topology to follow them.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::client::SrvPolling;
use cenote_core::uri::srv::{LookupError, SrvRecord};

use super::ClientPlan;
use super::servers::Servers;
use super::srv::look_up_limit;
use crate::builder::BuiltPool;
use crate::client::name_service::{NameServers, Questions};
use crate::log;
use crate::monitor::MonitorShared;
use crate::runtime::platform::random;
use crate::runtime::{Lock, Network};

/// What the task works on.
pub(super) struct Poller<R: Network> {
    name_servers: NameServers,
    limit: Option<Duration>,
    shared: Arc<MonitorShared<R>>,
    servers: Arc<Servers<R>>,
}

impl<R: Network> Poller<R> {
    /// `None` if the servers of this client are not to be followed.
    pub(super) fn new<P: BuiltPool>(
        plan: &ClientPlan<P>,
        shared: &Arc<MonitorShared<R>>,
        servers: &Arc<Servers<R>>,
    ) -> Option<Self> {
        let (ttl, shortest) = (plan.srv.ttl?, plan.srv.shortest_interval);
        let polling = SrvPolling::new(shared.now(), &plan.uri, ttl, shortest)?;
        *Lock::lock(&shared.srv) = Some(polling);
        Some(Self {
            name_servers: plan.srv.name_servers.clone(),
            limit: look_up_limit(&plan.uri),
            shared: Arc::clone(shared),
            servers: Arc::clone(servers),
        })
    }

    /// Starts the task.
    pub(super) fn start(self) -> R::Task {
        let shared = Arc::clone(&self.shared);
        shared.runtime.spawn(async move { self.run().await })
    }

    async fn run(&self) {
        while let Some((name, due)) = self.next() {
            let Some(due) = self.shared.time_of(due) else { return };
            self.shared.runtime.sleep_until(due).await;
            // A check may have found meanwhile that the servers are no routers.
            if self.next().is_none() {
                return;
            }
            let questions = Questions {
                srv: name,
                txt: None,
                name_servers: self.name_servers.clone(),
                limit: self.limit,
            };
            self.follow(&questions.ask().await.srv);
        }
    }

    fn next(&self) -> Option<(String, cenote_core::pool::Instant)> {
        let polling = Lock::lock(&self.shared.srv);
        let polling = polling.as_ref()?;
        Some((polling.srv_name(), polling.next_rescan()?))
    }

    fn follow(&self, records: &Result<Vec<SrvRecord>, LookupError>) {
        let hosts = self.servers.list().hosts.all().to_vec();
        let changes = {
            let mut polling = Lock::lock(&self.shared.srv);
            let Some(polling) = &mut *polling else { return };
            polling.rescan(self.shared.now(), &hosts, records, random)
        };
        changes.problems.iter().for_each(log::srv_records);
        if let Some(input) = changes.into_input(hosts) {
            self.shared.topology.feed(self.shared.now(), input);
            self.shared.perform_actions();
        }
    }
}
