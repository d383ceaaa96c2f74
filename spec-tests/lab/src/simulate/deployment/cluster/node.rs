//! A server process, as it really is.

use std::rc::Rc;

use super::config::ReplSetConfig;
use super::wrong_answer::WrongAnswer;
use crate::simulate::deployment::plan::MemberKind;

/// A server.
#[derive(Clone, Debug)]
pub(in super::super) struct Node {
    pub(in super::super) kind: NodeKind,
    /// Its name, where it is no member of a replica set.
    pub(super) host: String,
    pub(super) state: MemberState,
    pub(super) config: Rc<ReplSetConfig>,
    /// The primary that it knows of.
    pub(super) primary: Option<usize>,
    pub(in super::super) condition: Condition,
    pub(super) max_wire_version: i32,
    /// Which of all processes it is. Another one after each restart.
    pub(in super::super) process: u64,
    /// Counts the changes of its state, in `topologyVersion`.
    pub(super) counter: i64,
    /// It counts the changes.
    pub(super) has_topology_version: bool,
    /// It answers an awaited hello with several replies.
    pub(in super::super) streams: bool,
    pub(in super::super) wrong: Option<WrongAnswer>,
    /// Its state has changed since the clients that await that were answered.
    pub(super) is_changed: bool,
}

/// What kind of server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum NodeKind {
    Member,
    Router,
    Standalone,
    LoadBalancer,
}

/// The state of a member of a replica set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum MemberState {
    Primary {
        term: u64,
    },
    Secondary,
    Recovering,
    /// It is in no configuration.
    Removed,
}

/// Whether it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Condition {
    Up,
    /// The process is not there; the host refuses connections.
    Down,
    /// It accepts connections and says nothing.
    Stalled,
    /// It resets connections before it answers.
    Resets,
    /// It is about to end, and says so to every operation.
    ShutsDown,
}

impl Node {
    pub(in super::super) fn term(&self) -> Option<u64> {
        match self.state {
            MemberState::Primary { term } => Some(term),
            MemberState::Secondary | MemberState::Recovering | MemberState::Removed => None,
        }
    }

    /// Whether it is a member that takes part in its set.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.condition, Condition::Up | Condition::Resets | Condition::ShutsDown)
    }

    /// Whether it serves writes, or with `is_read` reads of any kind.
    pub(in super::super) fn serves(&self, is_read: bool) -> bool {
        match self.kind {
            NodeKind::Router | NodeKind::Standalone | NodeKind::LoadBalancer => true,
            NodeKind::Member => match self.state {
                MemberState::Primary { .. } => true,
                MemberState::Secondary => is_read,
                MemberState::Recovering | MemberState::Removed => false,
            },
        }
    }

    pub(super) fn touch(&mut self) {
        self.counter += 1;
        self.is_changed = true;
    }

    pub(super) fn is_electable(&self, own: usize) -> bool {
        let is_electable = |member: &super::MemberConfig| member.kind == MemberKind::Electable;
        self.config.member(own).is_some_and(is_electable)
    }

    /// `topologyVersion`: the process and its count.
    pub(in super::super) fn topology_version(&self) -> Option<(u64, i64)> {
        self.has_topology_version.then_some((self.process, self.counter))
    }
}
