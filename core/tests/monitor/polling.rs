//! Asking, at intervals.

use bson::rawdoc;
use cenote_core::monitor::{DeadlineReason, Input, MonitorOptions};
use cenote_core::uri::ServerMonitoringMode;

use crate::monitor::world::{MS, SECOND, World, primary, standalone};

// SE-06, SM-12, SD-01, SD-02: the first check is the hello of a new socket, and makes the pool ready.
#[test]
fn the_first_check_is_the_hello_of_a_new_socket() {
    let mut world = World::new();
    assert_eq!(world.done(), ["started", "open 1"]);
    assert!(!world.monitor.description().is_known());
    assert_eq!(world.monitor.description().to_string(), "Unknown: not checked yet");
    world.wait(MS * 3);
    world.opened(1, &standalone());
    let changed = "Unknown: not checked yet -> Standalone";
    assert_eq!(world.done(), ["succeeded after 3ms", changed, "ready"]);
}

// SM-03: a server that does not count its changes is asked at intervals, and answers at once.
#[test]
fn a_server_that_cannot_stream_is_asked_every_ten_seconds() {
    let mut world = World::new();
    world.opened(1, &standalone());
    world.done();
    let start = world.now;
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (start + SECOND * 10, DeadlineReason::Check));
    assert_eq!(world.done(), ["started", "send 1: hello"]);
    world.wait(MS * 2);
    world.replied(1, &standalone(), false);
    // Ready after every success, and nothing new to tell.
    assert_eq!(world.done(), ["succeeded after 2ms", "ready"]);
    let answered = world.now;
    assert_eq!(world.until_due().at, answered + SECOND * 10);
}

// HS-07: servers answer with `helloOk` only if they are asked by the old name.
#[test]
fn a_connection_keeps_to_the_new_name() {
    let mut world = World::new();
    world.opened(1, &standalone());
    for _ in 0..3 {
        world.done();
        world.until_due();
        assert_eq!(world.done(), ["started", "send 1: hello"]);
        world.replied(1, &rawdoc! { "ok": 1, "isWritablePrimary": true }, false);
    }
}

// SM-02
#[test]
fn whether_there_is_streaming() {
    use ServerMonitoringMode::{Auto, Poll, Stream};
    let cases = [
        (Auto, false, true),
        (Auto, true, false),
        (Stream, false, true),
        (Stream, true, true),
        (Poll, false, false),
        (Poll, true, false),
    ];
    for (mode, is_faas, streams) in cases {
        let mut options = MonitorOptions::default();
        (options.mode, options.is_faas) = (mode, is_faas);
        let mut world = World::with(options);
        world.opened(1, &primary(1));
        let done = world.done();
        assert_eq!(done.iter().any(|it| it == "send 1: awaited hello"), streams, "{mode:?}");
        // SM-07: without streaming there is no second socket.
        assert_eq!(done.iter().any(|it| it == "open 2 to measure"), streams, "{mode:?}");
    }
}

// SM-05: a check that is asked for comes at once, but 500 ms after the last one at the earliest.
#[test]
fn a_requested_check_keeps_the_floor() {
    let mut world = World::new();
    world.opened(1, &standalone());
    world.done();
    world.wait(MS * 100);
    world.feed(Input::RequestCheck);
    world.feed(Input::RequestCheck);
    assert!(world.done().is_empty());
    world.wait(MS * 399);
    world.feed(Input::Timer);
    assert!(world.done().is_empty(), "a timer that comes early does no harm");
    let due = world.until_due();
    assert_eq!(due.at.as_nanos(), 500_000_000);
    assert_eq!(world.done(), ["started", "send 1: hello"]);
    // It was one request, and it is answered.
    world.replied(1, &standalone(), false);
    assert_eq!(world.until_due().at.as_nanos(), 10_500_000_000);
    world.replied(1, &standalone(), false);
    world.done();
    world.wait(MS * 600);
    world.feed(Input::RequestCheck);
    assert_eq!(world.done(), ["started", "send 1: hello"], "the floor is passed: at once");
}

// SM-05: a request during a check is answered by it, unless it fails.
#[test]
fn a_request_during_a_check_is_answered_by_it_or_kept() {
    let mut world = World::new();
    world.feed(Input::RequestCheck);
    world.opened(1, &standalone());
    let due = world.monitor.next_deadline().unwrap();
    assert_eq!(due.at, world.now + SECOND * 10);

    let mut world = World::new();
    world.feed(Input::RequestCheck);
    world.failed(1, crate::monitor::world::reset());
    let due = world.monitor.next_deadline().unwrap();
    assert_eq!(due.at, world.now + MS * 500);
}

// OP-22: the frequency is the user's, from 500 ms on.
#[test]
fn the_frequency_is_as_set() {
    let mut options = MonitorOptions::default();
    options.heartbeat_frequency = MS * 500;
    let mut world = World::with(options.clone());
    assert_eq!(*world.monitor.options(), options);
    world.opened(1, &standalone());
    assert_eq!(world.until_due().at.as_nanos(), 500_000_000);
}

/// A socket that breaks between checks is replaced soon, and says nothing of the server by itself.
#[test]
fn an_idle_socket_that_breaks() {
    let mut world = World::new();
    world.opened(1, &standalone());
    world.done();
    world.failed(1, crate::monitor::world::reset());
    assert_eq!(world.done(), ["close 1"]);
    assert!(world.monitor.description().is_known());
    assert_eq!(world.until_due().at.as_nanos(), 500_000_000);
    assert_eq!(world.done(), ["started", "open 2"]);
}

/// Each connection has its own number at the server, which is no news of the server.
#[test]
fn a_server_is_the_same_on_another_socket() {
    let numbered = |number| {
        rawdoc! { "ok": 1, "helloOk": true, "isWritablePrimary": true, "connectionId": number }
    };
    let mut world = World::new();
    world.opened(1, &numbered(7));
    world.failed(1, crate::monitor::world::reset());
    world.until_due();
    world.done();
    world.opened(2, &numbered(8));
    assert_eq!(world.done(), ["succeeded after 0ns", "ready"]);
}
