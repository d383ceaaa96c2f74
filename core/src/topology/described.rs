//! What a new description of one server changes, by the type of the topology.

use std::sync::Arc;

use super::{ActionSink, Topology, TopologyKind, removal};
use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::monitor::ServerDescription;

impl Topology {
    // SM-11, ST-15, ST-18
    pub(super) fn described(
        &mut self,
        address: &ServerAddress,
        new: Arc<ServerDescription>,
        out: &mut impl ActionSink,
    ) {
        let Some(known) = self.description.servers.get(address) else { return };
        let version = new.topology_version.as_ref();
        if known.topology_version.is_some_and(|known| known.makes_description_stale(version)) {
            return;
        }
        match self.description.kind {
            TopologyKind::LoadBalanced => {}
            TopologyKind::Single => self.replace_single(address, new, out),
            TopologyKind::Unknown => self.described_first(address, new, out),
            TopologyKind::Sharded => self.described_router(address, new, out),
            TopologyKind::ReplicaSetNoPrimary | TopologyKind::ReplicaSetWithPrimary => {
                self.described_member(address, new, out);
            }
        }
    }

    /// The one server is used whatever it is, unless a replica set was asked for and it is of another one.
    // ST-16
    fn replace_single(
        &mut self,
        address: &ServerAddress,
        new: Arc<ServerDescription>,
        out: &mut impl ActionSink,
    ) {
        let wanted = self.description.set_name.as_deref();
        let wrong = wanted.and_then(|wanted| new.wrong_set(wanted));
        let new = match wrong {
            Some(error) => Arc::new(new.refused(error)),
            None => new,
        };
        self.replace(address, new, out);
    }

    /// The first server that answers decides what the deployment is.
    // ST-09
    fn described_first(
        &mut self,
        address: &ServerAddress,
        new: Arc<ServerDescription>,
        out: &mut impl ActionSink,
    ) {
        let kind = new.kind();
        match kind {
            None | Some(ServerKind::RsGhost | ServerKind::LoadBalancer) => {
                self.replace(address, new, out);
            }
            Some(ServerKind::Standalone) => {
                self.replace(address, new, out);
                if self.seeds.len() == 1 {
                    self.set_kind(TopologyKind::Single);
                } else {
                    self.remove(address, removal::standalone_among_several(), out);
                }
            }
            Some(ServerKind::Mongos) => {
                self.replace(address, new, out);
                self.set_kind(TopologyKind::Sharded);
            }
            Some(
                ServerKind::RsPrimary
                | ServerKind::RsSecondary
                | ServerKind::RsArbiter
                | ServerKind::RsOther,
            ) => {
                self.set_kind(TopologyKind::ReplicaSetNoPrimary);
                self.described_member(address, new, out);
            }
        }
    }

    // ST-10
    fn described_router(
        &mut self,
        address: &ServerAddress,
        new: Arc<ServerDescription>,
        out: &mut impl ActionSink,
    ) {
        let kind = new.kind();
        self.replace(address, new, out);
        if let Some(kind) = kind.filter(|kind| *kind != ServerKind::Mongos) {
            self.remove(address, removal::not_a_router(kind), out);
        }
    }
}
