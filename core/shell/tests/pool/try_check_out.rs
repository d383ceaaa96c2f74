//! `try_check_out` returns a connection that is available, or `None`.

use std::sync::{Arc, Mutex};
use std::thread;

use cenote_core::pool::PoolOptions;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, failure, ready, until};

on_all_runtimes!(
    only_an_available_connection_is_returned,
    callers_that_wait_go_first,
    a_paused_or_closed_pool_fails_it,
);

fn only_an_available_connection_is_returned<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, log) = ready::<R>(&gate, at_most(2));
    assert!(
        pool.try_check_out().expect("a connection").is_none(),
        "there is room, but none is opened"
    );
    assert_eq!(pool.snapshot().connections_created, 0);

    drop(pool.check_out().expect("a connection"));
    assert_eq!(log.take_all(9).len(), 9);
    let connection = pool.try_check_out().expect("a connection").expect("an available connection");
    assert_eq!(connection.id(), 1);
    assert!(pool.try_check_out().expect("a connection").is_none(), "it is in use");
    drop(connection);
    assert_eq!(
        log.take_all(5),
        [
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckOutStarted",
            "ConnectionCheckOutFailed",
            "ConnectionCheckedIn",
        ]
    );
    assert_eq!(pool.snapshot().connections_created, 1);
}

/// Calls before and after a check-in do not change which caller gets the connection.
// WQ-04
fn callers_that_wait_go_first<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(1));
    let held = pool.check_out().expect("a connection");
    let order = Arc::new(Mutex::new(Vec::new()));
    let waiting: Vec<_> = (0..3)
        .map(|number| {
            let (own, order) = (pool.clone(), Arc::clone(&order));
            let thread = thread::spawn(move || {
                let _connection = own.check_out().expect("a connection");
                order.lock().expect("no panic").push(number);
                assert!(own.try_check_out().expect("a connection").is_none());
            });
            until(|| pool.snapshot().waiting == number + 1);
            thread
        })
        .collect();
    assert!(pool.try_check_out().expect("a connection").is_none());
    assert_eq!(pool.snapshot().waiting, 3, "it never waits itself");
    drop(held);
    for thread in waiting {
        thread.join().expect("no panic");
    }
    assert_eq!(*order.lock().expect("no panic"), [0, 1, 2]);
    assert!(pool.try_check_out().expect("a connection").is_some());
}

fn a_paused_or_closed_pool_fails_it<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, PoolOptions::default());
    drop(pool.check_out().expect("a connection"));
    pool.clear(failure(), false);
    assert_eq!(pool.try_check_out().expect_err("it fails").name(), "PoolClearedError");
    pool.ready();
    pool.close();
    assert_eq!(pool.try_check_out().expect_err("it fails").name(), "PoolClosedError");
}
