//! When a shell has to look at its clock, each reason alone (`PoolState::needs_now`).

use std::time::Duration;

use cenote_core::pool::{
    ConnId, Health, Input, Instant, NoPayload, PoolOptions, PoolState, Purpose, WaiterId,
};

type Pool = PoolState<NoPayload>;

fn pool(options: PoolOptions) -> Pool {
    Pool::new(Instant::ORIGIN, options, &mut |_| {}).expect("options")
}

fn feed(pool: &mut Pool, inputs: impl IntoIterator<Item = Input<NoPayload>>) {
    for input in inputs {
        pool.handle(Instant::ORIGIN, input, &mut |_| {}).expect("legal");
    }
}

fn ask(number: u64, deadline: Option<Instant>) -> Input<NoPayload> {
    let id = WaiterId(number);
    Input::CheckOutRequested { id, waiter: (), deadline, purpose: Purpose::Other }
}

const FIRST: ConnId = ConnId::from_parts(1, 0);
const MADE: Input<NoPayload> = Input::EstablishSucceeded { id: FIRST, conn: () };
const BACK: Input<NoPayload> = Input::CheckedIn { id: FIRST, conn: (), health: Health::Healthy };

#[test]
fn a_pool_without_limits_does_not_need_the_time() {
    let mut pool = pool(PoolOptions::default().with_max_pool_size(1));
    assert!(!pool.needs_now());
    feed(&mut pool, [Input::Ready, ask(1, None)]);
    assert!(pool.needs_now(), "an establishment for a request has a deadline or may get one");
    feed(&mut pool, [MADE]);
    assert!(!pool.needs_now());
    feed(&mut pool, [ask(2, None)]);
    assert!(!pool.needs_now(), "a request without a limit does not depend on time");
    feed(&mut pool, [BACK]);
    feed(&mut pool, [BACK]);
    assert!(!pool.needs_now());
}

#[test]
fn limits_that_are_set_need_it() {
    let second = Duration::from_secs(1);
    let options = [
        PoolOptions::default().with_max_idle_time(second),
        PoolOptions::default().with_wait_queue_timeout(second),
        PoolOptions::default().with_max_lifetime(second),
        PoolOptions::default().with_leak_detection_threshold(second),
        PoolOptions::default().with_unanswered_threshold(second),
        PoolOptions::default().with_codel_target(second),
        PoolOptions::default().with_overload_backoff(second),
        PoolOptions::default().with_experimental_pending_response(true),
        PoolOptions::default().with_adaptive_connecting(true),
        PoolOptions::default().with_predictive_min_pool_size(true),
        // Its pause begins with a failure that may be the very next input.
        PoolOptions::default().with_min_pool_size(1),
    ];
    for options in options {
        assert!(pool(options.clone()).needs_now(), "{options:?}");
    }
}

#[test]
fn limits_that_run_need_it() {
    let mut waits = pool(PoolOptions::default().with_max_pool_size(1));
    feed(&mut waits, [Input::Ready, ask(1, None), MADE]);
    feed(&mut waits, [ask(2, Some(Instant::from_nanos(9)))]);
    assert!(waits.needs_now(), "a request waits until then");
    feed(&mut waits, [Input::CheckOutCancelled { id: WaiterId(2) }]);
    assert!(!waits.needs_now());

    let mut pauses = pool(PoolOptions::default().with_min_pool_size(1));
    feed(
        &mut pauses,
        [Input::Ready, Input::EstablishFailed { id: FIRST, cause: (), overloaded: false }],
    );
    feed(&mut pauses, [Input::SetOptions { options: Box::default() }]);
    assert!(pauses.needs_now(), "a pause goes on without a minimum");

    let mut ages = pool(PoolOptions::default().with_max_lifetime(Duration::from_secs(1)));
    feed(&mut ages, [Input::Ready, ask(1, None), MADE, BACK]);
    feed(&mut ages, [Input::SetOptions { options: Box::default() }]);
    assert!(ages.needs_now(), "a connection keeps the lifetime that it began with");
}
