//! What happens to servers and to the network between them and the client.

use std::rc::Rc;

use super::config::{MemberConfig, ReplSetConfig};
use super::node::{Condition, MemberState, NodeKind};
use super::{Cluster, NEW_WIRE_VERSION, Node, OLD_WIRE_VERSION, wrong_answer};
use crate::simulate::coverage::Situation;
use crate::simulate::deployment::plan::{MemberKind, SET};
use cenote_replay::random::SplitMix;

/// Something that happens to servers or to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The primary steps down, and another election follows.
    StepsDown,
    /// Another member is elected, and the old primary learns it later.
    IsElected,
    /// A process ends.
    Crashes,
    /// A process ends, and another one is there at once.
    Restarts,
    /// A server accepts connections and says nothing.
    Stalls,
    /// A server resets connections.
    Resets,
    /// A server says to every operation that it shuts down.
    ShutsDown,
    /// The network between the client and a server drops everything.
    IsCutOff,
    /// The network between the members is split in two.
    Splits,
    /// A member is added.
    AddsMember,
    /// A member is removed.
    RemovesMember,
    /// A member gets another name, at which it is reached, too.
    RenamesMember,
    /// A member gets another role in the configuration.
    ChangesMember,
    /// A member recovers, and serves nothing meanwhile.
    Recovers,
    /// A member becomes the only one of another replica set.
    LeavesSet,
    /// A server is replaced by another version, which tells `topologyVersion` or does not.
    ChangesVersion,
    /// SRV records name other routers.
    ChangesRecords,
}

impl Change {
    pub(in super::super) const ALL: [Self; 17] = [
        Self::StepsDown,
        Self::IsElected,
        Self::Crashes,
        Self::Restarts,
        Self::Stalls,
        Self::Resets,
        Self::ShutsDown,
        Self::IsCutOff,
        Self::Splits,
        Self::AddsMember,
        Self::RemovesMember,
        Self::RenamesMember,
        Self::ChangesMember,
        Self::Recovers,
        Self::LeavesSet,
        Self::ChangesVersion,
        Self::ChangesRecords,
    ];

    pub(in super::super) const fn situation(self) -> Situation {
        match self {
            Self::StepsDown => Situation::StepsDown,
            Self::IsElected => Situation::IsElected,
            Self::Crashes => Situation::Crashes,
            Self::Restarts => Situation::Restarts,
            Self::Stalls => Situation::Stalls,
            Self::Resets => Situation::Resets,
            Self::ShutsDown => Situation::ShutsDown,
            Self::IsCutOff => Situation::IsCutOff,
            Self::Splits => Situation::Splits,
            Self::AddsMember => Situation::AddsMember,
            Self::RemovesMember => Situation::RemovesMember,
            Self::RenamesMember => Situation::RenamesMember,
            Self::ChangesMember => Situation::ChangesMember,
            Self::Recovers => Situation::Recovers,
            Self::LeavesSet => Situation::LeavesSet,
            Self::ChangesVersion => Situation::ChangesVersion,
            Self::ChangesRecords => Situation::ChangesRecords,
        }
    }
}

impl Cluster {
    /// Makes it happen; `false` if it cannot happen to these servers at present.
    pub(in super::super) fn change(&mut self, change: Change, random: &mut SplitMix) -> bool {
        let is_set = self.nodes.iter().any(|node| node.kind == NodeKind::Member);
        let any = usize::try_from(random.below(self.nodes.len() as u64)).unwrap_or_default();
        match change {
            Change::StepsDown => self.primary_steps_down(),
            Change::IsElected => is_set && self.elect(random),
            Change::Crashes => self.ends(any, Condition::Down),
            Change::Restarts => self.ends(any, Condition::Up),
            Change::Stalls => self.set_condition(any, Condition::Stalled),
            Change::Resets => self.set_condition(any, Condition::Resets),
            Change::ShutsDown => self.set_condition(any, Condition::ShutsDown),
            Change::IsCutOff => self.cut.insert(any),
            Change::Splits => is_set && self.split(random),
            Change::AddsMember => is_set && self.add_member(random),
            Change::RemovesMember => {
                self.change_member(random, |config, at| drop(config.members.remove(at)))
            }
            Change::RenamesMember => self.rename_member(random),
            Change::ChangesMember => self.change_member(random, |config, at| {
                if let Some(member) = config.members.get_mut(at) {
                    member.kind = other_kind(member.kind);
                }
            }),
            Change::Recovers => self.recover(any),
            Change::LeavesSet => is_set && self.leave_set(any),
            Change::ChangesVersion => {
                let is_other = self.ends(any, Condition::Up);
                if let Some(node) = self.nodes.get_mut(any) {
                    node.has_topology_version = random.flip();
                    let versions = [OLD_WIRE_VERSION, NEW_WIRE_VERSION];
                    node.max_wire_version = random.pick(&versions).unwrap_or_default();
                }
                is_other
            }
            Change::ChangesRecords => self.change_records(any),
        }
    }

    /// Ends one of the faults that there are.
    pub(in super::super) fn repair(&mut self, random: &mut SplitMix) {
        let faulty: Vec<_> = (0..self.nodes.len()).filter(|&at| self.is_faulty(at)).collect();
        match random.pick(&faulty) {
            Some(at) => self.repair_node(at),
            None => self.groups.clear(),
        }
        self.spread();
    }

    /// Ends all faults and wrong answers; another election outdoes those that were claimed.
    pub(in super::super) fn settle(&mut self, random: &mut SplitMix) {
        self.groups.clear();
        (0..self.nodes.len()).for_each(|at| self.repair_node(at));
        self.spread();
        for (at, term) in self.outdated_primaries() {
            self.step_down(at, term);
        }
        self.outdo_claims(random);
    }

    fn is_faulty(&self, at: usize) -> bool {
        let is_broken = |node: &Node| {
            node.condition != Condition::Up
                || node.state == MemberState::Recovering
                || (node.kind == NodeKind::Member && node.config.set != SET)
        };
        self.is_cut(at) || self.nodes.get(at).is_some_and(is_broken)
    }

    fn repair_node(&mut self, at: usize) {
        self.cut.remove(&at);
        let set =
            self.nodes.iter().find(|node| node.config.set == SET).map(|it| Rc::clone(&it.config));
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.condition == Condition::ShutsDown {
            node.condition = Condition::Down;
        }
        if node.condition == Condition::Down {
            self.ends(at, Condition::Up);
        }
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.condition = Condition::Up;
        if node.state == MemberState::Recovering {
            node.state = MemberState::Secondary;
        }
        if let Some(set) = set.filter(|_| node.kind == NodeKind::Member && node.config.set != SET) {
            // Older than any, so that it hears what it is now.
            node.config = Rc::new(ReplSetConfig { term: 0, ..(*set).clone() });
            node.state = MemberState::Secondary;
        }
        node.touch();
    }

    fn outdo_claims(&mut self, random: &mut SplitMix) {
        self.term += wrong_answer::FUTURE;
        let Some(primary) = self.primary() else {
            self.elect(random);
            return self.outdo_version();
        };
        if let Some(term) = self.nodes.get(primary).and_then(Node::term) {
            self.step_down(primary, term);
        }
        self.elect(random);
        self.outdo_version();
    }

    fn outdo_version(&mut self) {
        if let Some(primary) = self.primary() {
            self.reconfigure(primary, |config| config.version += 2 * wrong_answer::FUTURE as i64);
        }
    }

    fn primary_steps_down(&mut self) -> bool {
        let primary = self.primary();
        let term = primary.and_then(|at| Some((at, self.nodes.get(at)?.term()?)));
        let Some((at, term)) = term else { return false };
        self.step_down(at, term);
        true
    }

    /// The process ends, and so do its connections.
    fn ends(&mut self, at: usize, then: Condition) -> bool {
        self.processes += 1;
        let processes = self.processes;
        let Some(node) = self.nodes.get_mut(at) else { return false };
        node.condition = then;
        node.process = processes;
        node.counter = 0;
        node.primary = None;
        if node.term().is_some() {
            node.state = MemberState::Secondary;
        }
        self.spread();
        true
    }

    fn set_condition(&mut self, at: usize, condition: Condition) -> bool {
        let Some(node) = self.nodes.get_mut(at) else { return false };
        let is_other = node.condition == Condition::Up;
        if is_other {
            node.condition = condition;
        }
        is_other
    }

    fn split(&mut self, random: &mut SplitMix) -> bool {
        let group = |_| u8::from(random.flip());
        self.groups = (0..self.nodes.len()).map(group).collect();
        self.spread();
        true
    }

    /// A primary that changes the configuration, also one without a majority that has not noticed yet.
    fn reconfiguring(&self, random: &mut SplitMix) -> Option<usize> {
        let claiming = self.running().filter(|(_, node)| node.config.set == SET);
        let claiming: Vec<_> =
            claiming.filter(|(_, node)| node.term().is_some()).map(|(at, _)| at).collect();
        random.pick(&claiming)
    }

    fn add_member(&mut self, random: &mut SplitMix) -> bool {
        let Some(primary) = self.reconfiguring(random) else { return false };
        let Some(config) = self.nodes.get(primary).map(|node| Rc::clone(&node.config)) else {
            return false;
        };
        if config.members.len() >= 7 {
            return false;
        }
        let mut nodes = self.nodes.iter().enumerate();
        let removed = nodes.position(|(at, node)| {
            node.state == MemberState::Removed && config.member(at).is_none()
        });
        let node = removed.unwrap_or_else(|| self.add_node(NodeKind::Member));
        let Some(added) = self.nodes.get_mut(node) else { return false };
        let host = added.host.clone();
        if removed.is_none() {
            added.config =
                Rc::new(ReplSetConfig { set: SET.to_owned(), ..ReplSetConfig::default() });
            added.state = MemberState::Removed;
        }
        let kind = random.pick(&[MemberKind::Electable, MemberKind::Passive, MemberKind::Arbiter]);
        let kind = kind.unwrap_or(MemberKind::Electable);
        self.reconfigure(primary, |config| {
            config.members.push(MemberConfig { host, node: Some(node), kind });
        });
        true
    }

    /// Changes a member that is not the primary.
    fn change_member(
        &mut self,
        random: &mut SplitMix,
        change: impl FnOnce(&mut ReplSetConfig, usize),
    ) -> bool {
        let Some(primary) = self.reconfiguring(random) else { return false };
        let Some(node) = self.nodes.get(primary) else { return false };
        let others = node.config.members.iter().enumerate();
        let others = others.filter(|(_, it)| it.node.is_some() && it.node != Some(primary));
        let others: Vec<_> = others.map(|(at, _)| at).collect();
        let Some(at) = random.pick(&others) else { return false };
        self.reconfigure(primary, |config| change(config, at));
        true
    }

    fn rename_member(&mut self, random: &mut SplitMix) -> bool {
        self.renamed += 1;
        let name = format!("m{}.example.com:27017", self.renamed);
        let mut renamed = None;
        let is_renamed = self.change_member(random, |config, at| {
            if let Some(member) = config.members.get_mut(at) {
                member.host.clone_from(&name);
                renamed = member.node;
            }
        });
        if let Some(node) = renamed {
            self.name(&name, node);
        }
        is_renamed
    }

    fn recover(&mut self, at: usize) -> bool {
        let Some(node) = self.nodes.get_mut(at) else { return false };
        let is_secondary = node.kind == NodeKind::Member && node.state == MemberState::Secondary;
        if is_secondary {
            node.state = MemberState::Recovering;
            node.touch();
        }
        is_secondary
    }

    fn leave_set(&mut self, at: usize) -> bool {
        let term = self.term;
        let is_alone = self.nodes.iter().filter(|node| node.config.set == SET).count() < 2;
        let Some(node) = self.nodes.get_mut(at).filter(|_| !is_alone) else { return false };
        let Some(own) = node.config.member(at).filter(|_| node.term().is_none()).cloned() else {
            return false;
        };
        node.config = Rc::new(ReplSetConfig::alone("other", own));
        node.state = MemberState::Primary { term };
        node.primary = Some(at);
        node.touch();
        true
    }

    fn change_records(&mut self, at: usize) -> bool {
        let Some(node) = self.nodes.get(at) else { return false };
        let host = node.host.clone();
        let is_router = node.kind == NodeKind::Router;
        let named = self.nodes.iter().filter(|node| self.records.contains(&node.host)).count();
        if is_router && !self.records.contains(&host) {
            self.records.push(host);
        } else if is_router && named > 1 {
            self.records.retain(|it| *it != host);
        } else if is_router {
            let added = self.add_node(NodeKind::Router);
            self.records.extend(self.nodes.get(added).map(|node| node.host.clone()));
        }
        is_router
    }
}

fn other_kind(kind: MemberKind) -> MemberKind {
    match kind {
        MemberKind::Electable => MemberKind::Passive,
        MemberKind::Passive => MemberKind::Hidden,
        MemberKind::Hidden | MemberKind::Arbiter => MemberKind::Electable,
    }
}
