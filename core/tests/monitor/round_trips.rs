//! How long servers take to answer.

use std::time::Duration;

use cenote_core::monitor::{DeadlineReason, Input, MonitorOptions, RoundTrip};
use cenote_core::uri::ServerMonitoringMode;

use crate::monitor::world::{MS, SECOND, World, primary, refusal, reset, standalone};

fn round_trip(world: &World) -> (Duration, Duration) {
    let RoundTrip { average, minimum } = world.monitor.round_trip().expect("one was measured");
    (average, minimum)
}

// SM-08: checks that are asked for tell the time, and the hello of a new socket does.
#[test]
fn polling_measures_by_itself() {
    let mut options = MonitorOptions::default();
    options.mode = ServerMonitoringMode::Poll;
    let mut world = World::with(options);
    assert_eq!(world.monitor.round_trip(), None);
    world.opened(1, &primary(1));
    assert_eq!(round_trip(&world), (MS, Duration::ZERO));
    world.until_due();
    world.wait(MS * 6);
    world.replied(1, &primary(1), false);
    // SM-09, SM-10.
    assert_eq!(round_trip(&world), (MS * 2, MS));
    assert_eq!(world.monitor.description().round_trip, world.monitor.round_trip());
}

// SM-07, SM-08: what streams is measured on a second socket, every ten seconds.
// Reports NODE-6171: a streamed reply counts as a round trip of no time.
#[test]
fn streaming_has_a_second_socket() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.wait(MS * 3);
    world.opened(2, &primary(1));
    let opened = world.now;
    assert_eq!(round_trip(&world), (MS, MS));
    world.replied(1, &primary(1), true);
    assert_eq!(round_trip(&world), (MS, MS), "a reply that was waited for is none");
    world.done();
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (opened + SECOND * 10, DeadlineReason::RoundTrip));
    assert_eq!(world.done(), ["send 2: hello"], "EV-29: there is no event");
    world.wait(MS * 11);
    // SM-08: whatever it says.
    world.replied(2, &refusal(), false);
    assert_eq!(round_trip(&world), (MS * 3, MS));
    assert!(world.done().is_empty());
    assert!(world.monitor.description().is_known());
}

/// A timer that is late is taken as well.
#[test]
fn a_measurement_that_is_overdue_is_made() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.opened(2, &primary(1));
    world.replied(1, &primary(1), true);
    world.done();
    world.wait(SECOND * 9);
    world.feed(Input::Timer);
    assert_eq!(world.done(), [""; 0], "it is not due yet");
    world.wait(SECOND * 2);
    world.feed(Input::Timer);
    assert_eq!(world.done(), ["send 2: hello"]);
}

// SD-42: a socket that fails there changes nothing but to be replaced in time.
#[test]
fn a_second_socket_that_fails() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    world.failed(2, reset());
    assert_eq!(world.done(), ["close 2"]);
    assert!(world.monitor.description().is_known());
    let failed = world.now;
    let due = world.until_due();
    assert_eq!((due.at, due.reason), (failed + SECOND * 10, DeadlineReason::RoundTrip));
    assert_eq!(world.done(), ["open 3 to measure"]);
}

// SM-09: what was measured before a failure does not count any more.
#[test]
fn a_failed_check_forgets_times() {
    let mut world = World::new();
    world.opened(1, &standalone());
    world.until_due();
    world.failed(1, reset());
    assert_eq!(world.monitor.round_trip(), None);
    assert_eq!(world.monitor.description().round_trip, None);
}
