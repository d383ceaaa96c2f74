//! The servers of a run, as they were at the end of the work.

use cenote_core::client::ServerStatus;
use cenote_core::pool::Snapshot;
use cenote_core::topology::TopologyDescription;
use serde::Serialize;

/// What the client knew of the deployment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deployment {
    /// The type of the topology.
    pub(super) kind: &'static str,
    pub(super) set_name: Option<String>,
    pub(super) servers: Vec<ServerReport>,
}

/// A server and its pool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerReport {
    address: String,
    kind: &'static str,
    generation: u64,
    connections: u32,
    in_use: u32,
    /// The same in words.
    #[serde(skip)]
    pub(super) text: String,
}

impl Deployment {
    pub(super) fn of(topology: &TopologyDescription, servers: &[ServerStatus]) -> Self {
        Self {
            kind: topology.kind.name(),
            set_name: topology.set_name.clone(),
            servers: servers.iter().map(ServerReport::of).collect(),
        }
    }
}

impl ServerReport {
    fn of(server: &ServerStatus) -> Self {
        let Snapshot { generation, total, in_use, .. } = server.pool;
        Self {
            address: server.address.to_string(),
            kind: server.kind.map_or("Unknown", |kind| kind.name()),
            generation,
            connections: total,
            in_use,
            text: server.to_string(),
        }
    }
}

/// The pools in one line: of several, which servers they are of, and in short.
pub(super) fn pools(servers: &[ServerStatus]) -> String {
    if let [server] = servers {
        return server.pool.to_string();
    }
    let pools = servers.iter().map(|ServerStatus { address, pool, .. }| {
        format!("{address} {}, {} of {} in use", pool.status, pool.in_use, pool.total)
    });
    pools.collect::<Vec<_>>().join(" | ")
}
