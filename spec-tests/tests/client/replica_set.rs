//! Three members, each watched.

use std::collections::BTreeMap;

use bson::rawdoc;
use cenote_core::client::{ReadPreference, Selector};
use cenote_core::connect::ServerKind;
use cenote_core::pool::Status;
use cenote_core::uri::ReadPreferenceMode;
use cenote_endpoint::{ReplicaSet, Role, Server, Topology};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{
    SOON, World, change_set, commands, join, member, open, standalone, tell, three, until_open,
};

on_all_runtimes!(
    each_member_is_seen_as_what_it_is,
    only_servers_with_data_have_a_ready_pool,
    a_standalone_server_that_becomes_an_arbiter,
    two_monitoring_sockets_a_server,
    a_change_of_primary,
    what_selects_a_server_is_shown,
);

// SD-04, ST-11, SD-02, SD-07: what each member is, a pool for each, and a server for each wish.
fn each_member_is_seen_as_what_it_is(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], "replicaSet=rs0");
    world.ping();
    world.until_all_known();
    let primary = Some(ServerKind::RsPrimary);
    let secondary = Some(ServerKind::RsSecondary);
    assert_eq!(world.kinds(), [primary, secondary, secondary]);
    let at = |index: usize| format!("{:?}", set[index].address());
    let chosen = format!("{:?}", world.check_out(&Selector::Primary));
    assert!(chosen.contains(&at(0)), "{chosen}");
    let chosen = format!("{:?}", world.check_out(&Selector::Secondary));
    assert!(chosen.contains(&at(1)) || chosen.contains(&at(2)), "{chosen}");
    let chosen = format!("{:?}", world.check_out(&Selector::Address(set[2].address())));
    assert!(chosen.contains(&at(2)), "{chosen}");
    assert!(world.client.pool(&set[1].address()).expect("of this client").check_out().is_ok());
    let status = world.client.servers()[0].to_string();
    assert!(status.contains(": RSPrimary of rs0, round trip "), "{status}");
    world.client.close();
}

// SD-01, SD-03: or those that are connected to directly.
fn only_servers_with_data_have_a_ready_pool(shell: Shell) {
    for (role, is_direct, status) in [
        (Role::Secondary, false, Status::Ready),
        (Role::Arbiter, false, Status::Paused),
        (Role::Other, false, Status::Paused),
        (Role::Arbiter, true, Status::Ready),
    ] {
        let only = member(role);
        let options = format!("replicaSet=rs0&directConnection={is_direct}");
        let world = World::of(shell, &[&only], &options);
        world.until_all_known();
        assert_eq!(world.client.servers()[0].pool.status, status, "{role:?}");
        world.client.close();
    }
}

// SD-03: one that was alone is used whatever it becomes, and its pool is ready again after it was cleared.
fn a_standalone_server_that_becomes_an_arbiter(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], SOON);
    world.ping();
    let arbiter = ReplicaSet { role: Role::Arbiter, ..ReplicaSet::primary("rs0") };
    tell(&only, |server, now| server.set_topology(now, Topology::ReplicaSet(arbiter)));
    only.with(Server::restart);
    world.until_told("ConnectionPoolCleared", 1);
    world.until_told("ConnectionPoolReady", 2);
    assert_eq!(world.kinds(), [Some(ServerKind::RsArbiter)]);
    world.ping();
    world.client.close();
}

// OP-10, LN-04, ND-01
// SD-50, SD-51, ND-03: two sockets a server, which are not the pool's and log in to nothing. No event of a pool
// tells of them (EV-29), and every other socket is the pool's (PS-06).
fn two_monitoring_sockets_a_server(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], "replicaSet=rs0&maxPoolSize=5");
    world.until_all_known();
    for endpoint in &set {
        until_open(endpoint, 2);
    }
    assert_eq!(world.count("ConnectionCreated"), 0);
    // All that a pool may have, besides.
    let out: Vec<_> = (0..5)
        .map(|_| {
            world
                .client
                .pool(&set[0].address())
                .expect("of this client")
                .check_out()
                .expect("a connection")
        })
        .collect();
    assert_eq!(open(&set[0]), 7);
    assert_eq!([open(&set[1]), open(&set[2])], [2, 2]);
    world.until_told("ConnectionCreated", 5);
    assert_eq!(commands(&set[0], "saslStart"), 0);
    drop(out);
    world.client.close();
    for endpoint in &set {
        until_open(endpoint, 0);
    }
}

// SM-04
// A step-down is told by the stream, not found out ten seconds later; and the pool of the member that stepped
// down stays as it is (SD-08).
fn a_change_of_primary(shell: Shell) {
    let set = [member(Role::Primary), member(Role::Secondary)];
    join(&set.each_ref());
    let options = "replicaSet=rs0&heartbeatFrequencyMS=60000";
    let world = World::of(shell, &[&set[0], &set[1]], options);
    world.ping();
    world.until_all_known();
    set[0].with(Server::step_down);
    set[1].with(Server::step_up);
    let (primary, secondary) = (Some(ServerKind::RsPrimary), Some(ServerKind::RsSecondary));
    world.until("changed", |world| world.kinds() == [secondary, primary]);
    let mut connection = world.check_out(&Selector::Primary);
    connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    let on = format!("{:?}", connection);
    assert!(on.contains(&format!("{:?}", set[1].address())), "{on}");
    drop(connection);
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    world.client.close();
}

/// Role, set, round trip and tags of each server: by `servers`, and by the error when none fits.
fn what_selects_a_server_is_shown(shell: Shell) {
    let set = three();
    let tagged = |dc: &str| BTreeMap::from([("dc".to_owned(), dc.to_owned())]);
    for (endpoint, dc) in set.iter().zip(["ny", "sf"]) {
        change_set(endpoint, |set| ReplicaSet { tags: tagged(dc), ..set });
    }
    let options = "replicaSet=rs0&serverSelectionTimeoutMS=300";
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], options);
    world.until_all_known();
    let in_dc = |dc: &str| {
        let mut preference = ReadPreference::of_mode(ReadPreferenceMode::Nearest);
        preference.tag_sets = vec![tagged(dc)];
        Selector::ReadPreference(preference)
    };
    let chosen = format!("{:?}", world.check_out(&in_dc("sf")));
    assert!(chosen.contains(&format!("{:?}", set[1].address())), "{chosen}");
    let shown: Vec<_> = world.client.servers().iter().map(ToString::to_string).collect();
    let error = world.client.check_out(&in_dc("tokyo")).expect_err("none is there").to_string();
    assert!(
        error.contains(" within 3") && error.contains(": ReplicaSetWithPrimary rs0: "),
        "{error}"
    );
    for (endpoint, [role, tags]) in set.iter().zip([
        ["RSPrimary", ", tags dc: ny"],
        ["RSSecondary", ", tags dc: sf"],
        ["RSSecondary", ""],
    ]) {
        let begin = format!("{}: {role} of rs0, round trip ", endpoint.address());
        let told = shown.iter().find(|it| it.starts_with(&begin)).expect("it is known");
        let (_, rest) = told.split_once(&begin).expect("its beginning");
        // The unit of the time is one letter or two, and then come tags and the pool.
        assert!(rest.contains(&format!("s{tags} [")), "{told}");
        let (_, rest) = error.split_once(&begin).unwrap_or_else(|| panic!("{begin}: {error}"));
        let one = rest.split(';').next().unwrap_or_default();
        assert!(one.ends_with(&format!("s{tags}")), "{one}: {error}");
    }
    world.client.close();
}
