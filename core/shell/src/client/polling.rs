//! Looks the SRV records of a sharded cluster up again, and follows them.

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::{Hosts, SrvChanges, SrvPolling};
use cenote_core::uri::srv::{LookupError, SrvRecord};

use super::servers::{ServerList, Servers};
use super::srv::look_up_limit;
use super::{ClientPlan, Server};
use crate::builder::BuiltPool;
use crate::connection::MongoConnector;
use crate::log;
use crate::monitor::{MonitorDriver, MonitorShared};
use crate::platform::random;
use crate::runtime::{Lock, Network};
use crate::srv::Questions;

/// What the task works on.
struct Poller<R: Network, P: BuiltPool> {
    plan: ClientPlan<P>,
    shared: Arc<MonitorShared<R>>,
    servers: Arc<Servers<R>>,
}

/// Starts the task, if the servers of this client are to be followed.
pub(super) fn start<R: Network, P>(
    plan: ClientPlan<P>,
    shared: &Arc<MonitorShared<R>>,
    servers: &Arc<Servers<R>>,
) -> Option<R::Task>
where
    P: BuiltPool<Connector = MongoConnector<R>> + 'static,
{
    let (ttl, shortest) = (plan.srv.ttl?, plan.srv.shortest_interval);
    let polling = SrvPolling::new(shared.now(), &plan.uri, ttl, shortest)?;
    // The first checks may have ended meanwhile: what they have found is looked at again.
    *Lock::lock(&shared.srv) = Some(polling);
    for server in &*servers.list().servers {
        let kind = server.status().kind;
        kind.into_iter().for_each(|kind| shared.observe_kind(kind));
    }
    let poller = Poller { plan, shared: Arc::clone(shared), servers: Arc::clone(servers) };
    Some(shared.runtime.spawn(async move { poller.run().await }))
}

impl<R: Network, P: BuiltPool<Connector = MongoConnector<R>>> Poller<R, P> {
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
                name_servers: self.plan.srv.name_servers.clone(),
                limit: look_up_limit(&self.plan.uri),
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
        let list = self.servers.list();
        let changes = {
            let mut polling = Lock::lock(&self.shared.srv);
            let Some(polling) = &mut *polling else { return };
            polling.rescan(self.shared.now(), list.hosts.all(), records, random)
        };
        changes.problems.iter().for_each(log::srv_records);
        if !changes.added.is_empty() || !changes.removed.is_empty() {
            self.change(&list, &changes);
        }
    }

    /// Servers that stay are the same as before.
    fn change(&self, list: &ServerList<R>, changes: &SrvChanges) {
        let added: Vec<_> =
            changes.added.iter().filter_map(|address| self.build(address)).collect();
        let is_removed =
            |server: &Arc<Server<R>>| changes.removed.contains(server.pool().driver().address());
        let (removed, stay): (Vec<_>, Vec<_>) = list.servers.iter().cloned().partition(is_removed);
        let servers: Arc<[_]> = stay.into_iter().chain(added.iter().cloned()).collect();
        if servers.is_empty() {
            return; // None of the new ones could be built.
        }
        let addresses: Vec<_> =
            servers.iter().map(|server| (**server.pool().driver().address()).clone()).collect();
        self.shared.topology.replaced(&addresses);
        // They run before they are on the list, so that nothing starts in a client that was closed meanwhile.
        added.iter().for_each(|server| server.start());
        let list = ServerList { hosts: Hosts::new(&addresses), servers };
        let is_replaced = self.servers.replace(list, &removed);
        #[cfg(unix)]
        if is_replaced {
            self.servers.inspect(&added);
        }
        let ended = if is_replaced { removed } else { added };
        for server in ended {
            server.monitor().into_iter().for_each(MonitorDriver::close);
            server.pool().driver().close();
        }
        self.shared.news.notify_all();
    }

    fn build(&self, address: &ServerAddress) -> Option<Arc<Server<R>>> {
        let built = Server::build(&self.plan, &self.shared, address);
        built.inspect_err(|error| log::server_not_added(address, error)).ok()
    }
}
