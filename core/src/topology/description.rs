//! The description of a topology.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::error::{ConnectionError, OneLine};
use crate::monitor::ServerDescription;

/// What is known of a deployment.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct TopologyDescription {
    /// Its type.
    pub kind: TopologyKind,
    /// The name of the replica set: that of the connection string, or the first that a member has said.
    pub set_name: Option<String>,
    /// The highest `setVersion` that a primary has reported.
    pub max_set_version: Option<i64>,
    /// The highest `electionId` that a primary has reported.
    pub max_election_id: Option<[u8; 12]>,
    pub(crate) servers: BTreeMap<Arc<ServerAddress>, Arc<ServerDescription>>,
    pub(crate) excluded: BTreeMap<Arc<ServerAddress>, ConnectionError>,
}

/// The type of a topology in Server Discovery and Monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TopologyKind {
    /// No server has answered yet.
    #[default]
    Unknown,
    /// One server alone: a standalone server, or that of a direct connection.
    Single,
    /// A replica set whose primary is not known.
    ReplicaSetNoPrimary,
    /// A replica set with a primary.
    ReplicaSetWithPrimary,
    /// The routers of a sharded cluster.
    Sharded,
    /// A load balancer.
    LoadBalanced,
}

impl TopologyDescription {
    /// The servers, in the order of their addresses.
    pub fn servers(
        &self,
    ) -> impl ExactSizeIterator<Item = (&Arc<ServerAddress>, &Arc<ServerDescription>)> + Clone {
        self.servers.iter()
    }

    /// One of the servers.
    #[must_use]
    pub fn server(&self, address: &ServerAddress) -> Option<&Arc<ServerDescription>> {
        self.servers.get(address)
    }

    /// The primary of the replica set; there is one at most.
    #[must_use]
    pub fn primary(&self) -> Option<(&Arc<ServerAddress>, &Arc<ServerDescription>)> {
        self.servers().find(|(_, server)| server.kind() == Some(ServerKind::RsPrimary))
    }

    /// Whether operations can be sent to a server, whose pool is ready then: it holds data, or it is the one server of a
    /// [`Single`](TopologyKind::Single) topology and answers, whatever it is.
    // SD-03
    #[must_use]
    pub fn is_usable(&self, address: &ServerAddress) -> bool {
        let is_usable = |server: &Arc<ServerDescription>| match self.kind {
            TopologyKind::Single => server.is_known(),
            TopologyKind::Unknown
            | TopologyKind::ReplicaSetNoPrimary
            | TopologyKind::ReplicaSetWithPrimary
            | TopologyKind::Sharded
            | TopologyKind::LoadBalanced => server.is_data_bearing(),
        };
        self.server(address).is_some_and(is_usable)
    }

    /// Hosts of the connection string that answer and are not used, each with what to do about it.
    pub fn excluded(
        &self,
    ) -> impl ExactSizeIterator<Item = (&Arc<ServerAddress>, &ConnectionError)> {
        self.excluded.iter()
    }

    /// Whether it has no server that is known, and hosts of the connection string were found not to be part of it.
    pub(crate) fn is_lost(&self) -> bool {
        !self.excluded.is_empty() && !self.servers().any(|(_, server)| server.is_known())
    }

    /// `logicalSessionTimeoutMinutes`: the least of all servers that hold data; `None` as soon as one of them has no
    /// sessions.
    // ST-14
    #[must_use]
    pub fn session_timeout_minutes(&self) -> Option<i64> {
        let replies = self.servers.values().filter(|server| server.is_data_bearing());
        let timeouts: Option<Vec<i64>> = replies
            .map(|server| server.hello.as_deref().and_then(|hello| hello.session_timeout_minutes))
            .collect();
        timeouts?.into_iter().min()
    }

    /// Whether this crate supports a wire version of each server.
    ///
    /// # Errors
    ///
    /// The first server whose versions are too old or too new.
    // ST-13
    pub fn check_wire_versions(&self) -> Result<(), ConnectionError> {
        self.servers.iter().try_for_each(|(address, server)| match server.hello.as_deref() {
            Some(hello) => hello.check_wire_versions(address),
            None => Ok(()),
        })
    }
}

impl TopologyKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Single,
        Self::ReplicaSetNoPrimary,
        Self::ReplicaSetWithPrimary,
        Self::Sharded,
        Self::LoadBalanced,
    ];

    /// As the specifications write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Single => "Single",
            Self::ReplicaSetNoPrimary => "ReplicaSetNoPrimary",
            Self::ReplicaSetWithPrimary => "ReplicaSetWithPrimary",
            Self::Sharded => "Sharded",
            Self::LoadBalanced => "LoadBalanced",
        }
    }

    /// Whether it is a replica set.
    #[must_use]
    pub const fn is_replica_set(self) -> bool {
        matches!(self, Self::ReplicaSetNoPrimary | Self::ReplicaSetWithPrimary)
    }
}

impl fmt::Display for TopologyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// As in `ReplicaSetWithPrimary rs0: a:27017: RSPrimary of rs0; b:27017: Unknown: not checked yet`.
impl fmt::Display for TopologyDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_with(
            f,
            self.servers.iter().map(|(address, server)| format!("{address}: {server}")),
        )
    }
}

impl fmt::Debug for TopologyDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, set_name, max_set_version, max_election_id, servers, excluded } = self;
        f.debug_struct("TopologyDescription")
            .field("kind", kind)
            .field("set_name", &set_name.as_deref().map(OneLine::name))
            .field("max_set_version", max_set_version)
            .field("max_election_id", max_election_id)
            .field("servers", servers)
            .field("excluded", excluded)
            .finish()
    }
}

impl TopologyDescription {
    /// With the servers as the caller shows them: the first [`SHOWN`], since each error and each log record has them.
    pub(crate) fn write_with(
        &self,
        out: &mut impl fmt::Write,
        servers: impl Iterator<Item = String>,
    ) -> fmt::Result {
        write!(out, "{}", self.kind)?;
        if let Some(name) = &self.set_name {
            write!(out, " {}", OneLine::name(name))?;
        }
        let excluded = self.excluded.iter();
        let excluded = excluded.map(|(address, reason)| format!("{address} is not used: {reason}"));
        let mut separator = ": ";
        let mut servers = servers.chain(excluded);
        for server in servers.by_ref().take(SHOWN) {
            write!(out, "{separator}{server}")?;
            separator = "; ";
        }
        match servers.count() {
            0 => Ok(()),
            more => write!(out, "{separator}and {more} more"),
        }
    }
}

/// How many servers a text names.
const SHOWN: usize = 20;
