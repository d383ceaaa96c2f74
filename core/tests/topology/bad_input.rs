//! Replies that contradict the connection string, each other, or themselves: what is shown says what to do.

use bson::rawdoc;
use cenote_core::error::ConnectionError;

use crate::topology::world::{World, address, elected, member, router, standalone};

fn excluded(world: &World, server: &str) -> String {
    let mut excluded = world.topology.description().excluded();
    let found = excluded.find(|(excluded, _)| ***excluded == address(server));
    found.expect("it is excluded").1.reason().to_owned()
}

// ST-06
#[test]
fn a_set_of_another_name() {
    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    world.reply("a", &member("other", "primary", &["a:27017"]));
    assert_eq!(
        excluded(&world, "a"),
        "the server belongs to the replica set `other`, not to `rs`: correct the host or replicaSet"
    );
    assert_eq!(
        world.shown(),
        "ReplicaSetNoPrimary rs: b:27017: Unknown: not checked yet; a:27017 is not used: hello: the \
         server belongs to the replica set `other`, not to `rs`: correct the host or replicaSet"
    );
    world.reply("b", &router());
    assert_eq!(
        excluded(&world, "b"),
        "the server belongs to no replica set, not to `rs`: correct the host or replicaSet"
    );
}

#[test]
fn a_hundred_servers_are_believed() {
    let hosts: Vec<_> = (0..100).map(|number| format!("m{number}:27017")).collect();
    let hosts: Vec<_> = ["a:27017"].into_iter().chain(hosts.iter().map(String::as_str)).collect();
    for (named, servers) in [(100, 100), (101, 1)] {
        let mut world = World::new("mongodb://a/?replicaSet=rs");
        world.reply("a", &member("rs", "primary", &hosts[..named]));
        assert_eq!(world.servers.len(), servers, "{named}");
    }
}

#[test]
fn a_set_that_changes_its_name() {
    let mut world = World::new("mongodb://a");
    world.reply("a", &member("rs", "primary", &["a:27017", "b:27017"]));
    world.reply("b", &member("rs", "secondary", &["a:27017", "b:27017"]));
    world.reply("a", &member("renamed", "primary", &["a:27017", "b:27017"]));
    assert_eq!(
        excluded(&world, "a"),
        "the server belongs to the replica set `renamed`, not to `rs`: correct the host or replicaSet"
    );
    assert_eq!(world.servers.len(), 1, "the other member stays");
}

// ST-09
#[test]
fn a_standalone_server_among_several() {
    let mut world = World::new("mongodb://a,b");
    world.reply("a", &standalone());
    assert!(excluded(&world, "a").contains("name it alone, or leave it out"));
    world.reply("b", &router());
    assert_eq!(world.servers.len(), 1);

    let mut world = World::new("mongodb://a,b");
    world.reply("a", &router());
    world.reply("b", &member("rs", "primary", &["b:27017"]));
    let reason = "the server is of type RSPrimary, and others are routers: name routers only";
    assert_eq!(excluded(&world, "b"), reason);
}

#[test]
fn a_standalone_server_in_a_set_without_a_name() {
    let mut world = World::new("mongodb://a,b,c");
    world.reply("a", &member("rs", "primary", &["a:27017", "b:27017", "c:27017"]));
    world.reply("b", &standalone());
    world.reply("c", &router());
    for server in ["b", "c"] {
        assert!(excluded(&world, server).contains("belongs to no replica set"), "{server}");
    }
}

// ST-10
#[test]
fn a_router_that_names_a_set() {
    let mut world = World::new("mongodb://a/?replicaSet=rs");
    world.reply("a", &rawdoc! { "ok": 1, "msg": "isdbgrid", "setName": "rs" });
    let reason =
        "the server is of type Mongos, and no member of the replica set `rs`: leave it out";
    assert_eq!(excluded(&world, "a"), reason);
}

// ST-12
#[test]
fn an_address_that_the_set_does_not_have() {
    let mut world = World::new("mongodb://localhost:1/?replicaSet=rs");
    world.reply("localhost:1", &member("rs", "primary", &["a:27017"]));
    assert_eq!(
        excluded(&world, "localhost:1"),
        "the primary, localhost:1, does not list this address as a member: name members as \
         `rs.conf()` has them, or set directConnection=true"
    );
    assert_eq!(world.servers.len(), 1, "the members that it names are asked");

    let mut world = World::new("mongodb://localhost:1/?replicaSet=rs");
    let mut reply = member("rs", "secondary", &["a:27017"]);
    reply.append(bson::cstr!("me"), "A");
    world.reply("localhost:1", &reply);
    assert_eq!(
        excluded(&world, "localhost:1"),
        "the server is a:27017 in the configuration of its replica set: name it so"
    );
}

// ST-04
#[test]
fn a_primary_that_does_not_list_itself() {
    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    let mut reply = member("rs", "primary", &["b:27017"]);
    reply.append(bson::cstr!("me"), "A");
    world.reply("a", &reply);
    assert_eq!(
        excluded(&world, "a"),
        "the server is a:27017 and the primary of its replica set, and does not list a:27017 as a member: correct the \
         configuration of the set"
    );
    assert_eq!(world.servers.len(), 1, "the member that it names is asked");
}

#[test]
fn a_primary_without_members() {
    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    world.reply("a", &rawdoc! { "ok": 1, "isWritablePrimary": true, "setName": "rs" });
    assert!(world.servers.is_empty());
    assert!(excluded(&world, "a").contains("does not list this address"));
}

/// A host that is excluded for now is used as soon as a member names it.
#[test]
fn an_excluded_host_comes_back() {
    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    world.reply("a", &elected(&["a:27017"], 1, 1));
    assert_eq!(world.topology.description().excluded().len(), 1);
    world.reply("a", &elected(&["a:27017", "b:27017"], 1, 2));
    assert_eq!(world.topology.description().excluded().len(), 0);
    assert_eq!(world.servers.len(), 2);
}

#[test]
fn fields_of_a_wrong_type() {
    for (field, value, expected) in [
        ("hosts", bson::rawbson!("a"), "`hosts` in the reply is not an array"),
        ("hosts", bson::rawbson!([1]), "`hosts` in the reply is not made of texts"),
        ("tags", bson::rawbson!({ "dc": 1 }), "`tags` in the reply is not a document of strings"),
        ("setVersion", bson::rawbson!("1"), "`setVersion` in the reply is not a whole number"),
        ("electionId", bson::rawbson!(1), "`electionId` in the reply is not an ObjectId"),
        ("lastWrite", bson::rawbson!(1), "`lastWrite` in the reply is not a document"),
        (
            "lastWrite",
            bson::rawbson!({ "lastWriteDate": "now" }),
            "`lastWriteDate` in the reply is not a date",
        ),
    ] {
        let mut world = World::new("mongodb://a/?replicaSet=rs");
        let mut reply = rawdoc! { "ok": 1, "setName": "rs", "secondary": true };
        let field: bson::raw::CString = field.to_owned().try_into().expect("no zero byte");
        reply.append(field, value);
        world.reply("a", &reply);
        let server = world.topology.description().server(&address("a")).unwrap().clone();
        let reason = server.error.as_ref().map_or("none", ConnectionError::reason).to_owned();
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
}

/// The server that names it can be used.
#[test]
fn a_member_that_is_no_address_is_left_out() {
    let mut world = World::new("mongodb://a/?replicaSet=rs");
    let mut reply = elected(&["a:27017", "b:0", "c d", "e\u{7}"], 1, 1);
    reply.append(bson::raw::cstr!("me"), "a b");
    world.reply("a", &reply);
    let server = world.topology.description().server(&address("a")).unwrap().clone();
    assert_eq!(server.error.as_ref().map(ConnectionError::reason), None);
    assert_eq!(world.servers.len(), 1);
}
