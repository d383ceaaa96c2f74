//! Adds and removes servers while the client is in use, as the topology changes.

use std::sync::Weak;

use cenote_core::address::ServerAddress;
use cenote_core::topology::ServerId;

use super::servers::Servers;
use super::{ClientPlan, Server};
use crate::builder::BuiltPool;
use crate::connection::MongoConnector;
use crate::log;
use crate::monitor::{Members, MonitorShared};
use crate::runtime::Network;

/// What servers are made of. Ends with the client.
pub(super) struct Discovery<R: Network, P: BuiltPool> {
    pub(super) plan: ClientPlan<P>,
    pub(super) shared: Weak<MonitorShared<R>>,
    pub(super) servers: Weak<Servers<R>>,
}

impl<R: Network, P: BuiltPool<Connector = MongoConnector<R>>> Members for Discovery<R, P> {
    fn add(&self, id: ServerId, address: &ServerAddress) {
        let (Some(shared), Some(servers)) = (self.shared.upgrade(), self.servers.upgrade()) else {
            return;
        };
        // Those of the connection string are there already.
        if let Some(server) = servers.list().server(address) {
            return server.start(id);
        }
        match Server::build(&self.plan, &shared, address) {
            Ok(server) => {
                // It runs before it is on the list, so that nothing starts in a client that was closed meanwhile.
                server.start(id);
                if !servers.add(&server) {
                    server.close();
                }
            }
            Err(error) => log::server_not_added(address, &error),
        }
        shared.news.notify_all();
    }

    fn remove(&self, address: &ServerAddress) {
        let (Some(shared), Some(servers)) = (self.shared.upgrade(), self.servers.upgrade()) else {
            return;
        };
        if let Some(server) = servers.remove(address) {
            server.close();
        }
        shared.news.notify_all();
    }
}
