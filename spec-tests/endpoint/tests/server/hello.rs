//! The handshake in all its shapes.

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use cenote_core::wire::{
    Compressor, CompressorId, Flags, Frame, Ids, MessageLimit, Query, Reply, ZlibLevel,
};
use cenote_endpoint::{LoadBalanced, ReplicaSet, Role, Settings, Topology};

use crate::server::client::{End, World};

fn client(name: &str) -> RawDocumentBuf {
    rawdoc! {
        "application": { "name": name },
        "driver": { "name": "test", "version": "1" },
        "os": { "type": "test" },
    }
}

fn in_topology(topology: Topology) -> World {
    World::new(Settings { topology, address: "a:1".to_owned(), ..Settings::seeded(1) })
}

fn member(role: Role) -> Topology {
    Topology::ReplicaSet(ReplicaSet {
        role,
        hosts: vec!["a:1".to_owned(), "b:2".to_owned()],
        me: None,
        other_primary: (role != Role::Primary).then(|| "b:2".to_owned()),
        ..ReplicaSet::primary("rs")
    })
}

fn keys(document: &Document) -> Vec<&str> {
    document.keys().map(String::as_str).collect()
}

#[test]
fn both_commands_have_the_fields_that_drivers_read() {
    let mut world = World::seeded();
    let id = world.connect();
    let modern = world.good(id, "admin", &rawdoc! { "hello": 1 });
    assert_eq!(
        keys(&modern),
        [
            "isWritablePrimary",
            "topologyVersion",
            "maxBsonObjectSize",
            "maxMessageSizeBytes",
            "maxWriteBatchSize",
            "localTime",
            "logicalSessionTimeoutMinutes",
            "connectionId",
            "minWireVersion",
            "maxWireVersion",
            "readOnly",
            "ok",
        ]
    );
    assert_eq!(modern.get_i32("maxMessageSizeBytes").unwrap(), 48_000_000);
    assert_eq!(modern.get_i32("connectionId").unwrap(), 1);
    for name in ["isMaster", "ismaster"] {
        let command = [(name, 1)].into_iter();
        let command: Document = command.map(|(key, one)| (key.to_owned(), one.into())).collect();
        let command = RawDocumentBuf::try_from(&command).unwrap();
        let legacy = world.good(id, "admin", &command);
        assert!(legacy.get_bool("ismaster").unwrap());
        assert!(!legacy.contains_key("helloOk") && !legacy.contains_key("isWritablePrimary"));
    }
    let legacy = world.good(id, "admin", &rawdoc! { "isMaster": 1, "helloOk": true });
    assert!(legacy.get_bool("helloOk").unwrap());
}

#[test]
fn a_member_tells_of_its_replica_set() {
    let mut primary = in_topology(member(Role::Primary));
    let id = primary.connect();
    let reply = primary.good(id, "admin", &rawdoc! { "hello": 1 });
    for (key, value) in doc! {
        "isWritablePrimary": true, "secondary": false, "setName": "rs", "setVersion": 1,
        "hosts": ["a:1", "b:2"], "primary": "a:1", "me": "a:1",
    } {
        assert_eq!(reply.get(&key), Some(&value), "{key}");
    }
    assert!(reply.contains_key("electionId") && reply.contains_key("lastWrite"));

    let mut secondary = in_topology(member(Role::Secondary));
    let id = secondary.connect();
    let reply = secondary.good(id, "admin", &rawdoc! { "hello": 1 });
    assert!(!reply.get_bool("isWritablePrimary").unwrap());
    assert!(reply.get_bool("secondary").unwrap());
    assert_eq!(reply.get_str("primary").unwrap(), "b:2");
    assert!(!reply.contains_key("electionId"));
}

#[test]
fn a_member_tells_of_its_configuration() {
    let texts = |text: &str| vec![text.to_owned()];
    let set = ReplicaSet {
        hosts: texts("a:1"),
        passives: texts("b:2"),
        arbiters: texts("c:3"),
        tags: [("dc".to_owned(), "ny".to_owned())].into(),
        set_version: 7,
        ..ReplicaSet::primary("rs")
    };
    let mut world = in_topology(Topology::ReplicaSet(set));
    let id = world.connect();
    let reply = world.good(id, "admin", &rawdoc! { "hello": 1 });
    for (key, value) in doc! {
        "hosts": ["a:1"], "passives": ["b:2"], "arbiters": ["c:3"], "tags": { "dc": "ny" },
        "setVersion": 7,
    } {
        assert_eq!(reply.get(&key), Some(&value), "{key}");
    }
    let mut plain = in_topology(member(Role::Primary));
    let id = plain.connect();
    let reply = plain.good(id, "admin", &rawdoc! { "hello": 1 });
    for absent in ["passives", "arbiters", "tags", "hidden"] {
        assert!(!reply.contains_key(absent), "{absent}");
    }
}

#[test]
fn routers_arbiters_and_ghosts_say_what_they_are() {
    let expected = [
        (Topology::Mongos, "msg", Bson::from("isdbgrid")),
        (member(Role::Arbiter), "arbiterOnly", Bson::from(true)),
        (member(Role::Ghost), "isreplicaset", Bson::from(true)),
        (member(Role::Hidden), "hidden", Bson::from(true)),
        (member(Role::Hidden), "secondary", Bson::from(true)),
        (member(Role::Other), "secondary", Bson::from(false)),
    ];
    for (topology, key, value) in expected {
        let mut world = in_topology(topology);
        let id = world.connect();
        let reply = world.good(id, "admin", &rawdoc! { "hello": 1 });
        assert_eq!(reply.get(key), Some(&value), "{key}");
    }
}

#[test]
fn metadata_comes_once_and_complete() {
    let mut world = World::seeded();
    let id = world.connect();
    for (client, code) in [
        (rawdoc! { "os": { "type": "t" } }, 183),
        (rawdoc! { "driver": { "name": "d", "version": "1" } }, 183),
        (rawdoc! { "padding": "x".repeat(600) }, 184),
        (client(&"x".repeat(129)), 185),
    ] {
        assert_eq!(world.refused(id, "admin", &rawdoc! { "hello": 1, "client": client }), code);
    }
    world.good(id, "admin", &rawdoc! { "hello": 1, "client": client("app") });
    world.good(id, "admin", &rawdoc! { "hello": 1 });
    assert_eq!(world.refused(id, "admin", &rawdoc! { "hello": 1, "client": client("b") }), 186);
    let other = world.connect_app("other");
    world.good(other, "admin", &rawdoc! { "ping": 1 });
    let statistics = world.server.statistics();
    assert_eq!((statistics.open, statistics.accepted), (2, 2));
    assert_eq!(statistics.open_by_app_name["app"], 1);
    assert_eq!(statistics.open_by_app_name["other"], 1);
    assert_eq!(statistics.commands["hello"], 8);
}

#[test]
fn compressors_are_those_of_both_in_the_clients_order() {
    let mut world = World::seeded();
    let id = world.connect();
    let hello = |compression: bson::RawArrayBuf| rawdoc! { "hello": 1, "compression": compression };
    for (offered, agreed) in
        [(vec!["zlib", "snoopy", "snappy", "noop"], vec!["zlib", "snappy"]), (vec![], vec![])]
    {
        let reply = world.good(id, "admin", &hello(offered.into_iter().collect()));
        let agreed: Vec<Bson> = agreed.into_iter().map(Bson::from).collect();
        assert_eq!(reply.get_array("compression").unwrap(), &agreed);
    }
    assert!(!world.good(id, "admin", &rawdoc! { "hello": 1 }).contains_key("compression"));
}

#[test]
fn an_old_client_says_hello_with_an_op_query() {
    let mut world = World::seeded();
    let id = world.connect();
    let ask = |world: &mut World, collection, document: RawDocumentBuf| {
        let query = Query { flags: 4, collection, skip: 0, limit: -1, document: &document };
        let mut bytes = Vec::new();
        query.write(Ids::request(9), MessageLimit::DEFAULT, &mut bytes).unwrap();
        world.push(id, &bytes);
        let bytes = std::mem::take(&mut world.socket(id).received);
        let frame = Frame::new(&bytes, MessageLimit::DEFAULT).unwrap();
        let reply = Reply::parse(frame).unwrap();
        assert_eq!(reply.header().ids.response_to, 9);
        Document::try_from(reply.documents().next().unwrap()).unwrap()
    };
    let plain = rawdoc! { "isMaster": 1, "helloOk": true };
    let wrapped = rawdoc! { "$query": plain.clone(), "$readPreference": { "mode": "nearest" } };
    for document in [plain, wrapped] {
        let reply = ask(&mut world, "admin.$cmd", document);
        assert!(reply.get_bool("ismaster").unwrap());
        assert!(reply.get_bool("helloOk").unwrap());
        assert_eq!(reply.get_f64("ok").unwrap(), 1.0);
    }
    let reply = ask(&mut world, "admin.$cmd", rawdoc! { "ping": 1 });
    assert_eq!(reply.get_i32("code").unwrap(), 352);
    let reply = ask(&mut world, "test.birds", rawdoc! { "isMaster": 1 });
    assert_eq!(reply.get_f64("ok").unwrap(), 0.0);
}

#[test]
fn behind_a_load_balancer_services_take_turns() {
    let mut world = in_topology(Topology::LoadBalanced(LoadBalanced { services: 2 }));
    let hello = rawdoc! { "hello": 1, "loadBalanced": true };
    let services: Vec<_> = (0..4)
        .map(|_| {
            let id = world.connect();
            let reply = world.good(id, "admin", &hello);
            assert_eq!(reply.get_str("msg").unwrap(), "isdbgrid");
            // PyMongo says hello again to log in.
            let again = world.good(id, "admin", &rawdoc! { "hello": 1 });
            assert!(!again.contains_key("serviceId"));
            reply.get_object_id("serviceId").unwrap()
        })
        .collect();
    assert_eq!(services[0], services[2]);
    assert_eq!(services[1], services[3]);
    assert_ne!(services[0], services[1]);
    let id = world.connect();
    assert_eq!(world.refused(id, "admin", &rawdoc! { "hello": 1 }), 354);
}

#[test]
fn elsewhere_there_is_no_service_for_those_who_ask() {
    for topology in [Topology::Standalone, Topology::Mongos, member(Role::Primary)] {
        let mut world = in_topology(topology);
        let id = world.connect();
        let reply = world.good(id, "admin", &rawdoc! { "hello": 1, "loadBalanced": true });
        assert!(!reply.contains_key("serviceId"));
    }
}

#[test]
fn what_is_no_message_closes_the_connection() {
    let mut world = World::seeded();
    let cases: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xFF; 16],
        &[16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xD1, 7, 0, 0],
        &[21, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xDD, 7, 0, 0, 4, 0, 0, 0, 0],
    ];
    for (count, bytes) in (1..).zip(cases) {
        let id = world.connect();
        world.push(id, bytes);
        assert_eq!(world.socket(id).end, Some(End::Closed));
        assert_eq!(world.server.statistics().protocol_errors, count);
    }
    assert_eq!(world.server.statistics().open, 0);
}

#[test]
fn checksums_are_given_back_and_verified() {
    let mut world = World::seeded();
    let id = world.connect();
    world.send(id, "admin", &rawdoc! { "ping": 1 }, Flags::CHECKSUM_PRESENT);
    assert!(world.answer(id).expect("a whole reply").flags.checksum_present);
    let ping = rawdoc! { "ping": 1 };
    let (_, mut damaged) = world.message("admin", &ping, Flags::CHECKSUM_PRESENT, &[]);
    damaged[30] ^= 1;
    world.push(id, &damaged);
    assert_eq!(world.socket(id).end, Some(End::Closed));
}

#[test]
fn what_is_too_much_closes_the_connection() {
    let mut nested = rawdoc! {};
    for _ in 0..300 {
        nested = rawdoc! { "d": nested };
    }
    let mut world = World::seeded();
    let id = world.connect();
    world.send(id, "admin", &rawdoc! { "ping": nested }, Flags::NONE);
    assert_eq!(world.socket(id).end, Some(End::Closed));
    // A megabyte of zeros is a kilobyte, and says that it is ten bytes.
    let zeros = rawdoc! { "ping": "0".repeat(1 << 20) };
    let (_, plain) = world.message("admin", &zeros, Flags::NONE, &[]);
    let frame = Frame::new(&plain, MessageLimit::DEFAULT).unwrap();
    let zlib = Compressor::new(CompressorId::Zlib, ZlibLevel::DEFAULT).unwrap();
    let mut bomb = Vec::new();
    zlib.compress(frame, MessageLimit::DEFAULT, &mut bomb).unwrap();
    bomb[20..24].copy_from_slice(&10_i32.to_le_bytes());
    let id = world.connect();
    world.push(id, &bomb);
    assert_eq!(world.socket(id).end, Some(End::Closed));
    let problem = world.server.statistics().last_protocol_error.unwrap();
    assert!(problem.contains("10 uncompressed bytes"), "{problem}");
}
