//! Answers to hello that are wrong.

use super::Cluster;
use super::hello::Hello;
use crate::simulate::coverage::Situation;

/// What a server answers to hello that is wrong: it contradicts other servers, the connection string, earlier answers
/// or itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongAnswer {
    /// `me` is another member.
    OtherMe,
    /// There is no `me`.
    NoMe,
    /// `primary` is another member.
    OtherPrimary,
    /// It is missing among its own hosts.
    NotListed,
    /// It lists itself alone.
    ListedAlone,
    /// Hosts are in upper case, some twice, some are no addresses.
    OddHosts,
    /// It lists a host where no server is.
    UnknownHost,
    /// It lists more hosts than a replica set can have.
    ManyHosts,
    /// `setName` is another one.
    OtherSet,
    /// A member answers as a standalone server.
    IsStandalone,
    /// A member answers as a router, and a router as a member.
    IsOther,
    /// A member answers that it has no configuration.
    IsGhost,
    /// It claims to be the primary, of an election that was long ago.
    IsOldPrimary,
    /// It claims to be the primary, of the present election.
    IsSamePrimary,
    /// It claims to be the primary, without `electionId` and `setVersion`.
    IsPrimaryWithoutElection,
    /// It claims to be the primary of an election that has not been yet.
    IsFuturePrimary,
    /// It claims to be primary and secondary.
    IsEverything,
    /// `topologyVersion` runs backwards.
    OldTopologyVersion,
    /// `topologyVersion` is another process in each answer.
    OtherProcess,
    /// It does not wait before it answers an awaited hello.
    AnswersAtOnce,
    /// Its wire versions are too old.
    TooOld,
    /// Its wire versions are too new.
    TooNew,
    /// A field has a value of another type.
    Mistyped,
    /// It refuses hello.
    Refuses,
    /// It answers hello on a new connection, and resets the connection when it is asked again.
    ResetsSecondHello,
    /// It answers hello, and refuses authentication.
    RefusesLogins,
}

impl WrongAnswer {
    pub(in super::super) const ALL: [Self; 26] = [
        Self::OtherMe,
        Self::NoMe,
        Self::OtherPrimary,
        Self::NotListed,
        Self::ListedAlone,
        Self::OddHosts,
        Self::UnknownHost,
        Self::ManyHosts,
        Self::OtherSet,
        Self::IsStandalone,
        Self::IsOther,
        Self::IsGhost,
        Self::IsOldPrimary,
        Self::IsSamePrimary,
        Self::IsPrimaryWithoutElection,
        Self::IsFuturePrimary,
        Self::IsEverything,
        Self::OldTopologyVersion,
        Self::OtherProcess,
        Self::AnswersAtOnce,
        Self::TooOld,
        Self::TooNew,
        Self::Mistyped,
        Self::Refuses,
        Self::ResetsSecondHello,
        Self::RefusesLogins,
    ];

    pub(in super::super) const fn situation(self) -> Situation {
        match self {
            Self::OtherMe => Situation::OtherMe,
            Self::NoMe => Situation::NoMe,
            Self::OtherPrimary => Situation::OtherPrimary,
            Self::NotListed => Situation::NotListed,
            Self::ListedAlone => Situation::ListedAlone,
            Self::OddHosts => Situation::OddHosts,
            Self::UnknownHost => Situation::UnknownHost,
            Self::ManyHosts => Situation::ManyHosts,
            Self::OtherSet => Situation::OtherSet,
            Self::IsStandalone => Situation::IsStandalone,
            Self::IsOther => Situation::IsOther,
            Self::IsGhost => Situation::IsGhost,
            Self::IsOldPrimary => Situation::IsOldPrimary,
            Self::IsSamePrimary => Situation::IsSamePrimary,
            Self::IsPrimaryWithoutElection => Situation::IsPrimaryWithoutElection,
            Self::IsFuturePrimary => Situation::IsFuturePrimary,
            Self::IsEverything => Situation::IsEverything,
            Self::OldTopologyVersion => Situation::OldTopologyVersion,
            Self::OtherProcess => Situation::OtherProcess,
            Self::AnswersAtOnce => Situation::AnswersAtOnce,
            Self::TooOld => Situation::TooOld,
            Self::TooNew => Situation::TooNew,
            Self::Mistyped => Situation::Mistyped,
            Self::Refuses => Situation::RefusesHello,
            Self::ResetsSecondHello => Situation::ResetsSecondHello,
            Self::RefusesLogins => Situation::RefusesLogins,
        }
    }

    /// `connection` is any number that differs between connections.
    pub(super) fn apply(self, hello: &mut Hello, cluster: &Cluster, connection: i64) {
        let other = || {
            let hosts = hello.hosts.iter().chain(&hello.passives);
            hosts.rev().find(|host| Some(*host) != hello.me.as_ref()).cloned()
        };
        match self {
            Self::OtherMe => hello.me = other(),
            Self::NoMe => hello.me = None,
            Self::OtherPrimary => hello.primary = other(),
            Self::NotListed => hello.list_without_itself(),
            Self::ListedAlone => hello.listing(hello.me.clone().into_iter().collect()),
            Self::OddHosts => hello.in_upper_case(),
            Self::UnknownHost => hello.hosts.push("nowhere.example.com".to_owned()),
            Self::ManyHosts => {
                hello.listing((0..1_100).map(|at| format!("many{at}.example.com")).collect());
            }
            Self::OtherSet => hello.set_name = Some("another".to_owned()),
            Self::IsStandalone => {
                hello.be_no_member();
                hello.is_router = false;
            }
            Self::IsOther => hello.be_other(),
            Self::IsGhost => {
                hello.be_no_member();
                hello.is_ghost = true;
            }
            Self::IsOldPrimary => hello.be_primary(Some(0), Some(0)),
            Self::IsSamePrimary => {
                hello.be_primary(Some(cluster.term), hello.set_version);
            }
            Self::IsPrimaryWithoutElection => hello.be_primary(None, None),
            Self::IsFuturePrimary => {
                let version = hello.set_version.map(|version| version + FUTURE as i64);
                hello.be_primary(Some(cluster.term + FUTURE), version);
            }
            Self::IsEverything => {
                let (term, version) = (hello.election, hello.set_version);
                hello.be_primary(term.or(Some(0)), version);
                hello.is_secondary = true;
            }
            Self::OldTopologyVersion => hello.age_topology_version(1_000, 0),
            Self::OtherProcess => hello.age_topology_version(0, connection.unsigned_abs()),
            Self::TooOld => hello.max_wire_version = 6,
            Self::TooNew => (hello.min_wire_version, hello.max_wire_version) = (1_000, 1_001),
            Self::Mistyped => hello.is_mistyped = true,
            Self::Refuses => hello.is_refused = true,
            Self::AnswersAtOnce | Self::ResetsSecondHello | Self::RefusesLogins => {}
        }
    }
}

/// How far a future election is from the present one: elections after all faults have ended come after it.
pub(super) const FUTURE: u64 = 1_000;

impl Hello {
    fn list_without_itself(&mut self) {
        for hosts in [&mut self.hosts, &mut self.passives, &mut self.arbiters] {
            hosts.retain(|host| Some(host) != self.me.as_ref());
        }
    }

    fn listing(&mut self, hosts: Vec<String>) {
        self.hosts = hosts;
        self.passives.clear();
        self.arbiters.clear();
    }

    fn in_upper_case(&mut self) {
        let first = self.hosts.first().cloned();
        self.hosts.iter_mut().for_each(|host| host.make_ascii_uppercase());
        self.passives.extend(first);
        self.hosts.extend([":".to_owned(), "a:b:c".to_owned(), String::new()]);
    }

    fn be_no_member(&mut self) {
        *self = Self {
            is_primary: true,
            max_wire_version: self.max_wire_version,
            topology_version: self.topology_version,
            ..Self::default()
        };
    }

    fn be_other(&mut self) {
        if self.is_router {
            self.is_router = false;
            self.set_name = Some("rs".to_owned());
            self.is_primary = true;
        } else {
            self.be_no_member();
            self.is_router = true;
        }
    }

    /// Only a member can be a primary.
    fn be_primary(&mut self, election: Option<u64>, set_version: Option<i64>) {
        if self.set_name.is_some() {
            (self.is_primary, self.is_secondary, self.is_arbiter) = (true, false, false);
            (self.election, self.set_version) = (election, set_version);
        }
    }

    fn age_topology_version(&mut self, by: i64, other: u64) {
        self.topology_version = self
            .topology_version
            .map(|(process, counter)| (process + other * 1_000_003, counter.saturating_sub(by)));
    }
}
