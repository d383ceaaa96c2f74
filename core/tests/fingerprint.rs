//! States that differ in anything relevant have different fingerprints, on which replays depend.
//! Each test compares two pools that differ in one thing.

use std::time::Duration;

use cenote_core::pool::{
    ConnId, Input, Instant, NoPayload, PoolOptions, PoolState, Purpose, Status, WaiterId,
};

const FIRST: ConnId = ConnId::from_parts(1, 0);

fn pool(options: PoolOptions) -> PoolState<NoPayload> {
    let mut pool = PoolState::new(Instant::ORIGIN, options, &mut |_| {}).expect("usable options");
    feed(&mut pool, 0, Input::Ready);
    assert_eq!(pool.snapshot().status, Status::Ready);
    pool
}

fn feed(pool: &mut PoolState<NoPayload>, now: u64, input: Input<NoPayload>) {
    pool.handle(Instant::from_nanos(now), input, &mut |_| {}).expect("a valid input");
}

fn check_out(pool: &mut PoolState<NoPayload>, id: u64, deadline: Option<u64>, purpose: Purpose) {
    let deadline = deadline.map(Instant::from_nanos);
    let id = WaiterId(id);
    feed(pool, 0, Input::CheckOutRequested { id, waiter: (), deadline, purpose });
}

#[test]
fn the_purpose_of_a_request_that_owns_a_pending_connection_matters() {
    let [a, b] = [Purpose::Cursor, Purpose::Transaction].map(|purpose| {
        let mut pool = pool(PoolOptions::default());
        check_out(&mut pool, 1, None, purpose);
        pool.fingerprint()
    });
    assert_ne!(a, b);
}

#[test]
fn the_deadline_of_a_request_that_owns_a_pending_connection_matters() {
    let [a, b] = [5, 6].map(|deadline| {
        let mut pool = pool(PoolOptions::default());
        check_out(&mut pool, 1, Some(deadline), Purpose::Other);
        pool.fingerprint()
    });
    assert_ne!(a, b);
}

#[test]
fn the_origin_of_a_waiting_requests_deadline_matters() {
    let options = PoolOptions::default().with_max_pool_size(1);
    let [a, b] = [Some(5), None].map(|deadline| {
        let mut pool = pool(options.clone().with_wait_queue_timeout(Duration::from_nanos(5)));
        check_out(&mut pool, 1, Some(9), Purpose::Other);
        check_out(&mut pool, 2, deadline, Purpose::Other);
        pool.fingerprint()
    });
    assert_ne!(a, b);
}

#[test]
fn whether_the_end_of_a_lifetime_was_seen_matters() {
    let [a, b] = [Input::Timer, Input::CheckOutCancelled { id: WaiterId(9) }].map(|input| {
        let mut pool = pool(PoolOptions::default().with_max_lifetime(Duration::from_nanos(3)));
        check_out(&mut pool, 1, None, Purpose::Other);
        feed(&mut pool, 0, Input::EstablishSucceeded { id: FIRST, conn: () });
        feed(&mut pool, 3, input);
        assert_eq!(pool.snapshot().in_use, 1);
        pool.fingerprint()
    });
    assert_ne!(a, b);
}
