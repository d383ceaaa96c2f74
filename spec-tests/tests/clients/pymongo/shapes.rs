//! Every shape that an endpoint can take, and every way to connect to it.

use cenote_core::connect::ServerKind::{
    self, LoadBalancer, Mongos, RsArbiter, RsGhost, RsOther, RsPrimary, RsSecondary, Standalone,
};
use cenote_core::topology::TopologyKind::{
    self, LoadBalanced, ReplicaSetNoPrimary, ReplicaSetWithPrimary, Sharded, Single, Unknown,
};
use cenote_endpoint::{
    Endpoint, ListenAddress, ListenOptions, LoadBalanced as Routers, Role, Settings, Topology,
};

use crate::pymongo::world::{World, address, change_set, join, member, start, three};

/// Each role, what it is for drivers, and the topology of such a member alone.
const ROLES: [(Role, ServerKind, TopologyKind); 6] = [
    (Role::Primary, RsPrimary, ReplicaSetWithPrimary),
    (Role::Secondary, RsSecondary, ReplicaSetNoPrimary),
    (Role::Hidden, RsOther, ReplicaSetNoPrimary),
    (Role::Arbiter, RsArbiter, ReplicaSetNoPrimary),
    (Role::Other, RsOther, ReplicaSetNoPrimary),
    (Role::Ghost, RsGhost, Unknown),
];

#[test]
fn standalone_servers() {
    let servers = [start(Topology::Standalone), start(Topology::Standalone)];
    let [a, b] = servers.each_ref().map(address);
    let mut world = World::of(&[&a], "");
    world.agree(Single, &[(&a, Some(Standalone))]);
    world.connect_to(&[&a], "directConnection=true");
    world.agree(Single, &[(&a, Some(Standalone))]);
    // It is no member.
    world.connect_to(&[&a], "directConnection=true&replicaSet=rs0");
    world.agree(Single, &[(&a, None)]);
    world.connect_to(&[&a], "replicaSet=rs0");
    world.agree(ReplicaSetNoPrimary, &[]);
    world.connect_to(&[&a, &b], "");
    world.agree(Unknown, &[]);
}

#[test]
fn routers() {
    let servers = [(); 3].map(|()| start(Topology::Mongos));
    let [a, b, c] = servers.each_ref().map(address);
    let mut world = World::of(&[&a], "");
    world.agree(Sharded, &[(&a, Some(Mongos))]);
    world.connect_to(&[&a, &b, &c], "");
    world.agree(Sharded, &[(&a, Some(Mongos)), (&b, Some(Mongos)), (&c, Some(Mongos))]);
    world.connect_to(&[&a], "directConnection=true");
    world.agree(Single, &[(&a, Some(Mongos))]);
}

#[test]
fn services_behind_a_load_balancer() {
    let balancer = start(Topology::LoadBalanced(Routers { services: 3 }));
    let a = address(&balancer);
    let mut world = World::of(&[&a], "loadBalanced=true");
    world.agree(LoadBalanced, &[(&a, Some(LoadBalancer))]);
    // The routers refuse a client that does not know of the load balancer.
    world.connect_to(&[&a], "directConnection=true");
    world.agree(Single, &[(&a, None)]);
}

#[test]
fn a_unix_domain_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cenote.sock");
    let options = ListenOptions { place: ListenAddress::Unix { path }, ..ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options).expect("it starts");
    let mut world = World::new();
    world.connect(&endpoint.uri(), None);
    world.agree(Single, &[(&address(&endpoint), Some(Standalone))]);
}

#[test]
fn each_role_alone() {
    let mut world = World::new();
    for (role, kind, of_set) in ROLES {
        let server = member(role);
        let a = address(&server);
        world.connect_to(&[&a], "directConnection=true");
        world.agree(Single, &[(&a, Some(kind))]);
        world.connect_to(&[&a], "");
        world.agree(of_set, &[(&a, Some(kind))]);
    }
}

/// Members of every role, all found from any that knows them.
#[test]
fn a_replica_set_of_all_roles() {
    let [primary, secondary, passive, hidden, arbiter, other] =
        [Role::Primary, Role::Secondary, Role::Secondary, Role::Hidden, Role::Arbiter, Role::Other]
            .map(member);
    let all = [&primary, &secondary, &passive, &hidden, &arbiter, &other];
    let [a, b, c, d, e, f] = all.map(address);
    for (member, zone) in all.into_iter().zip(["x", "y", "z"].into_iter().cycle()) {
        change_set(member, |set| {
            set.hosts = vec![a.clone(), b.clone(), f.clone()];
            set.passives = vec![c.clone()];
            set.arbiters = vec![e.clone()];
            set.other_primary = Some(a.clone());
            set.tags = [("dc", "ny"), ("zone", zone)]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
            set.set_version = 3;
        });
    }
    let mut world = World::new();
    let found = [
        (&*a, Some(RsPrimary)),
        (&b, Some(RsSecondary)),
        (&c, Some(RsSecondary)),
        (&e, Some(RsArbiter)),
        (&f, Some(RsOther)),
    ];
    for seed in [&a, &b, &c, &d, &e, &f] {
        for options in ["", "replicaSet=rs0"] {
            world.connect_to(&[seed], options);
            world.agree(ReplicaSetWithPrimary, &found);
        }
    }
}

#[test]
fn another_set_and_another_kind_among_the_seeds() {
    let set = three();
    let [a, b, c] = set.each_ref().map(address);
    let [router, alone] = [start(Topology::Mongos), start(Topology::Standalone)];
    let [r, s] = [&router, &alone].map(address);
    let found = [(&*a, Some(RsPrimary)), (&b, Some(RsSecondary)), (&c, Some(RsSecondary))];
    let mut world = World::of(&[&a, &r, &s], "replicaSet=rs0");
    world.agree(ReplicaSetWithPrimary, &found);
    world.connect_to(&[&a], "replicaSet=rs1");
    world.agree(ReplicaSetNoPrimary, &[]);
    world.connect_to(&[&a], "replicaSet=rs1&directConnection=true");
    world.agree(Single, &[(&a, None)]);
}

/// By another name and in another case: the set's own spelling counts, in lower case.
#[test]
fn the_set_has_another_name_for_the_seed() {
    let set = three();
    let [_, b, c] = set.each_ref().map(address);
    let port = set[0].address().port().expect("a port");
    let own = format!("localhost:{port}");
    let hosts = vec![format!("LocalHost:{port}"), b.clone(), c.clone()];
    for member in &set {
        change_set(member, |set| set.hosts.clone_from(&hosts));
    }
    change_set(&set[0], |set| set.me = Some(format!("LOCALHOST:{port}")));
    let found = [(&*own, Some(RsPrimary)), (&b, Some(RsSecondary)), (&c, Some(RsSecondary))];
    let mut world = World::new();
    for seed in [address(&set[0]), own.clone(), format!("LOCALHOST:{port}"), b.clone()] {
        world.connect_to(&[&seed], "replicaSet=rs0");
        world.agree(ReplicaSetWithPrimary, &found);
    }
}

/// Both refuse them, and show it in their own ways: PyMongo keeps the type of the server and marks the topology; for
/// Cenote the server is Unknown, for a reason in the specification's words.
#[test]
fn servers_that_are_too_old_or_too_new() {
    let of = |wire_versions| {
        let settings = Settings { wire_versions, ..Settings::default() };
        Endpoint::start(settings, ListenOptions::default()).expect("it starts")
    };
    let mut world = World::new();
    for wire_versions in [0..=6, 99..=99] {
        let server = of(wire_versions);
        let a = address(&server);
        world.connect_to(&[&a], "");
        world.until(|pymongo, ours| {
            let mut unknown =
                ours.iter().map(|(_, ours)| &ours["servers"][&a]["type"] == "Unknown");
            if pymongo["isCompatible"] == false && unknown.all(|it| it) {
                return Ok(());
            }
            Err(format!("{pymongo:#}\n{ours:#?}"))
        });
    }
    let server = of(0..=99);
    let a = address(&server);
    world.connect_to(&[&a], "");
    world.agree(Single, &[(&a, Some(Standalone))]);
}

#[test]
fn a_member_that_is_not_there() {
    let [a, b] = [member(Role::Primary), member(Role::Secondary)];
    join(&[&a, &b]);
    let [a, absent] = [address(&a), address(&b)];
    drop(b);
    let mut world = World::of(&[&a], "replicaSet=rs0");
    world.agree(ReplicaSetWithPrimary, &[(&a, Some(RsPrimary)), (&absent, None)]);
}
