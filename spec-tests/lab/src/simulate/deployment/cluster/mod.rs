//! The servers as they really are: a small model of a replica set, of routers, of a standalone server or of a load
//! balancer, with its network.
//!
//! Members elect a primary among those that reach a majority, spread newer configurations to members that they reach,
//! and step down some time after they have lost the majority. Until then two servers claim to be the primary.

mod change;
mod config;
mod hello;
mod node;
mod wrong_answer;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bson::RawDocumentBuf;
use cenote_core::address::ServerAddress;
use cenote_core::connect::ServerKind;

pub use self::change::Change;
use self::config::{MemberConfig, ReplSetConfig};
use self::hello::Hello;
pub(super) use self::hello::process_id;
use self::node::MemberState;
pub(super) use self::node::{Condition, Node, NodeKind};
pub use self::wrong_answer::WrongAnswer;
use super::plan::{Deployment, MemberKind, SET, host};
use cenote_replay::random::SplitMix;

/// Of these servers clients compare `setVersion` first, and then `electionId`.
const OLD_WIRE_VERSION: i32 = 13;

/// Of these it is the other way round.
const NEW_WIRE_VERSION: i32 = 21;

/// All servers.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    /// Where they are reached.
    by_host: BTreeMap<ServerAddress, usize>,
    /// The highest term so far.
    pub(super) term: u64,
    processes: u64,
    /// How many hellos were answered.
    answers: i64,
    /// Members reach those that have the same number. Empty: all reach all.
    groups: Vec<u8>,
    /// Those that the client does not reach.
    pub(super) cut: BTreeSet<usize>,
    /// The hosts of the SRV records.
    pub(super) records: Vec<String>,
    /// How often a member got another name.
    renamed: usize,
}

impl Cluster {
    pub(super) fn new(deployment: &Deployment, random: &mut SplitMix) -> Self {
        let (kind, members) = match deployment {
            Deployment::ReplicaSet { members, .. } => (NodeKind::Member, members.clone()),
            Deployment::Sharded { routers, .. } => {
                (NodeKind::Router, vec![MemberKind::Electable; *routers])
            }
            Deployment::Standalone => (NodeKind::Standalone, vec![MemberKind::Electable]),
            Deployment::LoadBalanced { .. } => {
                (NodeKind::LoadBalancer, vec![MemberKind::Electable])
            }
        };
        let config = Rc::new(match kind {
            NodeKind::Member => ReplSetConfig::new(SET, &members),
            NodeKind::Router | NodeKind::Standalone | NodeKind::LoadBalancer => {
                ReplSetConfig::default()
            }
        });
        let mut cluster = Self {
            nodes: Vec::new(),
            by_host: BTreeMap::new(),
            term: 1,
            processes: 0,
            answers: 0,
            groups: Vec::new(),
            cut: BTreeSet::new(),
            records: (0..members.len()).map(host).collect(),
            renamed: 0,
        };
        let max_wire_version = if random.one_in(4) { OLD_WIRE_VERSION } else { NEW_WIRE_VERSION };
        let (has_topology_version, streams) = (!random.one_in(6), !random.one_in(4));
        for _ in &members {
            let node = cluster.add_node(kind);
            if let Some(node) = cluster.nodes.get_mut(node) {
                node.config = Rc::clone(&config);
                (node.max_wire_version, node.streams) = (max_wire_version, streams);
                node.has_topology_version = has_topology_version;
            }
        }
        cluster.elect(random);
        cluster
    }

    fn add_node(&mut self, kind: NodeKind) -> usize {
        let index = self.nodes.len();
        self.processes += 1;
        let like = self.nodes.first();
        let node = Node {
            kind,
            host: host(index),
            state: MemberState::Secondary,
            config: Rc::default(),
            primary: None,
            condition: Condition::Up,
            max_wire_version: like.map_or(0, |it| it.max_wire_version),
            process: self.processes,
            counter: 0,
            has_topology_version: like.is_some_and(|it| it.has_topology_version),
            streams: like.is_some_and(|it| it.streams),
            wrong: None,
            is_changed: false,
        };
        self.name(&node.host, index);
        self.nodes.push(node);
        index
    }

    fn name(&mut self, host: &str, index: usize) {
        if let Ok(address) = host.parse() {
            self.by_host.insert(address, index);
        }
    }

    /// The server that listens there.
    pub(super) fn node_at(&self, address: &ServerAddress) -> Option<usize> {
        self.by_host.get(address).copied()
    }

    /// The server that listens there, if the client reaches it.
    pub(super) fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }

    pub(super) fn is_cut(&self, index: usize) -> bool {
        self.cut.contains(&index)
    }

    /// The answer to hello of a server that is up, right or wrong.
    pub(super) fn hello(&mut self, index: usize, connection: u64) -> RawDocumentBuf {
        self.answers += 1;
        let mut hello = Hello::of(self, index);
        if let Some(wrong) = self.nodes.get(index).and_then(|node| node.wrong) {
            wrong.apply(&mut hello, self, self.answers);
        }
        let connection = i64::try_from(connection).unwrap_or(i64::MAX);
        hello.encode(connection, self.answers)
    }

    /// Those whose state has changed since this was asked last.
    pub(super) fn take_changed(&mut self) -> Vec<usize> {
        let changed = self.nodes.iter_mut().enumerate();
        changed
            .filter_map(|(at, node)| std::mem::take(&mut node.is_changed).then_some(at))
            .collect()
    }

    pub(super) fn touch(&mut self, index: usize) {
        self.nodes.get_mut(index).into_iter().for_each(Node::touch);
    }

    fn group(&self, index: usize) -> u8 {
        self.groups.get(index).copied().unwrap_or_default()
    }

    fn reach(&self, one: usize, other: usize) -> bool {
        self.group(one) == self.group(other)
    }

    fn running(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.is_running())
    }

    /// Whether a member reaches most of those that its configuration has.
    fn has_majority(&self, index: usize) -> bool {
        let Some(node) = self.nodes.get(index) else { return false };
        let is_there = |&voter: &usize| {
            self.reach(index, voter) && self.nodes.get(voter).is_some_and(Node::is_running)
        };
        let all = node.config.voters().count();
        node.config.voters().filter(is_there).count() * 2 > all
    }

    /// The primary of the replica set, of those that claim to be it.
    pub(super) fn primary(&self) -> Option<usize> {
        let primaries = self.running().filter(|(_, node)| node.config.set == SET);
        let latest = primaries.filter_map(|(at, node)| Some((node.term()?, at))).max();
        latest.map(|(_, at)| at).filter(|&at| self.has_majority(at))
    }

    /// How many members claim to be the primary.
    pub(super) fn primaries(&self) -> usize {
        self.running().filter(|(_, node)| node.config.set == SET && node.term().is_some()).count()
    }

    /// Whether an election can be held.
    pub(super) fn needs_election(&self) -> bool {
        self.primary().is_none() && !self.candidates().is_empty()
    }

    fn candidates(&self) -> Vec<usize> {
        let is_candidate = |&(at, node): &(usize, &Node)| {
            node.kind == NodeKind::Member
                && node.state == MemberState::Secondary
                && node.config.set == SET
                && node.is_electable(at)
                && self.has_majority(at)
        };
        self.running().filter(is_candidate).map(|(at, _)| at).collect()
    }

    /// Elects one of those that can be; returns whether there was one.
    pub(super) fn elect(&mut self, random: &mut SplitMix) -> bool {
        // One that lacks a configuration that most have is not elected.
        let candidates = self.candidates();
        let newest =
            candidates.iter().filter_map(|&at| self.nodes.get(at)).map(|it| it.config.age());
        let Some(newest) = newest.max() else { return false };
        let is_newest =
            |&at: &usize| self.nodes.get(at).is_some_and(|it| it.config.age() == newest);
        let candidates: Vec<_> = candidates.iter().copied().filter(is_newest).collect();
        let Some(elected) = random.pick(&candidates) else { return false };
        self.term += 1;
        let term = self.term;
        if let Some(node) = self.nodes.get_mut(elected) {
            node.state = MemberState::Primary { term };
            node.config = Rc::new(ReplSetConfig { term, ..(*node.config).clone() });
            node.touch();
        }
        self.spread();
        true
    }

    /// Primaries that have to step down: a later one is reached, or no majority.
    pub(super) fn outdated_primaries(&self) -> Vec<(usize, u64)> {
        let is_outdated = |at: usize, term: u64| {
            let is_later = |(other, node): (usize, &Node)| {
                self.reach(at, other) && node.term().is_some_and(|its| its > term)
            };
            !self.has_majority(at) || self.running().any(is_later)
        };
        let primaries = self.running().filter_map(|(at, node)| Some((at, node.term()?)));
        primaries.filter(|&(at, term)| is_outdated(at, term)).collect()
    }

    pub(super) fn step_down(&mut self, index: usize, term: u64) {
        if let Some(node) = self.nodes.get_mut(index).filter(|node| node.term() == Some(term)) {
            node.state = MemberState::Secondary;
            if node.primary == Some(index) {
                node.primary = None;
            }
            node.touch();
        }
    }

    /// Members that reach each other have the newest of their configurations, and know the last primary.
    pub(super) fn spread(&mut self) {
        for index in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(index).filter(|node| node.is_running()) else {
                continue;
            };
            if node.kind != NodeKind::Member || node.config.set != SET {
                continue;
            }
            let others: Vec<_> = self.running().filter(|&(at, _)| self.reach(index, at)).collect();
            let others = || others.iter().filter(|(_, other)| other.config.set == SET);
            let newest = others().max_by_key(|(_, other)| other.config.age());
            let primary = others().filter_map(|(at, other)| Some((other.term()?, *at))).max();
            let newest = newest.map(|(_, other)| Rc::clone(&other.config));
            self.hear(index, newest, primary.map(|(_, at)| at));
        }
    }

    fn hear(&mut self, index: usize, newest: Option<Rc<ReplSetConfig>>, primary: Option<usize>) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        if let Some(newest) = newest.filter(|newest| newest.age() > node.config.age()) {
            let is_changed =
                node.config.members != newest.members || node.config.version != newest.version;
            node.config = newest;
            node.state = match (node.config.member(index), node.state) {
                (None, _) => MemberState::Removed,
                (Some(_), MemberState::Removed) => MemberState::Secondary,
                (Some(_), state) => state,
            };
            if is_changed {
                node.touch();
            }
        }
        if primary.is_some() && node.primary != primary {
            node.primary = primary;
            node.touch();
        }
    }

    /// The servers that a client has to find, with their types.
    pub(super) fn visible(&self) -> BTreeMap<ServerAddress, ServerKind> {
        let parse = |host: &String| host.parse::<ServerAddress>().ok();
        let primary = self.primary();
        let Some(config) = primary.and_then(|at| self.nodes.get(at)).map(|node| &node.config)
        else {
            let routers = self.records.iter().filter_map(parse);
            return routers.map(|address| (address, ServerKind::Mongos)).collect();
        };
        let kind = |member: &MemberConfig| match member.kind {
            _ if member.node == primary => ServerKind::RsPrimary,
            MemberKind::Arbiter => ServerKind::RsArbiter,
            MemberKind::Electable | MemberKind::Passive | MemberKind::Hidden => {
                ServerKind::RsSecondary
            }
        };
        let visible = config.members.iter().filter(|member| member.kind != MemberKind::Hidden);
        visible.filter_map(|member| Some((parse(&member.host)?, kind(member)))).collect()
    }

    /// Whether a client that knows this address alone can find the others.
    pub(super) fn leads_back(&self, address: &ServerAddress) -> bool {
        let node = self.node_at(address).and_then(|at| self.nodes.get(at));
        node.is_some_and(|node| match node.kind {
            NodeKind::Member => node.state != MemberState::Removed,
            NodeKind::Router | NodeKind::Standalone | NodeKind::LoadBalancer => true,
        })
    }

    /// Hosts where no server is, from now on and in place of those before: members of the primary's configuration, or
    /// SRV records.
    pub(super) fn list_strangers(&mut self, hosts: &[String]) -> bool {
        let is_stranger = |host: &String| host.starts_with("x");
        self.records.retain(|host| !is_stranger(host));
        self.records.extend(hosts.iter().cloned());
        let Some(primary) = self.primary() else { return false };
        self.reconfigure(primary, |config| {
            config.members.retain(|member| !is_stranger(&member.host));
            let stranger = |host: &String| MemberConfig {
                host: host.clone(),
                node: None,
                kind: MemberKind::Passive,
            };
            config.members.extend(hosts.iter().map(stranger));
        });
        true
    }

    /// The primary changes the configuration.
    fn reconfigure(&mut self, primary: usize, change: impl FnOnce(&mut ReplSetConfig)) {
        if let Some(node) = self.nodes.get_mut(primary) {
            let mut config = (*node.config).clone();
            change(&mut config);
            let own = config.members.iter_mut().find(|member| member.node == Some(primary));
            own.into_iter().for_each(|member| member.kind = MemberKind::Electable);
            config.version += 1;
            node.config = Rc::new(config);
            node.touch();
        }
        self.spread();
    }
}
