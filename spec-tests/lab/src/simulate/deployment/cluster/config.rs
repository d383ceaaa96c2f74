//! The configuration of a replica set.

use crate::simulate::deployment::plan::{MemberKind, host};

/// A configuration of a replica set. The newer of two is the one with the higher term, then version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ReplSetConfig {
    pub(in super::super) set: String,
    pub(in super::super) term: u64,
    pub(in super::super) version: i64,
    pub(in super::super) members: Vec<MemberConfig>,
}

/// A member in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct MemberConfig {
    pub(in super::super) host: String,
    /// The node that is meant; `None`: there is none, and it has no vote.
    pub(in super::super) node: Option<usize>,
    pub(in super::super) kind: MemberKind,
}

impl ReplSetConfig {
    pub(super) fn new(set: &str, members: &[MemberKind]) -> Self {
        let member = |(node, &kind)| MemberConfig { host: host(node), node: Some(node), kind };
        let members = members.iter().enumerate().map(member).collect();
        Self { set: set.to_owned(), term: 1, version: 1, members }
    }

    /// A member of its own, which has been taken out of its set.
    pub(super) fn alone(set: &str, member: MemberConfig) -> Self {
        Self { set: set.to_owned(), term: 1, version: 1, members: vec![member] }
    }

    pub(super) fn age(&self) -> (u64, i64) {
        (self.term, self.version)
    }

    pub(in super::super) fn member(&self, node: usize) -> Option<&MemberConfig> {
        self.members.iter().find(|member| member.node == Some(node))
    }

    /// The hosts that hello names.
    pub(super) fn hosts(&self, wanted: MemberKind) -> Vec<String> {
        let wanted = self.members.iter().filter(|member| member.kind == wanted);
        wanted.map(|member| member.host.clone()).collect()
    }

    pub(super) fn voters(&self) -> impl Iterator<Item = usize> {
        self.members.iter().filter_map(|member| member.node)
    }
}
