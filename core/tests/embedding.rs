//! What a driver's own shell relies on, beyond what the model says of a pool.

use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, Event, Input, Instant, NoPayload, PoolOptions, PoolState, Purpose, WaiterId,
};

const NOW: Instant = Instant::ORIGIN;

/// What is inside an action is moved on every check-out, so it stays small.
#[test]
fn actions_are_small() {
    assert!(size_of::<Action<NoPayload>>() <= 48, "{}", size_of::<Action<NoPayload>>());
}

/// As a pool that was fed `Ready`, with all events but one.
#[test]
fn a_pool_that_is_ready_from_the_beginning_does_not_say_so() {
    let options = PoolOptions::default().with_min_pool_size(3).with_max_connecting(3);
    let (mut born, mut fed) = (Vec::new(), Vec::new());
    let ready = PoolState::<NoPayload>::new_ready(NOW, options.clone(), &mut born);
    let mut pool = PoolState::new(NOW, options, &mut fed).expect("good options");
    pool.handle(NOW, Input::Ready, &mut fed).expect("a valid input");
    let ready = ready.expect("good options");
    ready.check_invariants();
    assert_eq!(ready.fingerprint(), pool.fingerprint());
    assert_eq!(fed.remove(1), Action::EmitEvent(Event::ConnectionPoolReady));
    assert_eq!(born, fed);
    assert_eq!(born.len(), 5, "created, and two connections that are announced and started");
    let refused = PoolOptions::default().with_max_connecting(0);
    assert!(PoolState::<NoPayload>::new_ready(NOW, refused, &mut born).is_err());
    assert_eq!(born.len(), 5);
}

/// Without limits on the time that a connection is idle or in use, neither way at once asks for the time.
#[test]
fn limits_of_waiting_need_no_time() {
    let needs = |options| {
        let pool = PoolState::<NoPayload>::new(NOW, options, &mut |_| {}).expect("good options");
        pool.needs_now_at_once()
    };
    let limit = Duration::from_secs(1);
    assert!(!needs(PoolOptions::default().with_wait_queue_timeout(limit).with_min_pool_size(1)));
    assert!(needs(PoolOptions::default().with_max_idle_time(limit)));
    assert!(needs(PoolOptions::default().with_leak_detection_threshold(limit)));
}

/// The usual life of a pool, full or not: lockstep compares both ways, and does not see which was taken.
#[test]
fn what_is_usual_is_decided_at_once() {
    let sink = &mut |_: Action<NoPayload>| {};
    let options = PoolOptions::default().with_max_pool_size(1);
    let mut pool = PoolState::<NoPayload>::new_ready(NOW, options, sink).expect("good options");
    let (first, purpose) = (ConnId::from_parts(1, 0), Purpose::Other);
    let request = Input::CheckOutRequested { id: WaiterId(1), waiter: (), deadline: None, purpose };
    for input in [request, Input::EstablishSucceeded { id: first, conn: () }] {
        pool.handle(NOW, input, sink).expect("a valid input");
    }
    assert_eq!(pool.enqueue_at_once(NOW, WaiterId(2), (), None, purpose, sink), Ok(None));
    assert_eq!(pool.hand_over_at_once(NOW, first, (), sink), Ok(((), ())));
    assert_eq!(pool.check_in_at_once(NOW, first, (), sink), Ok(()));
    assert_eq!(pool.check_out_at_once(NOW, WaiterId(3), purpose, sink), Some((first, ())));
}
