use std::collections::BTreeSet;
use std::sync::Arc;

use super::TopologyKind;
use crate::address::ServerAddress;
use crate::uri::ConnectionString;

/// Where discovery begins.
// ST-01
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopologyOptions {
    /// The seeds: the hosts of the connection string.
    pub hosts: Vec<ServerAddress>,
    /// `replicaSet`: the required name of the replica set; default is any name, or none.
    pub set_name: Option<String>,
    /// `directConnection`: the one host is used as it is, and no others are looked for. Default no.
    pub is_direct: bool,
    /// `loadBalanced`: the one host is a load balancer. Default no.
    pub is_load_balanced: bool,
}

impl TopologyOptions {
    /// From a connection string.
    #[must_use]
    pub fn new(uri: &ConnectionString) -> Self {
        let topology = &uri.topology;
        Self {
            hosts: uri.hosts.clone(),
            set_name: topology.replica_set.clone(),
            is_direct: topology.direct_connection == Some(true),
            is_load_balanced: topology.load_balanced == Some(true),
        }
    }

    /// Each host once.
    pub(super) fn seeds(&self) -> BTreeSet<Arc<ServerAddress>> {
        self.hosts.iter().cloned().map(Arc::new).collect()
    }

    /// The type of the topology before a server has answered.
    pub(super) const fn kind(&self) -> TopologyKind {
        if self.is_load_balanced {
            TopologyKind::LoadBalanced
        } else if self.is_direct {
            TopologyKind::Single
        } else if self.set_name.is_some() {
            TopologyKind::ReplicaSetNoPrimary
        } else {
            TopologyKind::Unknown
        }
    }
}
