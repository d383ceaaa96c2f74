use core::fmt;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::error::ConnectionError;
use crate::monitor::ServerDescription;
use crate::pool::Snapshot;
use crate::topology::TopologyDescription;

/// One server of a client as it was at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// As the connection string has it, or as the member of a replica set that named it.
    pub address: Arc<ServerAddress>,
    /// Its last known type; `None` is Unknown. A load balancer is always one.
    pub kind: Option<ServerKind>,
    /// Its last reply, or why it is Unknown. Empty for a load balancer, which has no monitor.
    pub description: Arc<ServerDescription>,
    /// The state and the counts of its pool.
    pub pool: Snapshot,
}

impl ServerStatus {
    /// `description` is the topology's.
    #[must_use]
    pub fn new(
        address: Arc<ServerAddress>,
        description: Arc<ServerDescription>,
        pool: Snapshot,
    ) -> Self {
        Self { address, kind: description.kind(), description, pool }
    }
}

/// A topology and its servers in one line, with advice for those that do not work.
#[must_use]
pub fn seen(
    topology: &TopologyDescription,
    servers: impl IntoIterator<Item = ServerStatus>,
) -> String {
    let servers = servers.into_iter().map(|it| Seen(&it.address, &it.description).to_string());
    written(topology, servers)
}

/// The same for all servers of the topology.
pub(crate) fn all_seen(topology: &TopologyDescription) -> String {
    written(topology, topology.servers().map(|(address, server)| Seen(address, server).to_string()))
}

fn written(topology: &TopologyDescription, servers: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    // Writing into memory does not fail.
    let _ = topology.write_with(&mut text, servers);
    text
}

/// Without the pool.
struct Seen<'a>(&'a ServerAddress, &'a ServerDescription);

/// As in `db.example.com:27017: RSPrimary of rs0, round trip 1.2ms, tags dc: ny`, or
/// `db.example.com:27017: Unknown: TCP connect: … (check host and port, …)`.
impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(address, description) = self;
        write!(f, "{address}: {}", description.details())?;
        match description.error.as_ref().and_then(ConnectionError::advice) {
            Some(advice) => write!(f, " ({advice})"),
            None => Ok(()),
        }
    }
}

/// As in `db.example.com:27017: RSPrimary of rs0, round trip 1.2ms [ready  gen 0 | …]`; where the server does not
/// work, with what may be done about it.
impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", Seen(&self.address, &self.description), self.pool)
    }
}
