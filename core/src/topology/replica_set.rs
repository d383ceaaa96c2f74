//! What members of a replica set say: their roles, which others there are, and which primary was elected last.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{ActionSink, Topology, TopologyKind, removal};
use crate::address::ServerAddress;
use crate::connect::{ConnectionDescription, Membership, ServerKind};
use crate::error::{ConnectionError, Stage};
use crate::monitor::ServerDescription;
use crate::sdam::StalePrimary;

impl Topology {
    // ST-10, ST-11
    pub(super) fn described_member(
        &mut self,
        address: &ServerAddress,
        new: Arc<ServerDescription>,
        out: &mut impl ActionSink,
    ) {
        match (new.kind(), new.hello.as_deref()) {
            (Some(_), Some(hello)) if self.would_be_too_many(hello) => {
                self.replace(address, Arc::new(new.refused(removal::too_many_members())), out);
            }
            (Some(ServerKind::RsPrimary), Some(hello)) => {
                self.described_primary(address, &new, hello, out);
            }
            (
                Some(ServerKind::RsSecondary | ServerKind::RsArbiter | ServerKind::RsOther),
                Some(hello),
            ) => {
                self.replace(address, Arc::clone(&new), out);
                self.described_other_member(address, &new, hello, out);
            }
            (Some(kind @ (ServerKind::Standalone | ServerKind::Mongos)), _) => {
                self.replace(address, Arc::clone(&new), out);
                let wrong = self.wrong_set(&new);
                let set_name = self.description.set_name.as_deref();
                let reason = wrong.unwrap_or_else(|| removal::not_a_member(kind, set_name));
                self.remove(address, reason, out);
            }
            _ => self.replace(address, new, out),
        }
        self.look_for_primary();
    }

    /// A primary decides which members there are, unless a later one is known.
    fn described_primary(
        &mut self,
        address: &ServerAddress,
        new: &Arc<ServerDescription>,
        hello: &ConnectionDescription,
        out: &mut impl ActionSink,
    ) {
        if let Some(reason) = self.wrong_set(new) {
            self.replace(address, Arc::clone(new), out);
            return self.remove(address, reason, out);
        }
        self.learn_set_name(hello);
        let none = Membership::default();
        let said = hello.membership.as_deref().unwrap_or(&none);
        if !self.is_last_elected(hello, said) {
            return self.replace(address, stale(new, StalePrimary::OldElection), out);
        }
        self.replace(address, Arc::clone(new), out);
        self.depose_others(address, out);
        self.follow_members_of(address, said, out);
    }

    /// Without a primary, the members together say which there are.
    // ST-05
    fn described_other_member(
        &mut self,
        address: &ServerAddress,
        new: &ServerDescription,
        hello: &ConnectionDescription,
        out: &mut impl ActionSink,
    ) {
        if let Some(reason) = self.wrong_set(new) {
            return self.remove(address, reason, out);
        }
        self.learn_set_name(hello);
        let Some(said) = hello.membership.as_deref() else { return };
        // As it was before: one that steps down does not say which members there are.
        if self.description.kind == TopologyKind::ReplicaSetNoPrimary {
            for member in said.members() {
                self.add(member, out);
            }
        }
        if let Some(me) = said.me.as_ref().filter(|me| *me != address) {
            self.remove(address, removal::other_name(me), out);
        }
    }

    /// Whether a reply names so many members that no replica set can be meant.
    fn would_be_too_many(&self, hello: &ConnectionDescription) -> bool {
        let Some(said) = hello.membership.as_deref() else { return false };
        let known = &self.description.servers;
        let unknown: BTreeSet<_> = said.members().filter(|it| !known.contains_key(*it)).collect();
        !unknown.is_empty() && known.len().saturating_add(unknown.len()) > MEMBERS_MAX
    }

    /// By `electionId` and then `setVersion`; servers older than 6.0 by `setVersion` first. Remembers the highest.
    // ST-07
    fn is_last_elected(&mut self, hello: &ConnectionDescription, said: &Membership) -> bool {
        let Membership { set_version, election_id, .. } = *said;
        let (max_set_version, max_election_id) =
            (self.description.max_set_version, self.description.max_election_id);
        if hello.max_wire_version >= WIRE_VERSION_6_0 {
            if (election_id, set_version) < (max_election_id, max_set_version) {
                return false;
            }
            self.remember_election(set_version, election_id);
            return true;
        }
        if set_version.is_some() && election_id.is_some() {
            let is_known = max_set_version.is_some() && max_election_id.is_some();
            if is_known && (max_set_version, max_election_id) > (set_version, election_id) {
                return false;
            }
            self.remember_election(max_set_version, election_id);
        }
        let max_election_id = self.description.max_election_id;
        self.remember_election(set_version.max(max_set_version), max_election_id);
        true
    }

    // ST-07
    fn remember_election(&mut self, set_version: Option<i64>, election_id: Option<[u8; 12]>) {
        let known = &self.description;
        if (known.max_set_version, known.max_election_id) != (set_version, election_id) {
            let edited = self.edit_silently();
            edited.max_set_version = set_version;
            edited.max_election_id = election_id;
        }
    }

    /// At most one primary is believed: the one that was just described.
    // ST-08
    fn depose_others(&mut self, primary: &ServerAddress, out: &mut impl ActionSink) {
        let others = self.description.servers().filter(|(address, server)| {
            server.kind() == Some(ServerKind::RsPrimary) && ***address != *primary
        });
        let others: Vec<_> =
            others.map(|(address, server)| (Arc::clone(address), Arc::clone(server))).collect();
        for (address, server) in others {
            self.replace(&address, stale(&server, StalePrimary::NewerPrimary), out);
        }
    }

    /// Members that are missing are added; servers that the primary does not name are removed, and so is the primary
    /// itself, if it is not among its own members.
    // ST-03, ST-04
    fn follow_members_of(
        &mut self,
        primary: &ServerAddress,
        said: &Membership,
        out: &mut impl ActionSink,
    ) {
        // In the order in which they are named: a trace without addresses keeps it, and so the ids of the servers.
        for member in said.members() {
            self.add(member, out);
        }
        let members: BTreeSet<_> = said.members().collect();
        let servers = self.description.servers.keys();
        let gone: Vec<_> = servers.filter(|it| !members.contains(&***it)).cloned().collect();
        for server in gone {
            let reason = match said.me.as_ref().filter(|_| *server == *primary) {
                Some(me) if me == primary => removal::not_its_own_member(me),
                Some(me) => removal::other_name(me),
                None => removal::not_listed(primary),
            };
            self.remove(&server, reason, out);
        }
    }

    // ST-06
    fn learn_set_name(&mut self, hello: &ConnectionDescription) {
        if self.description.set_name.is_none() {
            self.edit().set_name.clone_from(&hello.set_name);
        }
    }

    // ST-06
    fn wrong_set(&self, server: &ServerDescription) -> Option<ConnectionError> {
        self.description.set_name.as_deref().and_then(|wanted| server.wrong_set(wanted))
    }

    fn has_primary(&self) -> bool {
        self.description.primary().is_some()
    }

    // ST-17
    fn look_for_primary(&mut self) {
        self.set_kind(if self.has_primary() {
            TopologyKind::ReplicaSetWithPrimary
        } else {
            TopologyKind::ReplicaSetNoPrimary
        });
    }
}

fn stale(server: &ServerDescription, why: StalePrimary) -> Arc<ServerDescription> {
    Arc::new(server.refused(ConnectionError::network(Stage::Hello, why)))
}

/// How many servers members may name: twice the 50 that a replica set has at most, so that replies that are made up cost
/// no more monitors, pools and time than that.
pub(super) const MEMBERS_MAX: usize = 100;

/// The first wire version whose `electionId` says more than its `setVersion`.
const WIRE_VERSION_6_0: i32 = 17;
