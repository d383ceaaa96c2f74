//! Checks that fail.

use bson::rawdoc;
use cenote_core::connect::ServerKind;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{DeadlineReason, MonitorOptions};

use crate::monitor::world::{MS, SECOND, World, primary, refusal, reset, standalone};

// SD-40, SM-06: a server that was not known before is not asked again at once.
#[test]
fn a_server_that_cannot_be_reached() {
    let mut world = World::new();
    world.done();
    world.wait(MS * 4);
    let refused = ConnectionError::network(Stage::Tcp, "connection refused");
    world.failed(1, refused.clone());
    let unknown = format!("Unknown: not checked yet -> Unknown: {refused}");
    assert_eq!(world.done(), ["failed after 4ms", "close 1", unknown.as_str(), "clear"]);
    // It stays visible why.
    let description = world.monitor.description();
    assert_eq!(description.error.as_ref().map(ConnectionError::stage), Some(Stage::Tcp));
    assert_eq!(description.updated, Some(world.now));
    let failed = world.now;
    assert_eq!(world.until_due().at, failed + SECOND * 10);
    assert_eq!(world.done(), ["started", "open 2"]);
    // The same again is nothing new to tell, but the pool is told each time.
    world.failed(2, refused);
    assert_eq!(world.done(), ["failed after 0ns", "close 2", "clear"]);
}

// SM-06: one lost connection is no lost server, if it is there at the second attempt; and there is
// only one.
#[test]
fn a_known_server_is_asked_again_at_once_and_once() {
    let mut world = World::new();
    world.opened(1, &standalone());
    world.until_due();
    world.done();
    world.failed(1, reset());
    let unknown = "Standalone -> Unknown: hello: reset by peer";
    assert_eq!(
        world.done(),
        ["failed after 0ns", "close 1", unknown, "clear", "started", "open 2"]
    );
    world.failed(2, reset());
    assert_eq!(world.done(), ["failed after 0ns", "close 2", "clear"]);
    let failed = world.now;
    assert_eq!(world.until_due().at, failed + SECOND * 10);
    world.opened(3, &standalone());
    assert_eq!(world.kind(), Some(ServerKind::Standalone));
}

/// The server was not asked: known it stays known, and Unknown it says why.
#[test]
fn a_process_that_cannot_open_connections() {
    let shortage = || ConnectionError::local(Stage::Tcp, "this process cannot open more files");
    let mut world = World::new();
    world.done();
    world.failed(1, shortage());
    let unknown = format!("Unknown: not checked yet -> Unknown: {}", shortage());
    assert_eq!(world.done(), ["failed after 0ns", "close 1", unknown.as_str()]);

    world.until_due();
    world.opened(2, &standalone());
    world.done();
    // Between two checks.
    world.failed(2, reset());
    let failed = world.now;
    assert_eq!(world.until_due().at, failed + MonitorOptions::MIN_HEARTBEAT_FREQUENCY);
    assert_eq!(world.done(), ["close 2", "started", "open 3"]);
    world.failed(3, shortage());
    assert_eq!(world.done(), ["failed after 0ns", "close 3"]);
    assert_eq!(world.kind(), Some(ServerKind::Standalone));
    world.until_due();
    world.opened(4, &standalone());
    assert_eq!(world.kind(), Some(ServerKind::Standalone));
}

// SD-41, SD-52: a reply that was asked for has connectTimeoutMS; then connections in use are
// broken.
#[test]
fn a_server_that_hangs() {
    let mut options = MonitorOptions::default();
    options.connect_timeout = SECOND * 3;
    let mut world = World::with(options);
    world.opened(1, &standalone());
    world.until_due();
    world.done();
    let asked = world.now;
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (asked + SECOND * 3, DeadlineReason::CheckTimeout));
    assert!(world.done().contains(&"clear and interrupt".to_owned()));
    // The reply that comes too late has crossed the close.
    world.replied(1, &standalone(), false);
    assert!(world.done().is_empty());
    assert_eq!(world.kind(), None);
}

// SD-41: also while it is opened, which is for the embedder to time.
#[test]
fn a_connect_that_times_out() {
    let mut world = World::new();
    world.failed(1, ConnectionError::timeout(Stage::Tcp, SECOND * 10));
    assert!(world.done().contains(&"clear and interrupt".to_owned()));
}

// SD-40: what the server refuses, and what is no hello, fails the check without a second attempt.
#[test]
fn replies_that_are_none() {
    for reply in [refusal(), rawdoc! { "ok": 1, "setName": 7 }, rawdoc! {}] {
        let mut world = World::new();
        world.opened(1, &standalone());
        world.until_due();
        world.done();
        world.replied(1, &reply, false);
        let done = world.done();
        assert_eq!(done[..2], ["failed after 0ns", "close 1"], "{reply:?}");
        assert_eq!(done.last().map(String::as_str), Some("clear"), "{reply:?}");
        assert_eq!(world.until_due().reason, DeadlineReason::Check);
    }
}

/// A replica set of another name is refused, with a line that says what to do.
#[test]
fn another_replica_set() {
    let mut options = MonitorOptions::default();
    options.set_name = Some("rs1".to_owned());
    let mut world = World::with(options.clone());
    world.opened(1, &primary(1));
    let done = world.done();
    assert_eq!(done.last().map(String::as_str), Some("clear"));
    assert!(!done.contains(&"ready".to_owned()));
    assert_eq!(
        world.monitor.description().to_string(),
        "Unknown: hello: the server belongs to the replica set `rs0`, not to `rs1`: correct the \
         host or replicaSet"
    );
    let mut world = World::with(options.clone());
    world.opened(1, &standalone());
    assert!(world.monitor.description().to_string().contains("belongs to no replica set"));
    let mut world = World::with(options);
    world.opened(1, &rawdoc! { "ok": 1, "isreplicaset": true });
    assert!(world.monitor.description().to_string().contains("belongs to no replica set yet"));
}

/// It answers the first hello on each connection, and resets the connection when it is asked again.
#[test]
fn a_connection_that_ends_at_once_is_not_replaced_in_a_loop() {
    let mut world = World::new();
    world.wait(MS * 3);
    world.opened(1, &primary(1));
    world.done();
    world.failed(1, reset());
    let done = world.done();
    assert_eq!(done.last().map(String::as_str), Some("clear"), "{done:?}");
    let failed = world.now;
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (failed + MS * 500, DeadlineReason::Check));
    assert_eq!(world.done(), ["started", "open 3"]);
    // SM-06: one that was open for a while is replaced at once.
    world.opened(3, &primary(1));
    world.done();
    world.wait(MS * 500);
    world.failed(3, reset());
    assert_eq!(world.done().last().map(String::as_str), Some("open 5"));
}
