//! `failCommand`, as drivers' tests use it.

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use cenote_core::wire::Flags;
use cenote_endpoint::{Settings, Topology};

use crate::server::client::{End, World};

/// Sets the fail point with that mode and data.
fn set(world: &mut World, mode: impl Into<bson::Bson>, data: Document) {
    let command = doc! { "configureFailPoint": "failCommand", "mode": mode.into(), "data": data };
    let command = RawDocumentBuf::try_from(&command).expect("BSON");
    world.server.set_fail_point(&command).expect("a good fail point");
}

fn ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1 }
}

#[test]
fn modes_say_which_commands_fail() {
    let outcomes = |mode: bson::Bson| {
        let mut world = World::seeded();
        let id = world.connect();
        set(&mut world, mode, doc! { "failCommands": ["ping"], "errorCode": 8 });
        let ok = |_| world.run(id, "admin", &ping()).get_f64("ok").unwrap() == 1.0;
        (0..4).map(ok).collect::<Vec<_>>()
    };
    assert_eq!(outcomes("alwaysOn".into()), [false; 4]);
    assert_eq!(outcomes("off".into()), [true; 4]);
    assert_eq!(outcomes(doc! { "times": 2 }.into()), [false, false, true, true]);
    assert_eq!(outcomes(doc! { "skip": 3 }.into()), [true, true, true, false]);
    assert_eq!(outcomes(doc! { "activationProbability": 0.0 }.into()), [true; 4]);
    assert_eq!(outcomes(doc! { "activationProbability": 1.0 }.into()), [false; 4]);
}

#[test]
fn a_probability_is_kept_about() {
    let mut world = World::seeded();
    let id = world.connect();
    let data = doc! { "failCommands": ["ping"], "errorCode": 8 };
    set(&mut world, doc! { "activationProbability": 0.25 }, data);
    let fails = |_: &i32| world.run(id, "admin", &ping()).get_f64("ok").unwrap() == 0.0;
    let failed = (0..1000).filter(fails).count();
    assert!((200..300).contains(&failed), "{failed} of 1000");
}

#[test]
fn an_error_has_its_code_name_and_labels() {
    let mut world = World::seeded();
    let id = world.connect();
    let data = doc! { "failCommands": ["ping"], "errorCode": 91, "errorLabels": ["A", "B"] };
    set(&mut world, "alwaysOn", data);
    let reply = world.run(id, "admin", &ping());
    assert_eq!(reply.get_i32("code").unwrap(), 91);
    assert_eq!(reply.get_str("codeName").unwrap(), "ShutdownInProgress");
    assert_eq!(reply.get_array("errorLabels").unwrap(), &vec!["A".into(), "B".into()]);
    // A server that shuts down at once has not counted that as a change: clients must not consider it stale.
    assert!(!reply.contains_key("topologyVersion"));
}

#[test]
fn retryable_writes_are_labelled_unless_labels_are_given() {
    let mut world = World::new(Settings { topology: Topology::Mongos, ..Settings::seeded(1) });
    let id = world.connect();
    let insert = rawdoc! { "insert": "a", "documents": [{}], "txnNumber": 1_i64 };
    let data = doc! { "failCommands": ["insert"], "errorCode": 10107 };
    set(&mut world, "alwaysOn", data.clone());
    let reply = world.run(id, "test", &insert);
    assert_eq!(reply.get_array("errorLabels").unwrap(), &vec!["RetryableWriteError".into()]);
    let mut without = data;
    without.insert("errorLabels", bson::Array::new());
    set(&mut world, "alwaysOn", without);
    assert!(!world.run(id, "test", &insert).contains_key("errorLabels"));
}

#[test]
fn a_closed_connection_gets_no_reply() {
    let mut world = World::seeded();
    let (first, second) = (world.connect(), world.connect());
    let data = doc! { "failCommands": ["ping"], "closeConnection": true };
    set(&mut world, doc! { "times": 1 }, data);
    world.send(first, "admin", &ping(), Flags::NONE);
    assert!(world.answer(first).is_none());
    assert_eq!(world.socket(first).end, Some(End::Closed));
    world.good(second, "admin", &ping());
}

#[test]
fn a_blocked_command_waits_before_anything_else_happens() {
    let mut world = World::seeded();
    let (id, other) = (world.connect(), world.connect());
    let block = |also: Document| {
        let mut data =
            doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 500 };
        data.extend(also);
        data
    };
    set(&mut world, doc! { "times": 1 }, block(doc! {}));
    world.send(id, "admin", &ping(), Flags::NONE);
    let next = world.send(id, "admin", &rawdoc! { "buildInfo": 1 }, Flags::NONE);
    world.good(other, "admin", &ping());
    world.pass_ms(499);
    assert!(world.answer(id).is_none());
    world.pass_ms(1);
    assert_eq!(world.answer(id).unwrap().body.get_f64("ok").unwrap(), 1.0);
    assert_eq!(world.answer(id).unwrap().header.ids.response_to, next, "in order");

    set(&mut world, doc! { "times": 1 }, block(doc! { "errorCode": 8 }));
    world.send(id, "admin", &ping(), Flags::NONE);
    world.pass_ms(500);
    assert_eq!(world.answer(id).unwrap().body.get_i32("code").unwrap(), 8);

    set(&mut world, doc! { "times": 1 }, block(doc! { "closeConnection": true }));
    world.send(id, "admin", &ping(), Flags::NONE);
    world.pass_ms(499);
    assert_eq!(world.socket(id).end, None);
    world.pass_ms(1);
    assert_eq!(world.socket(id).end, Some(End::Closed));
}

#[test]
fn a_blocked_command_with_less_time_fails_when_the_block_ends() {
    let mut world = World::seeded();
    let id = world.connect();
    let data = doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 500 };
    set(&mut world, "alwaysOn", data);
    world.send(id, "admin", &rawdoc! { "ping": 1, "maxTimeMS": 100 }, Flags::NONE);
    world.pass_ms(499);
    assert!(world.answer(id).is_none(), "a mongod waits for the fail point");
    world.pass_ms(1);
    assert_eq!(world.answer(id).unwrap().body.get_i32("code").unwrap(), 50);
}

#[test]
fn a_blocked_client_who_goes_away_leaves_nothing() {
    let mut world = World::seeded();
    let id = world.connect();
    let data = doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 500 };
    set(&mut world, "alwaysOn", data);
    world.send(id, "admin", &ping(), Flags::NONE);
    assert!(world.server.next_deadline().is_some());
    world.server.closed(world.now, id);
    assert_eq!(world.server.next_deadline(), None);
    assert_eq!(world.server.statistics().open, 0);
}

#[test]
fn only_the_named_application_is_concerned_from_its_hello_on() {
    let mut world = World::seeded();
    let data =
        doc! { "failCommands": ["hello", "ismaster", "ping"], "errorCode": 8, "appName": "a" };
    set(&mut world, "alwaysOn", data);
    let hello = |name: &str| {
        let client = rawdoc! {
            "application": { "name": name },
            "driver": { "name": "test", "version": "1" },
            "os": { "type": "test" },
        };
        rawdoc! { "isMaster": 1, "client": client }
    };
    let (a, b) = (world.connect(), world.connect());
    assert_eq!(world.refused(a, "admin", &hello("a")), 8, "an alias is as good");
    assert_eq!(world.refused(a, "admin", &ping()), 8);
    world.good(b, "admin", &hello("b"));
    world.good(b, "admin", &ping());
}

#[test]
fn the_command_that_switches_it_off_never_fails() {
    let mut world = World::seeded();
    let id = world.connect();
    let on = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": "alwaysOn",
        "data": { "failCommands": ["configureFailPoint", "ping"], "errorCode": 8 },
    };
    world.good(id, "admin", &on);
    assert_eq!(world.refused(id, "admin", &ping()), 8);
    let off = rawdoc! { "configureFailPoint": "failCommand", "mode": "off" };
    let reply = world.good(id, "admin", &off);
    assert_eq!(reply.get_i64("count").unwrap(), 1, "how often it has happened");
    world.good(id, "admin", &ping());
}

#[test]
fn a_write_concern_error_comes_with_what_was_written() {
    let mut world = World::seeded();
    let id = world.connect();
    let error = doc! { "code": 91, "errmsg": "later" };
    let data = doc! { "failCommands": ["insert"], "writeConcernError": error.clone(), "errorLabels": ["L"] };
    set(&mut world, doc! { "times": 1 }, data);
    let reply = world.good(id, "test", &rawdoc! { "insert": "a", "documents": [{ "_id": 1 }] });
    assert_eq!(reply.get_i32("n").unwrap(), 1);
    assert_eq!(reply.get_document("writeConcernError").unwrap(), &error);
    assert_eq!(reply.get_array("errorLabels").unwrap(), &vec!["L".into()]);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut world = World::seeded();
    let id = world.connect();
    set(&mut world, "alwaysOn", doc! { "failCommands": ["ping"], "errorCode": 8 });
    let configure = |name: &str, mode: bson::Bson, data: Document| {
        let command = doc! { "configureFailPoint": name, "mode": mode, "data": data };
        RawDocumentBuf::try_from(&command).unwrap()
    };
    for (command, code) in [
        (configure("other", "off".into(), doc! {}), 209),
        (configure("failCommand", "on".into(), doc! {}), 2),
        (configure("failCommand", 1.into(), doc! {}), 2),
        (configure("failCommand", doc! { "times": -1 }.into(), doc! {}), 2),
        (configure("failCommand", doc! { "activationProbability": 2 }.into(), doc! {}), 2),
        (configure("failCommand", "off".into(), doc! { "blockConnection": true }), 72),
        (configure("failCommand", "off".into(), doc! { "failCommands": [1] }), 14),
        (rawdoc! { "configureFailPoint": "failCommand" }, 2),
    ] {
        assert_eq!(world.refused(id, "admin", &command), code, "{command:?}");
    }
    assert_eq!(world.refused(id, "admin", &ping()), 8, "still as it was");
    let mut without = World::new(Settings { test_commands: false, ..Settings::seeded(1) });
    let id = without.connect();
    assert_eq!(without.refused(id, "admin", &configure("failCommand", "off".into(), doc! {})), 59);
}
