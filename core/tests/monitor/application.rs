//! Connections of the application that fail.

use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::rawdoc;
use cenote_core::connect::ServerKind;
use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_core::monitor::{DeadlineReason, Input};
use cenote_core::sdam::{self, Context};

use crate::monitor::world::{MS, SECOND, World, primary, secondary, standalone};

/// As an embedder judges it.
fn failed(world: &mut World, error: &ConnectionError) {
    let context = Context {
        load_balanced: false,
        current_generation: true,
        topology_version: world.monitor.topology_version(),
    };
    let verdict = sdam::verdict(&context, error);
    world.feed(Input::ApplicationFailed { error: error.clone(), verdict });
}

fn refused(code: i32, counter: Option<i64>) -> ConnectionError {
    let mut reply = rawdoc! { "ok": 0, "errmsg": "no", "code": code };
    if let Some(counter) = counter {
        let process_id = ObjectId::from_bytes([1; 12]);
        let version = rawdoc! { "processId": process_id, "counter": counter };
        reply.append(cstr!("topologyVersion"), version);
    }
    let reply = CommandError::from_reply(&reply).expect("a refusal");
    ConnectionError::command(Stage::Operation, reply)
}

// SD-28: a network error cancels the check that hangs on the same network, closes its connection,
// and the next check is not hurried (SD-27) until one is requested.
#[test]
fn a_network_error_cancels_the_check() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    world.wait(SECOND);
    failed(&mut world, &ConnectionError::network(Stage::Operation, "reset by peer"));
    let unknown = "RSPrimary of rs0 -> Unknown: operation: reset by peer";
    assert_eq!(world.done(), [unknown, "failed after 1s", "close 1"]);
    let due = world.monitor.next_deadline().unwrap();
    assert_eq!(due.at, world.now + SECOND * 10);
    world.feed(Input::RequestCheck);
    let cancelled = world.now;
    assert_eq!(world.until_due().at, cancelled + MS * 500);
    assert_eq!(world.done(), ["started", "open 3"]);
    world.opened(3, &primary(1));
    assert_eq!(world.kind(), Some(ServerKind::RsPrimary));
}

// SD-28: between two checks only the connection is closed.
#[test]
fn a_network_error_between_two_checks() {
    let mut world = World::new();
    world.opened(1, &standalone());
    world.done();
    failed(&mut world, &ConnectionError::network(Stage::Operation, "reset by peer"));
    assert_eq!(world.done()[1..], ["close 1"]);
    world.until_due();
    assert_eq!(world.done(), ["started", "open 2"]);
}

// SD-29: a change of state asks for a check, and what is as old as the change does not undo it.
#[test]
fn a_change_of_state() {
    let mut world = World::new();
    world.opened(1, &standalone());
    world.wait(SECOND);
    world.done();
    failed(&mut world, &refused(10107, None));
    assert_eq!(
        world.done(),
        ["Standalone -> Unknown: operation: no (code 10107)", "started", "send 1: hello"]
    );

    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    failed(&mut world, &refused(10107, Some(2)));
    assert_eq!(world.kind(), None);
    world.done();
    // SM-11: what was on its way says less than the error did.
    world.replied(1, &primary(1), true);
    assert_eq!(world.done(), ["succeeded after 0ns", "started, awaited"]);
    assert_eq!(world.kind(), None);
    world.replied(1, &secondary(2), true);
    assert_eq!(world.kind(), Some(ServerKind::RsSecondary));
}

// SD-21, SD-25: stale errors and timeouts change nothing.
#[test]
fn what_changes_nothing() {
    let mut world = World::new();
    world.opened(1, &primary(3));
    world.done();
    failed(&mut world, &refused(10107, Some(3)));
    failed(&mut world, &refused(91, Some(2)));
    failed(&mut world, &ConnectionError::timeout(Stage::Operation, SECOND));
    assert!(world.done().is_empty());
    assert_eq!(world.kind(), Some(ServerKind::RsPrimary));
}

/// Logins are refused for a moment, or for ever: a caller has the server asked on another socket than the one whose hello
/// is awaited, and ever less often.
#[test]
fn a_server_that_refuses_logins_is_asked_anew() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.opened(2, &primary(1));
    world.wait(SECOND * 5);
    world.done();
    let reply = rawdoc! { "ok": 0, "errmsg": "not now", "code": 18 };
    let reply = CommandError::from_reply(&reply).expect("a refusal");
    let error = ConnectionError::command(Stage::Authentication, reply);
    let mut socket = 0;
    let mut pause = |world: &mut World| {
        failed(world, &error);
        assert_eq!(world.kind(), None);
        let begin = world.now;
        world.feed(Input::RequestCheck);
        world.done();
        while world.kind().is_none() {
            if world.until_due().reason == DeadlineReason::Check {
                let opened =
                    world.done().pop().and_then(|it| it.strip_prefix("open ")?.parse().ok());
                socket = opened.expect("a socket");
                world.opened(socket, &primary(1));
            }
        }
        (world.now.saturating_since(begin).as_millis(), socket)
    };
    let pauses = [(); 6].map(|()| pause(&mut world).0);
    assert_eq!(pauses, [500, 500, 1000, 2000, 4000, 8000]);
    // Until it is found as it was.
    let (_, streams) = pause(&mut world);
    world.replied(streams, &primary(2), true);
    assert_eq!(pause(&mut world).0, 500);
}

/// Its replies are older than the error that a caller found, so that it stays Unknown, and the caller waits.
#[test]
fn a_server_whose_replies_are_old_is_not_asked_in_a_loop() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.wait(SECOND);
    failed(&mut world, &refused(91, Some(5)));
    let mut begin = world.now;
    for _ in 0..4 {
        world.feed(Input::RequestCheck);
        world.done();
        while world.until_due().reason != DeadlineReason::Check {}
        assert!(world.now >= begin + MS * 500);
        begin = world.now;
        let opened = world.done().pop().and_then(|it| it.strip_prefix("open ")?.parse().ok());
        world.opened(opened.expect("a socket"), &primary(1));
        assert_eq!(world.kind(), None);
    }
}
