//! Clients that wait for a change of the topology.

use std::time::Duration;

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use cenote_core::wire::{CompressorId, Flags, ZlibLevel};
use cenote_endpoint::{ConnectionId, Fault, ReplicaSet, Script, Settings, Topology};

use crate::server::client::{End, World};

fn replica_set() -> World {
    let topology = Topology::ReplicaSet(ReplicaSet::primary("rs"));
    World::new(Settings { topology, ..Settings::seeded(1) })
}

/// A hello that waits for news of after that reply.
fn waiting(reply: &Document, millis: i64) -> RawDocumentBuf {
    let version = reply.get_document("topologyVersion").expect("every hello has one");
    let version = RawDocumentBuf::try_from(version).expect("it came as BSON");
    rawdoc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": millis }
}

fn counter(reply: &Document) -> i64 {
    let version = reply.get_document("topologyVersion").expect("every hello has one");
    version.get_i64("counter").expect("a number")
}

fn first(world: &mut World, id: ConnectionId) -> Document {
    world.good(id, "admin", &rawdoc! { "hello": 1 })
}

#[test]
fn without_news_the_reply_comes_when_the_time_is_up() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    world.send(id, "admin", &waiting(&known, 10_000), Flags::NONE);
    world.pass_ms(9_999);
    assert!(world.answer(id).is_none());
    world.pass_ms(1);
    let answer = world.answer(id).expect("the time is up");
    assert_eq!(counter(&answer.body), counter(&known));
    assert!(!answer.flags.more_to_come);
    assert_eq!(world.server.next_deadline(), None);
}

#[test]
fn news_come_at_once() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    world.send(id, "admin", &waiting(&known, 10_000), Flags::NONE);
    world.pass_ms(500);
    world.server.step_down(world.now);
    world.collect();
    let answer = world.answer(id).expect("the topology has changed");
    assert_eq!(counter(&answer.body), counter(&known) + 1);
    assert!(!answer.body.get_bool("isWritablePrimary").unwrap());
    // A client with an older version is answered without a wait.
    world.send(id, "admin", &waiting(&known, 10_000), Flags::NONE);
    assert!(world.answer(id).is_some());
}

#[test]
fn a_stream_goes_on_without_requests() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    let mut last = world.send(id, "admin", &waiting(&known, 1_000), Flags::EXHAUST_ALLOWED);
    for round in 0..4 {
        if round == 2 {
            world.pass_ms(300);
            world.server.step_down(world.now);
            world.collect();
        } else {
            world.pass_ms(1_000);
        }
        let answer = world.answer(id).expect("a heartbeat");
        assert!(answer.flags.more_to_come);
        assert_eq!(answer.header.ids.response_to, last, "MS-09");
        last = answer.header.ids.request_id;
        assert!(world.answer(id).is_none());
    }
    world.server.closed(world.now, id);
    assert_eq!(world.server.next_deadline(), None);
}

/// For a fail point, each reply of a stream is that of a command.
#[test]
fn a_fail_point_concerns_a_stream_that_goes_on() {
    let fail = |data: Document| {
        let mut world = replica_set();
        let id = world.connect();
        let known = first(&mut world, id);
        world.send(id, "admin", &waiting(&known, 1_000), Flags::EXHAUST_ALLOWED);
        let mut data = data;
        data.insert("failCommands", ["hello"]);
        let command =
            doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data };
        let command = RawDocumentBuf::try_from(command).expect("a document");
        world.server.set_fail_point(&command).expect("a fail point");
        world.pass_ms(1_000);
        let answer = world.answer(id).expect("the wait that was under way");
        assert_eq!(answer.body.get_f64("ok").ok(), Some(1.0));
        (world, id)
    };
    let (mut world, id) = fail(doc! { "errorCode": 91 });
    let refusal = world.answer(id).expect("at once");
    assert_eq!(refusal.body.get_i32("code").ok(), Some(91));
    assert!(!refusal.flags.more_to_come, "the stream has ended");

    let (mut world, id) = fail(doc! { "closeConnection": true });
    assert_eq!(world.socket(id).end, Some(End::Closed));

    let (mut world, id) = fail(doc! { "blockConnection": true, "blockTimeMS": 5_000 });
    world.server.step_down(world.now);
    world.pass_ms(4_999);
    assert!(world.answer(id).is_none());
    world.pass_ms(1);
    assert!(world.answer(id).expect("after the pause").flags.more_to_come);
}

#[test]
fn a_stream_whose_client_knows_nothing_yet_begins_at_once() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    world.server.step_down(world.now);
    world.send(id, "admin", &waiting(&known, 1_000), Flags::EXHAUST_ALLOWED);
    let answer = world.answer(id).expect("news");
    assert!(answer.flags.more_to_come);
    world.server.step_up(world.now);
    world.collect();
    let answer = world.answer(id).expect("more news");
    assert_eq!(counter(&answer.body), counter(&known) + 2);
}

#[test]
fn a_stream_without_a_wait_ends_no_world() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    world.send(id, "admin", &waiting(&known, 0), Flags::EXHAUST_ALLOWED);
    world.pass_ms(1_000);
    let count = std::iter::from_fn(|| world.answer(id)).count();
    assert!((1..=101).contains(&count), "{count} replies in a second");
}

#[test]
fn a_restart_is_another_process() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    world.server.restart(world.now);
    world.collect();
    let id = world.connect();
    world.send(id, "admin", &waiting(&known, 10_000), Flags::NONE);
    let answer = world.answer(id).expect("another process is news");
    assert_ne!(answer.body["topologyVersion"], known["topologyVersion"]);
}

#[test]
fn half_a_wait_is_refused() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    let mut only_version = rawdoc! { "hello": 1 };
    let version = RawDocumentBuf::try_from(known.get_document("topologyVersion").unwrap()).unwrap();
    only_version.append(bson::raw::cstr!("topologyVersion"), version);
    assert_eq!(world.refused(id, "admin", &only_version), 31368);
    assert_eq!(world.refused(id, "admin", &rawdoc! { "hello": 1, "maxAwaitTimeMS": 5 }), 31368);
    assert_eq!(world.refused(id, "admin", &waiting(&known, -1)), 31373);
    let mut ahead = known;
    ahead.get_document_mut("topologyVersion").unwrap().insert("counter", 1_000_i64);
    assert_eq!(world.refused(id, "admin", &waiting(&ahead, 5)), 31382);
}

#[test]
fn commands_that_come_during_a_wait_are_run_after_it() {
    let mut world = replica_set();
    let id = world.connect();
    let known = first(&mut world, id);
    world.send(id, "admin", &waiting(&known, 1_000), Flags::NONE);
    let ping = world.send(id, "admin", &rawdoc! { "ping": 1 }, Flags::NONE);
    assert!(world.answer(id).is_none());
    world.pass(Duration::from_secs(1));
    assert!(world.answer(id).expect("hello").body.contains_key("isWritablePrimary"));
    assert_eq!(world.answer(id).expect("ping").header.ids.response_to, ping);
}

#[test]
fn replies_are_compressed_as_requests_are_but_never_hello() {
    let mut world = replica_set();
    let id = world.connect();
    for compressor in [CompressorId::Snappy, CompressorId::Zlib, CompressorId::Zstd] {
        let compressor =
            cenote_core::wire::Compressor::new(compressor, ZlibLevel::DEFAULT).unwrap();
        for (command, compressed) in
            [(rawdoc! { "buildInfo": 1 }, true), (rawdoc! { "hello": 1 }, false)]
        {
            let request = world.send_compressed(id, "admin", &command, compressor);
            let answer = world.answer(id).expect("an answer");
            assert_eq!(answer.compressed, compressed, "CM-10");
            assert_eq!(answer.header.ids.response_to, request);
        }
    }
    let status = world.good(id, "admin", &rawdoc! { "serverStatus": 1 });
    let counts = status.get_document("cenote").unwrap().get_document("compressedCommands");
    assert_eq!(counts.unwrap(), &bson::doc! { "snappy": 2_i64, "zlib": 2_i64, "zstd": 2_i64 });
    let mut server = World::new(Settings { compressors: Vec::new(), ..Settings::seeded(1) });
    let id = server.connect();
    let noop = cenote_core::wire::Compressor::new(CompressorId::Noop, ZlibLevel::DEFAULT).unwrap();
    server.send_compressed(id, "admin", &rawdoc! { "ping": 1 }, noop);
    assert_eq!(server.socket(id).end, Some(End::Closed));
}

/// A stream on a connection whose second hello has that fault.
fn faulty_stream(fault: Fault) -> (World, ConnectionId, i32) {
    let mut world = replica_set();
    let script = Script::new(fault).at_command("hello", 1);
    world.server.set_fault(world.now, script);
    let id = world.connect();
    let known = first(&mut world, id);
    let request = world.send(id, "admin", &waiting(&known, 1_000), Flags::EXHAUST_ALLOWED);
    (world, id, request)
}

#[test]
fn a_stream_that_stalls_says_nothing_more() {
    let (mut world, id, _) = faulty_stream(Fault::Stall);
    world.pass_ms(10_000);
    assert!(world.answer(id).is_none());
    assert_eq!((world.socket(id).end, world.server.next_deadline()), (None, None));
}

#[test]
fn a_stream_that_drips_goes_on_when_it_is_through() {
    let every = Duration::from_millis(300);
    let (mut world, id, request) = faulty_stream(Fault::Drip { bytes: 200, every });
    world.pass_ms(1_000);
    assert!(world.answer(id).is_none());
    world.pass_ms(900);
    let slow = world.answer(id).expect("the last piece has come");
    assert_eq!(slow.header.ids.response_to, request);
    world.pass_ms(1_000);
    let next = world.answer(id).expect("the next heartbeat");
    assert_eq!(next.header.ids.response_to, slow.header.ids.request_id);
}
