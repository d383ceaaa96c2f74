//! Connections are opened before the first check-out.

use std::sync::Barrier;
use std::thread;

use cenote_core::pool::PoolOptions;

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, failure, ready, until};

on_all_runtimes!(
    the_given_number_of_connections_is_idle_afterwards,
    max_connecting_connections_are_opened_at_a_time,
    the_pool_size_is_a_limit,
    the_first_failure_ends_it_and_the_connections_stay,
    after_a_failure_nothing_is_checked_out,
    concurrent_calls_do_not_wait_for_each_other,
);

fn the_given_number_of_connections_is_idle_afterwards<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, PoolOptions::default());
    assert_eq!(pool.warm_up(0).expect("a warm pool"), 0);
    assert_eq!(pool.warm_up(5).expect("a warm pool"), 5);
    assert_eq!((pool.snapshot().available, pool.snapshot().total), (5, 5));
    // Idle connections count.
    assert_eq!(pool.warm_up(7).expect("a warm pool"), 7);
    assert_eq!(pool.warm_up(2).expect("a warm pool"), 2);
    assert_eq!(gate.alive(), [1, 2, 3, 4, 5, 6, 7]);
}

fn max_connecting_connections_are_opened_at_a_time<R: TestRuntime>() {
    let gate = Gate::closed();
    let (pool, _) = ready::<R>(&gate, PoolOptions::default().with_max_connecting(3));
    thread::scope(|scope| {
        let warming = scope.spawn(|| pool.warm_up(8));
        until(|| pool.snapshot().pending == 3);
        assert_eq!(pool.snapshot().waiting, 0);
        // A check-out meanwhile is not the last to be served.
        let other = scope.spawn(|| pool.check_out().expect("a connection").number);
        until(|| pool.snapshot().waiting == 1);
        gate.admit(4);
        assert_eq!(other.join().expect("no panic"), 4);
        gate.admit(4);
        assert_eq!(warming.join().expect("no panic").expect("it works"), 8);
    });
    assert_eq!(pool.snapshot().available, 8);
}

fn the_pool_size_is_a_limit<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(4));
    let held = pool.check_out().expect("a connection");
    assert_eq!(pool.warm_up(10).expect("a warm pool"), 3);
    assert_eq!((pool.snapshot().available, pool.snapshot().in_use), (3, 1));
    drop(held);
    assert_eq!(pool.warm_up(10).expect("a warm pool"), 4);
    let (unlimited, _) = ready::<R>(&gate, at_most(0));
    assert_eq!(unlimited.warm_up(150).expect("a warm pool"), 150);
}

fn the_first_failure_ends_it_and_the_connections_stay<R: TestRuntime>() {
    let gate = Gate::open();
    gate.refuse(3);
    let (pool, _) = ready::<R>(&gate, PoolOptions::default().with_max_connecting(1));
    let error = pool.warm_up(5).expect_err("it fails");
    assert_eq!(error.name(), "ConnectionError", "{error}");
    assert_eq!((pool.snapshot().available, pool.snapshot().total), (2, 2));

    pool.clear(failure(), false);
    assert_eq!(pool.warm_up(5).expect_err("it fails").name(), "PoolClearedError");
}

fn after_a_failure_nothing_is_checked_out<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(3).with_max_connecting(3));
    assert_eq!(pool.warm_up(3).expect("a warm pool"), 3);
    pool.clear(failure(), false);
    pool.ready();
    gate.refuse(5);
    assert_eq!(pool.warm_up(3).expect_err("it fails").name(), "ConnectionError");
    until(|| pool.snapshot().pending == 0);
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
    pool.close();
    assert_eq!(gate.alive(), [0; 0]);
}

/// Whatever the pool's limits are.
fn concurrent_calls_do_not_wait_for_each_other<R: TestRuntime>() {
    for round in 0..1000 {
        let gate = Gate::open();
        let (max, connecting) = (2 + round % 3, 2 + round % 2);
        let (pool, _) = ready::<R>(&gate, at_most(max).with_max_connecting(connecting));
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    start.wait();
                    assert!(pool.warm_up(max).expect("a warm pool") <= max);
                });
            }
        });
        assert_eq!((pool.snapshot().in_use, pool.snapshot().waiting), (0, 0));
        pool.close();
    }
}
