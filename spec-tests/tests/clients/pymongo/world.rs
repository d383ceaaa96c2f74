//! One deployment, PyMongo and our clients, and the wait until they have seen what happened.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::connect::ServerKind;
use cenote_core::topology::TopologyKind;
use cenote_endpoint::{Endpoint, ListenOptions, ReplicaSet, Role, Settings, Topology};
use serde_json::{Map, Value, json};

use crate::pymongo::compare;
use crate::pymongo::ours::Ours;
use crate::pymongo::process::PyMongo;

/// Longer than anything takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How soon a server is checked again that is not streaming.
pub(crate) const SOON: &str = "heartbeatFrequencyMS=500&connectTimeoutMS=1000";

pub(crate) struct World {
    pymongo: PyMongo,
    ours: Vec<Ours>,
}

/// The servers that are to be found: their addresses, and what each is. `None` is Unknown.
pub(crate) type Found<'a> = &'a [(&'a str, Option<ServerKind>)];

impl World {
    pub(crate) fn new() -> Self {
        Self { pymongo: PyMongo::start(), ours: Vec::new() }
    }

    /// Of these seeds.
    pub(crate) fn of(seeds: &[&str], options: &str) -> Self {
        let mut world = Self::new();
        world.connect_to(seeds, options);
        world
    }

    /// Connects all clients to another deployment.
    pub(crate) fn connect_to(&mut self, seeds: &[&str], options: &str) {
        let separator = if options.is_empty() { "" } else { "&" };
        let seeds = seeds.join(",");
        self.connect(&format!("mongodb://{seeds}/?{SOON}{separator}{options}"), None);
    }

    pub(crate) fn connect(&mut self, uri: &str, names: Option<SocketAddr>) {
        self.pymongo.connect(uri, names);
        self.ours = Ours::connect(uri, names).into();
    }

    /// Waits until PyMongo and our clients have found this, and agree on everything that they know of it.
    pub(crate) fn agree(&mut self, kind: TopologyKind, servers: Found<'_>) {
        self.agree_when(kind, servers, |_| true);
    }

    /// As [`agree`](Self::agree), where the types alone do not tell whether a change has been seen.
    pub(crate) fn agree_when(
        &mut self,
        kind: TopologyKind,
        servers: Found<'_>,
        has_come: impl Fn(&Value) -> bool,
    ) {
        let expected = expected(kind, servers);
        self.until(|pymongo, ours| {
            let found = differences(pymongo, ours);
            let types = types(pymongo);
            if found.is_empty() && types == expected && has_come(pymongo) {
                return Ok(());
            }
            Err(format!("expected {expected}\nPyMongo: {types}\n{}", found.join("\n")))
        });
    }

    /// Until this holds of what PyMongo and our clients know.
    pub(crate) fn until(
        &mut self,
        holds: impl Fn(&Value, &[(String, Value)]) -> Result<(), String>,
    ) {
        let end = Instant::now() + PATIENCE;
        while let Err(found) = holds(&self.pymongo.topology(), &self.ours()) {
            assert!(Instant::now() < end, "{found}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn ours(&self) -> Vec<(String, Value)> {
        self.ours.iter().map(|it| (format!("Cenote on {}", it.name), it.topology())).collect()
    }
}

/// Where our clients differ from what PyMongo knows.
fn differences(pymongo: &Value, ours: &[(String, Value)]) -> Vec<String> {
    let of =
        |(name, ours): &(String, Value)| compare::differences(["PyMongo", name], pymongo, ours);
    ours.iter().flat_map(of).collect()
}

/// The part of a topology that a test expects: the rest is compared.
fn expected(kind: TopologyKind, servers: Found<'_>) -> Value {
    let servers: Map<_, _> = servers
        .iter()
        .map(|(address, kind)| {
            ((*address).to_owned(), kind.map_or("Unknown", ServerKind::name).into())
        })
        .collect();
    json!({ "type": kind.name(), "servers": servers })
}

fn types(topology: &Value) -> Value {
    let servers = topology["servers"].as_object().expect("an object");
    let servers: Map<_, _> =
        servers.iter().map(|(address, server)| (address.clone(), server["type"].clone())).collect();
    json!({ "type": topology["type"], "servers": servers })
}

pub(crate) fn start(topology: Topology) -> Endpoint {
    let settings = Settings { topology, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

pub(crate) fn address(endpoint: &Endpoint) -> String {
    endpoint.address().to_string()
}

/// A member of the replica set `rs0`.
pub(crate) fn member(role: Role) -> Endpoint {
    start(Topology::ReplicaSet(ReplicaSet { role, ..ReplicaSet::primary("rs0") }))
}

/// Changes what a member says of its set.
pub(crate) fn change_set(member: &Endpoint, change: impl FnOnce(&mut ReplicaSet)) {
    member.with(|server, now| {
        let Topology::ReplicaSet(mut set) = server.topology().clone() else {
            panic!("no member of a replica set");
        };
        change(&mut set);
        server.set_topology(now, Topology::ReplicaSet(set));
    });
}

/// From now on each member names these as those of the set.
pub(crate) fn join(members: &[&Endpoint]) {
    let hosts: Vec<_> = members.iter().map(|it| address(it)).collect();
    for member in members {
        change_set(member, |set| set.hosts.clone_from(&hosts));
    }
}

/// A primary and two secondaries.
pub(crate) fn three() -> [Endpoint; 3] {
    let set = [member(Role::Primary), member(Role::Secondary), member(Role::Secondary)];
    join(&set.each_ref());
    set
}

/// The check can fail: what PyMongo knows of one server is compared with what our clients know of another.
#[test]
fn a_disagreement_is_found() {
    let servers = [member(Role::Primary), member(Role::Secondary)];
    let [a, b] = servers.each_ref().map(address);
    let mut world = World::of(&[&a], "directConnection=true");
    world.agree(TopologyKind::Single, &[(&a, Some(ServerKind::RsPrimary))]);
    let of_primary = world.pymongo.topology();
    assert_eq!(differences(&of_primary, &world.ours()), Vec::<String>::new());

    world.connect_to(&[&b], "directConnection=true");
    world.agree(TopologyKind::Single, &[(&b, Some(ServerKind::RsSecondary))]);
    let lines = differences(&of_primary, &world.ours());
    for ours in ["tokio", "mio", "smol"] {
        for line in [
            format!("servers / {a}: PyMongo says RSPrimary, Cenote on {ours} says (absent)"),
            format!("servers / {b}: PyMongo says (absent), Cenote on {ours} says RSSecondary"),
        ] {
            assert!(lines.contains(&line), "{lines:#?}");
        }
    }

    // One field of a server that both know.
    let mut of_secondary = world.pymongo.topology();
    of_secondary["servers"][&b]["tags"] = json!({ "dc": "ny" });
    let lines = differences(&of_secondary, &world.ours()[..1]);
    let line = "tags / dc: PyMongo says \"ny\", Cenote on tokio says (absent)";
    assert_eq!(lines, [format!("servers / {b} / {line}")]);
}
