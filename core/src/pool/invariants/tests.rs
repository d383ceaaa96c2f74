//! Whether the invariants can fail at all: a pool's memory is broken by hand, in one place at a
//! time. What lies inside of its parts is broken where it lies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::prelude::v1::*;

use super::*;
use crate::pool::{Health, Input, Instant, NoPayload, PoolOptions, Purpose, ServiceId, WaiterId};

type Pool = PoolState<NoPayload>;

/// After 9 s: connection 1 is in use and has reached the leak detection threshold, 2 is in use, 3 is being made for
/// request 3; requests 4, 6 and 7 wait, 7 until an earlier time than 4, and 5 has gone.
pub(in crate::pool) fn busy() -> Pool {
    let options = PoolOptions::default()
        .with_max_pool_size(3)
        .with_max_connecting(1)
        .with_max_lifetime(SECOND * 60)
        .with_leak_detection_threshold(SECOND * 5);
    let mut pool = pool(options, [Input::Ready, ask(1, None), ask(2, None), made(1), ask(3, None)]);
    feed(&mut pool, 6, [Input::Timer, made(2), ask(4, Some(90)), ask(5, Some(95)), ask(6, None)]);
    let gone = Input::CheckOutCancelled { id: WaiterId(5) };
    feed(&mut pool, 9, [ask(7, Some(80)), gone]);
    pool.check_invariants();
    pool
}

/// Connection 1 is available, and 2 is in use.
pub(in crate::pool) fn idle() -> Pool {
    let back = Input::CheckedIn { id: id(1), conn: (), health: Health::Healthy };
    let inputs = [Input::Ready, ask(1, None), made(1), ask(2, None), made(2), back];
    pool(PoolOptions::default().with_max_lifetime(SECOND * 60), inputs)
}

/// Connection 1 is in use, of a service.
pub(in crate::pool) fn balanced() -> Pool {
    let greeted = Input::Handshaken { id: id(1), service: Some(SERVICE), clears_at_hello: None };
    let options = PoolOptions::default().with_load_balanced(true);
    pool(options, [Input::Ready, ask(1, None), greeted, made(1)])
}

/// The invariants find what `damage` did to the pool, and say so with these words.
pub(in crate::pool) fn assert_found(mut pool: Pool, damage: impl FnOnce(&mut Pool), words: &str) {
    pool.check_invariants();
    damage(&mut pool);
    let found = catch_unwind(AssertUnwindSafe(|| pool.check_invariants()));
    let panic = found.expect_err(words);
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a text");
    assert!(text.contains(words), "{words:?} is not in {text:?}");
}

const SECOND: core::time::Duration = core::time::Duration::from_secs(1);
pub(in crate::pool) const SERVICE: ServiceId = ServiceId([7; 12]);

fn pool<const N: usize>(options: PoolOptions, inputs: [Input<NoPayload>; N]) -> Pool {
    let mut pool = Pool::new(Instant::ORIGIN, options, &mut |_| {}).expect("options");
    feed(&mut pool, 0, inputs);
    pool
}

fn feed<const N: usize>(pool: &mut Pool, seconds: u64, inputs: [Input<NoPayload>; N]) {
    for input in inputs {
        pool.handle(at(seconds), input, &mut |_| {}).expect("a legal input");
    }
}

pub(in crate::pool) fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn ask(number: u64, deadline: Option<u64>) -> Input<NoPayload> {
    let (id, deadline) = (WaiterId(number), deadline.map(at));
    Input::CheckOutRequested { id, waiter: (), deadline, purpose: Purpose::Cursor }
}

fn made(number: u64) -> Input<NoPayload> {
    Input::EstablishSucceeded { id: id(number), conn: () }
}

/// Nothing is closed here, so that slots are taken into use in order.
pub(in crate::pool) fn id(number: u64) -> ConnId {
    ConnId::from_parts(number, u32::try_from(number - 1).expect("few"))
}

#[test]
fn a_standing_delay_can_be_wrong() {
    let known = "whether the delay stands is known";
    assert_found(busy(), |it| it.standing_since = Some(Instant::ORIGIN), known);
    let delayed = || {
        let options = PoolOptions::default().with_max_pool_size(1).with_codel_target(SECOND);
        let mut pool = pool(options, [Input::Ready, ask(1, None), made(1), ask(2, None)]);
        feed(&mut pool, 1, [Input::Timer]);
        pool
    };
    assert_found(delayed(), |it| it.standing_since = None, known);
    let later = Some(at(2));
    assert_found(
        delayed(),
        |it| it.standing_since = later,
        "the delay stands since a time to come",
    );
}

/// An adaptive pool that backs off and predicts its minimum, after 9 s: connection 1 was established in 2 s, is in use
/// and was used before; 2 could not be established, because the server was overloaded.
fn paced() -> Pool {
    let options = PoolOptions::default()
        .with_adaptive_connecting(true)
        .with_overload_backoff(SECOND * 9)
        .with_predictive_min_pool_size(true);
    let mut pool = pool(options, [Input::Ready, ask(1, None)]);
    feed(&mut pool, 2, [made(1), ask(2, None)]);
    feed(&mut pool, 7, [Input::Timer]);
    let back = Input::CheckedIn { id: id(1), conn: (), health: Health::Healthy };
    feed(&mut pool, 9, [back, Input::EstablishFailed { id: id(2), cause: (), overloaded: true }]);
    pool.check_invariants();
    assert!(pool.pacing.overloads > 0 && pool.demand.is_some_and(|demand| demand.predicted > 0));
    pool
}

#[test]
fn policies_can_be_wrong() {
    let later = Some(at(10));
    assert_found(paced(), |it| it.pacing.gained = later, "a connection was gained after its time");
    let ahead = |it: &mut Pool| it.demand.as_mut().expect("measured").since = at(10);
    assert_found(paced(), ahead, "the demand is measured from after its time");
    assert_found(paced(), |it| it.demand = None, "demand is measured to predict it");
    let off = "establishments are paced although that is switched off";
    assert_found(idle(), |it| it.pacing.not_before = later, off);
    let measured = |it: &mut Pool| {
        (it.settings.adapts, it.options.adaptive_connecting) = (false, None);
    };
    let never = "establishments were measured although the pool does not adapt";
    assert_found(paced(), measured, never);
    let without = |it: &mut Pool| {
        (it.settings.backoff, it.options.overload_backoff) = (None, None);
    };
    assert_found(paced(), without, "the pool never backs off");
}

#[test]
fn promises_can_be_broken() {
    let lets_wait = "requests wait only in a ready pool";
    assert_found(busy(), |it| (it.status, it.generation) = (Status::Paused, 1), lets_wait);
    let could_make = "although a connection could be made";
    assert_found(
        busy(),
        |it| (it.settings.max_total, it.settings.max_pending) = (9, 9),
        could_make,
    );
    let beside = "a request waits although a connection is available";
    let come_back = |it: &mut Pool| it.connections.make_available(id(2), (), at(0));
    assert_found(busy(), come_back, beside);
}

#[test]
fn a_status_can_be_wrong() {
    let of_its_own = "a paused pool has nothing of its present generation";
    assert_found(idle(), |it| it.status = Status::Paused, of_its_own);
    let at_once = "a paused pool has closed what was available";
    assert_found(idle(), |it| (it.status, it.generation) = (Status::Paused, 1), at_once);
    assert_found(
        idle(),
        |it| it.status = Status::Closed,
        "a closed pool has no available connection",
    );
    let mut making = busy();
    for number in 4..=7 {
        feed(&mut making, 9, [Input::CheckOutCancelled { id: WaiterId(number) }]);
    }
    assert_found(
        making,
        |it| it.status = Status::Closed,
        "a closed pool has no pending connection",
    );
    assert_found(idle(), |it| it.settings.max_total = 1, "surplus is not kept available");
}

#[test]
fn owners_can_be_wrong() {
    let each_other = "an owner and its connection know each other";
    assert_found(busy(), |it| it.owners.truncate(0), each_other);
    let in_order = "owners are in the order of requests";
    let twice = |it: &mut Pool| {
        let mut earlier = it.owners[0].clone();
        earlier.0.id = WaiterId(2);
        it.owners.push(earlier);
    };
    assert_found(busy(), twice, in_order);
}

#[test]
fn counts_can_be_wrong() {
    let miscounted = "does not count its connections";
    assert_found(balanced(), |it| _ = it.services.join(SERVICE), miscounted);
    let not_there = "belongs to a service that is not there";
    assert_found(balanced(), |it| it.services.leave(SERVICE), not_there);
    let without_balancer = "if and only if there is a load balancer";
    let plain = |it: &mut Pool| {
        it.settings.load_balanced = false;
        it.options.load_balanced = Some(false);
    };
    assert_found(balanced(), plain, without_balancer);
    let follow = "settings follow options";
    assert_found(idle(), |it| it.options.max_pool_size = Some(7), follow);
    assert_found(idle(), |it| it.inherited = 3, "more connections were inherited than made");
    assert_found(idle(), |it| it.reported = 3, "more connections were reported than made");
}
