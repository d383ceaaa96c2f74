use cenote_core::error::ConnectionError;
use cenote_core::sdam::StalePrimary;
use cenote_core::topology::{Input, TopologyKind};

use crate::topology::world::{World, address, elected, member, router, standalone};

// ST-17
#[test]
fn a_step_down_and_an_election() {
    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    let hosts = ["a:27017", "b:27017"];
    world.reply("a", &elected(&hosts, 1, 1));
    world.reply("b", &member("rs", "secondary", &hosts));
    world.reply("a", &member("rs", "secondary", &hosts));
    assert_eq!(world.topology.description().kind, TopologyKind::ReplicaSetNoPrimary);
    world.reply("b", &elected(&hosts, 2, 1));
    assert_eq!(world.topology.description().kind, TopologyKind::ReplicaSetWithPrimary);
    assert_eq!(*world.topology.description().primary().unwrap().0.as_ref(), address("b"));
}

/// The old primary comes back from the other side of a partition, and still believes in itself.
// ST-07
#[test]
fn a_primary_of_an_older_election_is_not_believed() {
    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    let hosts = ["a:27017", "b:27017"];
    world.reply("a", &elected(&hosts, 1, 1));
    world.reply("b", &elected(&hosts, 2, 1));
    let why = |world: &World, server: &str| {
        let server = world.topology.description().server(&address(server)).unwrap().clone();
        let stale: Option<StalePrimary> =
            server.error.as_ref().and_then(ConnectionError::source_as).copied();
        assert!(stale.is_none() || server.error.as_ref().unwrap().advice().is_none());
        stale
    };
    assert_eq!(why(&world, "a"), Some(StalePrimary::NewerPrimary));
    world.reply("a", &elected(&hosts, 1, 1));
    assert_eq!(why(&world, "a"), Some(StalePrimary::OldElection));
    assert_eq!(why(&world, "b"), None);
    world.reply("a", &elected(&hosts, 3, 1));
    assert_eq!((why(&world, "a"), why(&world, "b")), (None, Some(StalePrimary::NewerPrimary)));
}

// SV-13
#[test]
fn the_routers_of_srv_records_come_and_go() {
    let mut world = World::new("mongodb://a,b");
    world.reply("a", &router());
    world.feed(Input::Hosts { hosts: vec![address("b"), address("c"), address("C")] });
    assert_eq!(
        world.shown(),
        "Sharded: b:27017: Unknown: not checked yet; c:27017: Unknown: not checked yet"
    );
    world.feed(Input::Hosts { hosts: Vec::new() });
    assert_eq!(world.servers.len(), 2, "no answer is no reason to give everything up");

    let mut set = World::new("mongodb://a/?replicaSet=rs");
    set.feed(Input::Hosts { hosts: vec![address("b")] });
    assert_eq!(set.servers.len(), 1, "a replica set knows its members itself");
}

// SE-05
#[test]
fn closing_removes_every_server() {
    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    world.events.clear();
    world.feed(Input::Close);
    assert!(world.servers.is_empty());
    assert_eq!(
        world.events,
        [
            "ServerClosed a:27017",
            "ServerClosed b:27017",
            "TopologyDescriptionChanged",
            "TopologyClosed"
        ]
    );
    world.reply("a", &member("rs", "primary", &["a:27017"]));
    world.feed(Input::Close);
    assert!(world.servers.is_empty() && world.events.len() == 4, "{:?}", world.events);
}

// ST-18, SE-08
#[test]
fn what_is_confirmed_is_not_told_again() {
    let mut world = World::new("mongodb://a/?replicaSet=rs");
    let primary = elected(&["a:27017"], 1, 1);
    world.reply("a", &primary);
    world.events.clear();
    world.reply("a", &primary);
    assert!(world.events.is_empty(), "{:?}", world.events);
}

/// Its old monitor is not closed yet, and its new pool is not ready.
#[test]
fn a_server_that_comes_back_is_another_one() {
    let mut world = World::new("mongodb://a/?replicaSet=rs");
    let (both, one) = (["a:27017", "b:27017"], ["a:27017"]);
    world.reply("a", &elected(&both, 1, 1));
    let (before, secondary) = (world.id_of("b"), member("rs", "secondary", &both));
    world.describe(before, &secondary);
    world.reply("a", &elected(&one, 1, 2));
    world.reply("a", &elected(&both, 1, 3));
    assert_ne!(world.id_of("b"), before);
    let of_b = |world: &World| world.topology.description().server(&address("b")).unwrap().kind();
    world.describe(before, &secondary);
    assert_eq!(of_b(&world), None, "what its old monitor says is of another server");
    world.reply("b", &secondary);
    assert!(of_b(&world).is_some());
}

// SD-03, ST-11
#[test]
fn which_servers_are_of_use() {
    let hosts = ["a:27017"];
    let secondary = member("rs", "secondary", &hosts);
    let other = bson::rawdoc! { "ok": 1, "setName": "rs", "hosts": ["a:27017"] };
    let arbiter =
        bson::rawdoc! { "ok": 1, "setName": "rs", "hosts": ["a:27017"], "arbiterOnly": true };
    let ghost = bson::rawdoc! { "ok": 1, "isreplicaset": true };
    let is_usable = |uri: &str, replies: &[&bson::RawDocumentBuf]| {
        let mut world = World::new(uri);
        assert!(!world.topology.description().is_usable(&address("a")), "not checked yet");
        replies.iter().for_each(|reply| world.reply("a", reply));
        world.topology.description().is_usable(&address("a"))
    };
    for (reply, is_of_use) in [
        (&standalone(), true),
        (&router(), true),
        (&secondary, true),
        (&elected(&hosts, 1, 1), true),
        (&arbiter, false),
        (&other, false),
        (&ghost, false),
    ] {
        assert_eq!(is_usable("mongodb://a", &[reply]), is_of_use, "{reply:?}");
        assert!(is_usable("mongodb://a/?directConnection=true", &[reply]), "{reply:?}");
        // It stays the one server of a topology of type Single, whatever becomes of it.
        assert!(is_usable("mongodb://a", &[&standalone(), reply]), "{reply:?}");
    }
    let load_balanced = World::new("mongodb://a/?loadBalanced=true");
    assert!(load_balanced.topology.description().is_usable(&address("a")));
    assert!(!load_balanced.topology.description().is_usable(&address("b")));
}
