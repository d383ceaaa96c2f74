//! SDAM's tables once more: what a topology becomes with each new description of a server. Written naively from the
//! specification, without a line of the machine.

use std::collections::{BTreeMap, BTreeSet};

use cenote_core::address::ServerAddress;
use cenote_core::connect::{Membership, ServerKind};
use cenote_core::monitor::ServerDescription;
use cenote_core::topology::{Input, TopologyDescription, TopologyKind, TopologyOptions};

type Version = Option<([u8; 12], i64)>;

/// A topology.
#[derive(Clone, Debug)]
pub(super) struct Model {
    kind: TopologyKind,
    set_name: Option<String>,
    /// The type and the `topologyVersion` of each server; `None` is Unknown.
    servers: BTreeMap<ServerAddress, (Option<ServerKind>, Version)>,
    max_election_id: Option<[u8; 12]>,
    max_set_version: Option<i64>,
    seeds: usize,
    is_direct_to_set: bool,
}

/// One that would make more servers than this is not believed.
const MOST_SERVERS: usize = 100;

impl Model {
    pub(super) fn new(options: &TopologyOptions) -> Self {
        let kind = match (options.is_load_balanced, options.is_direct, &options.set_name) {
            (true, _, _) => TopologyKind::LoadBalanced,
            (_, true, _) => TopologyKind::Single,
            (_, _, Some(_)) => TopologyKind::ReplicaSetNoPrimary,
            (_, _, None) => TopologyKind::Unknown,
        };
        let first = options.is_load_balanced.then_some(ServerKind::LoadBalancer);
        let servers: BTreeMap<_, _> =
            options.hosts.iter().map(|host| (host.clone(), (first, None))).collect();
        Self {
            kind,
            set_name: options.set_name.clone(),
            seeds: servers.len(),
            servers,
            max_election_id: None,
            max_set_version: None,
            is_direct_to_set: options.is_direct && options.set_name.is_some(),
        }
    }

    /// Takes an input that is about this server.
    pub(super) fn apply(&mut self, input: &Input, about: Option<&ServerAddress>) {
        match input {
            Input::Described { description, .. } => {
                about.into_iter().for_each(|address| self.described(address, description));
            }
            Input::Hosts { hosts } => {
                let is_polled = matches!(self.kind, TopologyKind::Unknown | TopologyKind::Sharded);
                let is_lost = self.servers.values().all(|(kind, _)| kind.is_none());
                if (is_polled || is_lost) && !hosts.is_empty() {
                    self.seeds = hosts.iter().collect::<BTreeSet<_>>().len();
                    self.servers.retain(|address, _| hosts.contains(address));
                    hosts.iter().for_each(|host| self.add(host));
                }
            }
            Input::Close => {
                self.servers.clear();
                (self.kind, self.set_name) = (TopologyKind::Unknown, None);
                (self.max_election_id, self.max_set_version) = (None, None);
            }
        }
    }

    fn described(&mut self, address: &ServerAddress, new: &ServerDescription) {
        let Some((_, known)) = self.servers.get(address).copied() else { return };
        let version = new.topology_version.map(|it| (it.process_id, it.counter));
        let is_older =
            known.zip(version).is_some_and(|(known, new)| known.0 == new.0 && known.1 > new.1);
        if is_older {
            return;
        }
        let kind = new.kind();
        self.servers.insert(address.clone(), (kind, version));
        match (self.kind, kind) {
            (TopologyKind::Single, _) => {
                let is_right = kind.is_none() || new.set_name() == self.set_name.as_deref();
                if self.is_direct_to_set && !is_right {
                    self.unknown(address);
                }
            }
            (TopologyKind::LoadBalanced, _)
            | (TopologyKind::Unknown, None | Some(ServerKind::RsGhost)) => {}
            (TopologyKind::Unknown, Some(ServerKind::Standalone)) => match self.seeds {
                1 => self.kind = TopologyKind::Single,
                _ => self.remove(address),
            },
            (TopologyKind::Unknown, Some(ServerKind::Mongos)) => self.kind = TopologyKind::Sharded,
            (TopologyKind::Sharded, kind) => {
                if kind.is_some_and(|kind| kind != ServerKind::Mongos) {
                    self.remove(address);
                }
            }
            (_, kind) => {
                if self.kind == TopologyKind::Unknown {
                    self.kind = TopologyKind::ReplicaSetNoPrimary;
                }
                self.described_in_set(address, kind, new);
                self.check_if_has_primary();
            }
        }
    }

    fn described_in_set(
        &mut self,
        address: &ServerAddress,
        kind: Option<ServerKind>,
        new: &ServerDescription,
    ) {
        let none = Membership::default();
        let said = new.membership().unwrap_or(&none);
        let added = said.members().filter(|it| !self.servers.contains_key(*it));
        let added = added.collect::<BTreeSet<_>>().len();
        if kind.is_some() && added > 0 && self.servers.len() + added > MOST_SERVERS {
            return self.unknown(address);
        }
        match kind {
            Some(ServerKind::Standalone | ServerKind::Mongos) => self.remove(address),
            Some(ServerKind::RsPrimary) => self.update_from_primary(address, new, said),
            Some(ServerKind::RsSecondary | ServerKind::RsArbiter | ServerKind::RsOther) => {
                self.update_from_other(address, new, said);
            }
            None | Some(ServerKind::RsGhost | ServerKind::LoadBalancer | _) => {}
        }
    }

    fn update_from_primary(
        &mut self,
        address: &ServerAddress,
        new: &ServerDescription,
        said: &Membership,
    ) {
        if self.is_of_other_set(new) {
            return self.remove(address);
        }
        let wire_version = new.hello.as_ref().map_or(0, |hello| hello.max_wire_version);
        let (election, version) = (said.election_id, said.set_version);
        if wire_version >= 17 {
            let is_newer = election > self.max_election_id
                || (election == self.max_election_id && version >= self.max_set_version);
            if !is_newer {
                return self.unknown(address);
            }
            (self.max_election_id, self.max_set_version) = (election, version);
        } else {
            if let (Some(election), Some(version)) = (election, version) {
                if let (Some(max_election), Some(max)) =
                    (self.max_election_id, self.max_set_version)
                    && (max > version || (max == version && max_election > election))
                {
                    return self.unknown(address);
                }
                self.max_election_id = Some(election);
            }
            if version.is_some_and(|version| self.max_set_version.is_none_or(|max| version > max)) {
                self.max_set_version = version;
            }
        }
        for (other, (kind, its_version)) in &mut self.servers {
            if other != address && *kind == Some(ServerKind::RsPrimary) {
                (*kind, *its_version) = (None, None);
            }
        }
        let members: BTreeSet<_> = said.members().cloned().collect();
        members.iter().for_each(|member| self.add(member));
        self.servers.retain(|server, _| members.contains(server));
    }

    fn update_from_other(
        &mut self,
        address: &ServerAddress,
        new: &ServerDescription,
        said: &Membership,
    ) {
        if self.is_of_other_set(new) {
            return self.remove(address);
        }
        if self.kind == TopologyKind::ReplicaSetNoPrimary {
            said.members().for_each(|member| self.add(member));
        }
        if said.me.as_ref().is_some_and(|me| me != address) {
            self.remove(address);
        }
    }

    /// Takes the name of the set from the first member that tells it.
    fn is_of_other_set(&mut self, new: &ServerDescription) -> bool {
        let said = new.set_name().map(str::to_owned);
        match &self.set_name {
            None => {
                self.set_name = said;
                false
            }
            Some(name) => said.as_ref() != Some(name),
        }
    }

    fn check_if_has_primary(&mut self) {
        let mut kinds = self.servers.values().map(|(kind, _)| *kind);
        self.kind = match kinds.any(|kind| kind == Some(ServerKind::RsPrimary)) {
            true => TopologyKind::ReplicaSetWithPrimary,
            false => TopologyKind::ReplicaSetNoPrimary,
        };
    }

    fn add(&mut self, address: &ServerAddress) {
        self.servers.entry(address.clone()).or_default();
    }

    fn remove(&mut self, address: &ServerAddress) {
        self.servers.remove(address);
    }

    fn unknown(&mut self, address: &ServerAddress) {
        self.servers.insert(address.clone(), (None, None));
    }

    /// # Errors
    ///
    /// How the description differs from this.
    pub(super) fn compare(&self, description: &TopologyDescription) -> Result<(), String> {
        let TopologyDescription { kind, set_name, max_set_version, max_election_id, .. } =
            description;
        let theirs = (*kind, set_name, *max_election_id, *max_set_version);
        let ours = (self.kind, &self.set_name, self.max_election_id, self.max_set_version);
        if theirs != ours {
            return Err(format!("the topology is {theirs:?}; by SDAM's tables it is {ours:?}"));
        }
        let theirs = description.servers().map(|(address, server)| (&**address, server.kind()));
        let ours = self.servers.iter().map(|(address, (kind, _))| (address, *kind));
        if theirs.clone().eq(ours.clone()) {
            return Ok(());
        }
        let show = |server: (&ServerAddress, Option<ServerKind>)| match server {
            (address, Some(kind)) => format!("{address} {kind}"),
            (address, None) => format!("{address} Unknown"),
        };
        let (theirs, ours): (Vec<_>, Vec<_>) =
            (theirs.map(show).collect(), ours.map(show).collect());
        Err(format!("the servers are {theirs:?}; by SDAM's tables they are {ours:?}"))
    }
}
