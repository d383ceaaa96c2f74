//! What the server is part of, and how it says so.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::oid::ObjectId;
use bson::raw::{CStr, RawArrayBuf, RawDocumentBuf, cstr};
use bson::{DateTime, Timestamp, rawdoc};

use super::entropy::Entropy;

/// What the server is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Topology {
    /// One server by itself.
    Standalone,
    /// A router of a sharded cluster.
    Mongos,
    /// A member of a replica set.
    ReplicaSet(ReplicaSet),
    /// Several routers behind one load balancer.
    LoadBalanced(LoadBalanced),
}

/// The replica set as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Its name.
    pub name: String,
    /// What this member is in it.
    pub role: Role,
    /// `host:port` of the members that can become the primary; empty for only this one.
    pub hosts: Vec<String>,
    /// `host:port` of the members of priority 0.
    pub passives: Vec<String>,
    /// `host:port` of the arbiters.
    pub arbiters: Vec<String>,
    /// `host:port` of this member in the configuration of the set, if that is not its own address: behind a proxy.
    pub me: Option<String>,
    /// `host:port` of the primary, if it is another member that this one knows of.
    pub other_primary: Option<String>,
    /// Its tags, which read preferences refer to.
    pub tags: BTreeMap<String, String>,
    /// The version of the configuration of the set.
    pub set_version: i32,
}

/// What a member is in its replica set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Takes writes.
    Primary,
    /// Takes reads whose read preference or `secondaryOk` allows it.
    Secondary,
    /// A secondary that no member names in its list of hosts.
    Hidden,
    /// Has a vote and no data.
    Arbiter,
    /// Starting or recovering.
    Other,
    /// Not yet initiated: `isreplicaset`.
    Ghost,
}

/// Several routers behind one load balancer, which is one port here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadBalanced {
    /// How many there are: one at least. Connections go to them in turn, and each has its own
    /// `serviceId` and its own cursors.
    pub services: usize,
}

impl ReplicaSet {
    /// A replica set of this member alone, which is its primary.
    #[must_use]
    pub fn primary(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::Primary,
            hosts: Vec::new(),
            passives: Vec::new(),
            arbiters: Vec::new(),
            me: None,
            other_primary: None,
            tags: BTreeMap::new(),
            set_version: 1,
        }
    }
}

/// The router that a connection goes to; 0 where there is but one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Service(pub(super) usize);

/// The topology now, and the count of its changes.
#[derive(Debug)]
pub(super) struct TopologyState {
    topology: Topology,
    address: String,
    /// One for each service.
    process_ids: Vec<ObjectId>,
    counter: i64,
    /// The last one, in microseconds since 1970: members need not know of each other, and yet the one that is elected
    /// last has the highest id.
    elected_at: u64,
    accepted: usize,
}

impl TopologyState {
    pub(super) fn new(
        topology: Topology,
        address: &str,
        wall_clock: Duration,
        entropy: &mut Entropy,
    ) -> Self {
        let mut state = Self {
            topology,
            address: address.to_owned(),
            process_ids: Vec::new(),
            counter: 0,
            elected_at: 0,
            accepted: 0,
        };
        state.restart(wall_clock, entropy);
        state
    }

    /// New processes: nothing of before compares with them.
    pub(super) fn restart(&mut self, wall_clock: Duration, entropy: &mut Entropy) {
        self.process_ids = (0..self.services()).map(|_| entropy.object_id()).collect();
        self.counter = if self.is_replica_set() { 6 } else { 0 };
        self.elect(wall_clock);
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(super) fn counter(&self) -> i64 {
        self.counter
    }

    /// Another topology, which clients are told of at once.
    pub(super) fn change(
        &mut self,
        topology: Topology,
        wall_clock: Duration,
        entropy: &mut Entropy,
    ) {
        let was_primary = self.is_primary();
        self.topology = topology;
        self.counter += 1;
        let services = self.services();
        // One that comes again is another process.
        self.process_ids.truncate(services);
        while self.process_ids.len() < services {
            self.process_ids.push(entropy.object_id());
        }
        if !was_primary {
            self.elect(wall_clock);
        }
    }

    /// The same topology with another role; nothing changes outside a replica set.
    pub(super) fn change_role(&mut self, role: Role, wall_clock: Duration, entropy: &mut Entropy) {
        let Topology::ReplicaSet(set) = &self.topology else { return };
        if set.role != role {
            let topology = Topology::ReplicaSet(ReplicaSet { role, ..set.clone() });
            self.change(topology, wall_clock, entropy);
        }
    }

    fn elect(&mut self, wall_clock: Duration) {
        if self.is_primary() {
            let now = u64::try_from(wall_clock.as_micros()).unwrap_or(u64::MAX);
            self.elected_at = now.max(self.elected_at.saturating_add(1));
        }
    }

    fn election(&self) -> ObjectId {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&0x7FFF_FFFF_u32.to_be_bytes());
        bytes[4..].copy_from_slice(&self.elected_at.to_be_bytes());
        ObjectId::from_bytes(bytes)
    }

    pub(super) fn is_router(&self) -> bool {
        matches!(self.topology, Topology::Mongos | Topology::LoadBalanced(_))
    }

    /// Whether it is a member of a replica set.
    pub(super) fn is_replica_set(&self) -> bool {
        matches!(self.topology, Topology::ReplicaSet(_))
    }

    /// Whether it is the primary of a replica set.
    pub(super) fn is_primary(&self) -> bool {
        matches!(&self.topology, Topology::ReplicaSet(set) if set.role == Role::Primary)
    }

    /// How many processes there are.
    fn services(&self) -> usize {
        match &self.topology {
            Topology::LoadBalanced(balanced) => balanced.services.max(1),
            Topology::Standalone | Topology::Mongos | Topology::ReplicaSet(_) => 1,
        }
    }

    /// Whether a router is there that connections went to.
    pub(super) fn has(&self, service: Service) -> bool {
        service.0 < self.services()
    }

    /// The router that the next connection goes to: in turn.
    pub(super) fn next_service(&mut self) -> Service {
        match &self.topology {
            Topology::LoadBalanced(balanced) => {
                let service = Service(self.accepted % balanced.services.max(1));
                self.accepted = self.accepted.wrapping_add(1);
                service
            }
            Topology::Standalone | Topology::Mongos | Topology::ReplicaSet(_) => Service::default(),
        }
    }

    pub(super) fn is_load_balanced(&self) -> bool {
        matches!(self.topology, Topology::LoadBalanced(_))
    }

    /// Whether there are other servers than one by itself: sessions have transactions then.
    pub(super) fn is_standalone(&self) -> bool {
        self.topology == Topology::Standalone
    }

    /// What a client takes for the service: the process itself.
    pub(super) fn process_id(&self, service: Service) -> ObjectId {
        // A topology may have been changed to one with fewer services than connections know of.
        let index = service.0 % self.process_ids.len().max(1);
        self.process_ids.get(index).copied().unwrap_or_else(|| self.election())
    }

    pub(super) fn version(&self, service: Service) -> RawDocumentBuf {
        rawdoc! { "processId": self.process_id(service), "counter": self.counter }
    }

    /// Whether writes are taken here, and if not, whether reads are.
    pub(super) fn takes(&self) -> Takes {
        let Topology::ReplicaSet(set) = &self.topology else { return Takes::Everything };
        match set.role {
            Role::Primary => Takes::Everything,
            Role::Secondary | Role::Hidden => Takes::ReadsOnRequest,
            Role::Arbiter | Role::Other | Role::Ghost => Takes::Nothing,
        }
    }

    /// The part of a hello reply that tells what the server is; `modern` is the command's name
    /// `hello`, which calls the primary otherwise.
    pub(super) fn describe(&self, modern: bool, wall_clock: Duration, reply: &mut RawDocumentBuf) {
        let writable = if modern { cstr!("isWritablePrimary") } else { cstr!("ismaster") };
        match &self.topology {
            Topology::Standalone => reply.append(writable, true),
            Topology::Mongos | Topology::LoadBalanced(_) => {
                reply.append(writable, true);
                reply.append(cstr!("msg"), "isdbgrid");
            }
            Topology::ReplicaSet(set) => {
                reply.append(writable, set.role == Role::Primary);
                self.describe_member(set, wall_clock, reply);
            }
        }
    }

    fn describe_member(&self, set: &ReplicaSet, wall_clock: Duration, reply: &mut RawDocumentBuf) {
        if set.role == Role::Ghost {
            reply.append(cstr!("secondary"), false);
            reply.append(cstr!("info"), "Does not have a valid replica set config");
            reply.append(cstr!("isreplicaset"), true);
            return;
        }
        let me = set.me.as_ref().unwrap_or(&self.address);
        let hosts: RawArrayBuf = match set.hosts.as_slice() {
            [] => [me.as_str()].into_iter().collect(),
            hosts => hosts.iter().map(String::as_str).collect(),
        };
        reply.append(cstr!("hosts"), hosts);
        append_unless_empty(reply, cstr!("passives"), &set.passives);
        append_unless_empty(reply, cstr!("arbiters"), &set.arbiters);
        reply.append(cstr!("setName"), set.name.as_str());
        reply.append(cstr!("setVersion"), set.set_version);
        reply.append(cstr!("secondary"), matches!(set.role, Role::Secondary | Role::Hidden));
        match set.role {
            Role::Arbiter => reply.append(cstr!("arbiterOnly"), true),
            Role::Hidden => reply.append(cstr!("hidden"), true),
            Role::Primary | Role::Secondary | Role::Other | Role::Ghost => {}
        }
        if !set.tags.is_empty() {
            reply.append(cstr!("tags"), tags(&set.tags));
        }
        let own = (set.role == Role::Primary).then_some(me);
        if let Some(primary) = own.or(set.other_primary.as_ref()) {
            reply.append(cstr!("primary"), primary.as_str());
        }
        reply.append(cstr!("me"), me.as_str());
        if set.role == Role::Primary {
            reply.append(cstr!("electionId"), self.election());
        }
        reply.append(cstr!("lastWrite"), last_write(wall_clock));
    }
}

/// What a member takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Everything,
    ReadsOnRequest,
    Nothing,
}

fn append_unless_empty(reply: &mut RawDocumentBuf, name: &CStr, members: &[String]) {
    if !members.is_empty() {
        let members: RawArrayBuf = members.iter().map(String::as_str).collect();
        reply.append(name, members);
    }
}

/// Without the tags whose names have a zero byte, which BSON does not allow.
fn tags(tags: &BTreeMap<String, String>) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    for (name, value) in tags {
        if let Ok(name) = <&CStr>::try_from(name.as_str()) {
            document.append(name, value.as_str());
        }
    }
    document
}

fn last_write(wall_clock: Duration) -> RawDocumentBuf {
    let time = u32::try_from(wall_clock.as_secs()).unwrap_or(u32::MAX);
    let op_time = rawdoc! { "ts": Timestamp { time, increment: 1 }, "t": 1_i64 };
    let date = DateTime::from_millis(i64::from(time) * 1000);
    rawdoc! {
        "opTime": op_time.clone(),
        "lastWriteDate": date,
        "majorityOpTime": op_time,
        "majorityWriteDate": date,
    }
}
