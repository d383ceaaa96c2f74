//! Deployments that change while PyMongo and our clients are connected.

use cenote_core::connect::ServerKind::{
    Mongos, RsArbiter, RsGhost, RsPrimary, RsSecondary, Standalone,
};
use cenote_core::topology::TopologyKind::{
    ReplicaSetNoPrimary, ReplicaSetWithPrimary, Sharded, Single, Unknown,
};
use cenote_endpoint::{ReplicaSet, Role, Server, Topology};

use crate::pymongo::world::{World, address, change_set, join, member, start, three};

#[test]
fn elections() {
    let set = three();
    let [a, b, c] = set.each_ref().map(address);
    let mut world = World::of(&[&b], "replicaSet=rs0");
    let [first, second, third] = [Some(RsPrimary), Some(RsSecondary), Some(RsSecondary)];
    world.agree(ReplicaSetWithPrimary, &[(&a, first), (&b, second), (&c, third)]);
    set[0].with(Server::step_down);
    world.agree(ReplicaSetNoPrimary, &[(&a, second), (&b, second), (&c, third)]);
    set[2].with(Server::step_up);
    world.agree(ReplicaSetWithPrimary, &[(&a, second), (&b, second), (&c, first)]);
    // Both call themselves the primary: the one that was elected last is believed.
    set[1].with(Server::step_up);
    world.agree(ReplicaSetWithPrimary, &[(&a, second), (&b, first), (&c, None)]);
    set[2].with(Server::step_down);
    world.agree(ReplicaSetWithPrimary, &[(&a, second), (&b, first), (&c, second)]);
}

#[test]
fn members_come_and_go() {
    let set = three();
    let [a, b, c] = set.each_ref().map(address);
    let arbiter = member(Role::Arbiter);
    let d = address(&arbiter);
    let mut world = World::of(&[&a], "replicaSet=rs0");
    let of = |kinds: [&str; 3]| kinds.map(ToOwned::to_owned).to_vec();
    let (primary, secondary) = (Some(RsPrimary), Some(RsSecondary));
    world.agree(ReplicaSetWithPrimary, &[(&a, primary), (&b, secondary), (&c, secondary)]);
    for member in set.iter().chain([&arbiter]) {
        change_set(member, |set| {
            set.hosts = of([&a, &b, &c]);
            set.arbiters = vec![d.clone()];
            set.set_version = 2;
        });
    }
    let with_arbiter = [(&*a, primary), (&b, secondary), (&c, secondary), (&d, Some(RsArbiter))];
    world.agree_when(ReplicaSetWithPrimary, &with_arbiter, |topology| {
        topology["maxSetVersion"] == 2
    });
    join(&[&set[0], &set[1]]);
    for member in &set[..2] {
        change_set(member, |set| set.arbiters.clear());
    }
    world.agree(ReplicaSetWithPrimary, &[(&a, primary), (&b, secondary)]);
    join(&[&set[0], &set[1], &set[2]]);
    world.agree(ReplicaSetWithPrimary, &[(&a, primary), (&b, secondary), (&c, secondary)]);
}

/// The types stay as they are: a change of tags is seen all the same.
#[test]
fn a_member_gets_other_tags() {
    let only = member(Role::Primary);
    let a = address(&only);
    let mut world = World::of(&[&a], "replicaSet=rs0");
    for zone in ["x", "y"] {
        change_set(&only, |set| {
            set.tags.insert("zone".to_owned(), zone.to_owned());
        });
        world.agree_when(ReplicaSetWithPrimary, &[(&a, Some(RsPrimary))], |topology| {
            topology["servers"][&a]["tags"]["zone"] == zone
        });
    }
}

#[test]
fn servers_that_go_and_come_back() {
    let set = three();
    let [a, b, c] = set.each_ref().map(address);
    let mut world = World::of(&[&a], "replicaSet=rs0");
    let (primary, secondary) = (Some(RsPrimary), Some(RsSecondary));
    world.agree(ReplicaSetWithPrimary, &[(&a, primary), (&b, secondary), (&c, secondary)]);
    set[1].with(Server::shut_down);
    world.agree(ReplicaSetWithPrimary, &[(&a, primary), (&b, None), (&c, secondary)]);
    set[0].with(Server::shut_down);
    world.agree(ReplicaSetNoPrimary, &[(&a, None), (&b, None), (&c, secondary)]);
    set[2].with(Server::step_up);
    world.agree(ReplicaSetWithPrimary, &[(&a, None), (&b, None), (&c, primary)]);
    change_set(&set[0], |set| set.role = Role::Secondary);
    set.iter().take(2).for_each(|member| member.with(Server::restart));
    world.agree(ReplicaSetWithPrimary, &[(&a, secondary), (&b, secondary), (&c, primary)]);
}

#[test]
fn a_router_and_a_standalone_server_that_go_and_come_back() {
    let routers = [start(Topology::Mongos), start(Topology::Mongos)];
    let [a, b] = routers.each_ref().map(address);
    let mut world = World::of(&[&a, &b], "");
    world.agree(Sharded, &[(&a, Some(Mongos)), (&b, Some(Mongos))]);
    routers[0].with(Server::shut_down);
    world.agree(Sharded, &[(&a, None), (&b, Some(Mongos))]);
    routers[0].with(Server::restart);
    world.agree(Sharded, &[(&a, Some(Mongos)), (&b, Some(Mongos))]);
    // What is no router any more is removed.
    change(&routers[1], Topology::Standalone);
    world.agree(Sharded, &[(&a, Some(Mongos))]);

    let alone = start(Topology::Standalone);
    let a = address(&alone);
    world.connect_to(&[&a], "");
    world.agree(Single, &[(&a, Some(Standalone))]);
    alone.with(Server::shut_down);
    world.agree(Single, &[(&a, None)]);
    // It comes back as the primary of a replica set; one server it stays.
    change(&alone, Topology::ReplicaSet(ReplicaSet::primary("rs0")));
    alone.with(Server::restart);
    world.agree(Single, &[(&a, Some(RsPrimary))]);
}

#[test]
fn a_ghost_is_initiated_and_a_member_changes_its_set() {
    let servers = [member(Role::Ghost), member(Role::Ghost)];
    let [a, b] = servers.each_ref().map(address);
    let mut world = World::of(&[&a, &b], "");
    world.agree(Unknown, &[(&a, Some(RsGhost)), (&b, Some(RsGhost))]);
    change_set(&servers[0], |set| {
        set.role = Role::Primary;
        set.hosts = vec![a.clone(), b.clone()];
    });
    world.agree(ReplicaSetWithPrimary, &[(&a, Some(RsPrimary)), (&b, Some(RsGhost))]);
    change_set(&servers[1], |set| {
        set.role = Role::Secondary;
        set.hosts = vec![a.clone(), b.clone()];
    });
    world.agree(ReplicaSetWithPrimary, &[(&a, Some(RsPrimary)), (&b, Some(RsSecondary))]);
    change_set(&servers[1], |set| "rs1".clone_into(&mut set.name));
    world.agree(ReplicaSetWithPrimary, &[(&a, Some(RsPrimary))]);
}

fn change(endpoint: &cenote_endpoint::Endpoint, topology: Topology) {
    endpoint.with(|server, now| server.set_topology(now, topology));
}
