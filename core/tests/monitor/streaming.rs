//! Servers that say so when something changes.

use cenote_core::connect::ServerKind;
use cenote_core::monitor::{Action, DeadlineReason, Input, MonitorOptions};

use crate::monitor::world::{MS, SECOND, World, primary, refusal, secondary, standalone};

// SE-10, SM-03, SM-04: hello with the topology version, replies that go on, and no pause between.
#[test]
fn a_server_that_counts_its_changes_streams() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    let expected = [
        "started",
        "open 1",
        "succeeded after 0ns",
        "Unknown: not checked yet -> RSPrimary of rs0",
        "ready",
        "open 2 to measure",
        "started, awaited",
        "send 1: awaited hello",
    ];
    assert_eq!(world.done(), expected);
    world.wait(SECOND * 10);
    world.replied(1, &primary(1), true);
    assert_eq!(world.done(), ["succeeded after 10s", "ready", "started, awaited"]);
    world.wait(SECOND);
    world.replied(1, &secondary(2), true);
    let changed = "RSPrimary of rs0 -> RSSecondary of rs0";
    assert_eq!(world.done(), ["succeeded after 1s", changed, "ready", "started, awaited"]);
    // The last of these replies: it is asked again, with what it said last.
    world.replied(1, &secondary(3), false);
    let changed = "RSSecondary of rs0 -> RSSecondary of rs0";
    let expected = ["succeeded after 0ns", changed, "ready", "started, awaited"];
    assert_eq!(world.actions.len(), 5);
    let Some(Action::Send { command, .. }) = world.actions.last() else {
        panic!("{:?}", world.actions)
    };
    let version = command.body().get_document("topologyVersion").unwrap();
    assert_eq!(version.get_i64("counter").unwrap(), 3);
    assert_eq!(command.body().get_i64("maxAwaitTimeMS").unwrap(), 10_000);
    assert_eq!(world.done()[..4], expected);
}

// SD-52: what a streamed reply may take is connectTimeoutMS and heartbeatFrequencyMS.
#[test]
fn a_stream_that_falls_silent() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.opened(2, &primary(1));
    world.done();
    world.wait(SECOND);
    world.replied(1, &primary(1), true);
    world.done();
    let from = world.now;
    // The other socket is asked meanwhile, and hangs, too.
    assert_eq!(world.until_due().reason, DeadlineReason::RoundTrip);
    assert_eq!(world.done(), ["send 2: hello"]);
    assert_eq!(world.until_due().reason, DeadlineReason::RoundTripTimeout);
    assert_eq!(world.done(), ["close 2"]);
    assert_eq!(world.kind(), Some(ServerKind::RsPrimary), "SD-42");
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (from + SECOND * 20, DeadlineReason::CheckTimeout));
    // SM-06: it was known, so that it is asked again at once.
    let unknown = "RSPrimary of rs0 -> Unknown: hello: timed out after 20s";
    let expected =
        ["failed after 20s", "close 1", unknown, "clear and interrupt", "started", "open 3"];
    assert_eq!(world.done(), expected);
}

// SD-52: without limit stays without limit, also for streams.
// Reports NODE-2874: with `connectTimeoutMS=0` streamed checks time out.
#[test]
fn zero_is_without_limit() {
    let mut options = MonitorOptions::default();
    options.connect_timeout = std::time::Duration::ZERO;
    let mut world = World::with(options.clone());
    assert_eq!(world.monitor.next_deadline(), None);
    world.opened(1, &primary(1));
    assert_eq!(world.monitor.next_deadline(), None);

    let mut world = World::with(options);
    world.opened(1, &standalone());
    assert_eq!(world.until_due().reason, DeadlineReason::Check);
    assert_eq!(world.monitor.next_deadline(), None);
}

// SM-11: news that is older than what is known changes nothing, and makes nothing ready.
#[test]
fn old_news_is_ignored() {
    let mut world = World::new();
    world.opened(1, &primary(5));
    world.done();
    world.replied(1, &secondary(4), true);
    assert_eq!(world.done(), ["succeeded after 0ns", "started, awaited"]);
    assert_eq!(world.kind(), Some(ServerKind::RsPrimary));
    // The same count is news: a check may tell more than a change of state.
    world.replied(1, &secondary(5), true);
    assert_eq!(world.kind(), Some(ServerKind::RsSecondary));
}

/// A server that stops counting is asked at intervals again, with one socket.
#[test]
fn back_to_polling() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    world.replied(1, &standalone(), false);
    let changed = "RSPrimary of rs0 -> Standalone";
    assert_eq!(world.done(), ["succeeded after 0ns", changed, "ready", "close 2"]);
    assert_eq!(world.until_due().reason, DeadlineReason::Check);
    assert_eq!(world.done(), ["started", "send 1: hello"]);
}

// SM-05: what streams is not hurried by requests.
#[test]
fn a_request_changes_nothing_for_a_stream() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    world.wait(SECOND);
    world.feed(Input::RequestCheck);
    assert!(world.done().is_empty());
}

// SD-40: a refusal ends the stream, clears without an interrupt, and is not asked again at once.
#[test]
fn a_stream_that_ends_with_a_refusal() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    world.wait(MS * 7);
    world.replied(1, &refusal(), false);
    let unknown = "RSPrimary of rs0 -> Unknown: hello: not today (code 1234)";
    assert_eq!(world.done(), ["failed after 7ms", "close 1", "close 2", unknown, "clear"]);
    let failed = world.now;
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (failed + SECOND * 10, DeadlineReason::Check));
    assert_eq!(world.done(), ["started", "open 3"]);
    world.opened(3, &primary(1));
    assert!(world.done().contains(&"ready".to_owned()), "SD-09");
}

/// It tells `topologyVersion`, and answers every awaited hello at once, as if its state changed all the time.
#[test]
fn a_server_that_does_not_wait_is_not_asked_in_a_loop() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    world.wait(MS);
    world.replied(1, &primary(1), false);
    assert_eq!(world.done(), ["succeeded after 1ms", "ready"]);
    let answered = world.now;
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (answered + MS * 500, DeadlineReason::Check));
    assert_eq!(world.done(), ["started, awaited", "send 1: awaited hello"]);
    // One that has waited is asked again at once.
    world.wait(MS * 500);
    world.replied(1, &primary(1), false);
    assert_eq!(world.done()[1..], ["ready", "started, awaited", "send 1: awaited hello"]);
}
