//! Callers wait for connections, in order and for a limited time.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::{Wait, WaitLimit};
use cenote_core::pool::{CheckOutError, CloseReason, Maintenance, PoolOptions};

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, failure, ready, until};

on_all_runtimes!(
    a_connection_is_made_once_and_used_again,
    first_come_first_served,
    waiting_ends_after_the_time_that_was_set_and_says_why,
    hundreds_of_callers_time_out_each_at_its_deadline,
    a_paused_pool_fails_check_outs,
    stale_connections_are_closed_as_stale_however_long_they_were_idle,
    a_deadline_ends_the_wait_and_not_the_connection,
    with_connection_checks_in_in_any_case,
);

// OUT-02, OUT-04, OUT-16, LN-03
fn a_connection_is_made_once_and_used_again<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, log) = ready::<R>(&gate, at_most(1));
    for _ in 0..3 {
        assert_eq!(pool.check_out().expect("a connection").number, 1);
    }
    assert_eq!(
        log.take_all(13),
        [
            "ConnectionPoolCreated",
            "ConnectionPoolReady",
            "ConnectionCheckOutStarted",
            "ConnectionCreated",
            "ConnectionReady",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionCheckOutStarted",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
        ]
    );
}

// WQ-01, WQ-03, WQ-07, WQ-08, OUT-08, OUT-09
fn first_come_first_served<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(1));
    let first = pool.check_out().expect("a connection");
    let order = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..20)
        .map(|number| {
            let (own, order) = (pool.clone(), Arc::clone(&order));
            let thread = thread::spawn(move || {
                let _connection = own.check_out().expect("a connection");
                order.lock().expect("no panic").push(number);
            });
            until(|| pool.snapshot().waiting == number + 1);
            thread
        })
        .collect();
    drop(first);
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(*order.lock().expect("no panic"), (0..20).collect::<Vec<_>>());
}

// WQ-01, OUT-03, OUT-10, OUT-17, ER-12
fn waiting_ends_after_the_time_that_was_set_and_says_why<R: TestRuntime>() {
    let gate = Gate::open();
    let options = at_most(1).with_wait_queue_timeout(Duration::from_millis(100));
    let (pool, _) = ready::<R>(&gate, options);
    let held = pool.check_out().expect("a connection");
    let began = Instant::now();
    let error = pool.check_out().expect_err("it fails");
    assert!(began.elapsed() >= Duration::from_millis(100));
    assert!(error.is_timeout());
    let text = error.to_string();
    assert!(text.contains("total 1/1") && text.contains("in use 1"), "{text}");
    let limit = Duration::from_millis(100);
    let wait = error.wait().expect("known");
    assert_eq!(wait.limit, Some(WaitLimit::WaitQueueTimeout(limit)));
    // The caller reads its own clock a moment after the pool, or longer if it is not scheduled.
    assert!(!wait.waited.is_zero(), "{text}");
    let request = error.request().expect("known");
    let known = format!("[db.example.com:27017 | request {request} | {wait} | ready ");
    assert!(text.contains(&known), "{text}");

    // The caller's own deadline replaces it, whether earlier or later (CS-07).
    for wait in [10, 200] {
        let began = Instant::now();
        let deadline = began + Duration::from_millis(wait);
        let error = pool.check_out_before(deadline).expect_err("it fails");
        assert!(error.is_timeout());
        assert!(began.elapsed() >= Duration::from_millis(wait));
        let Wait { waited, limit } = error.wait().expect("known");
        let Some(WaitLimit::Deadline(limit)) = limit else { panic!("{error}") };
        assert!(limit <= Duration::from_millis(wait) && waited >= limit, "{error}");
    }
    drop(held);
    assert!(pool.check_out().is_ok());
}

// WQ-05, WQ-06, WQ-16, ND-07
// Reports ClickHouse#113979, volo#547: a wait goes on beyond its limit, and waits that failed stay in the queue.
fn hundreds_of_callers_time_out_each_at_its_deadline<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(1));
    let _held = pool.check_out().expect("a connection");
    let began = Instant::now();
    thread::scope(|scope| {
        for number in 0..300_u64 {
            let pool = &pool;
            // Later check-outs have earlier deadlines, so that the timer is set again for each.
            let deadline = began + Duration::from_millis(400 - number);
            scope.spawn(move || {
                assert!(pool.check_out_before(deadline).expect_err("it fails").is_timeout());
                assert!(Instant::now() >= deadline);
            });
        }
    });
    assert_eq!(pool.snapshot().waiting, 0);
}

// PS-10, PS-15, PS-16, OUT-12, OUT-17, CLR-03, CLR-13, ER-03, ER-22
fn a_paused_pool_fails_check_outs<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, PoolOptions::default());
    pool.clear(failure(), false);
    let error = pool.check_out().expect_err("it fails");
    assert!(matches!(error.error(), CheckOutError::PoolCleared { cause: Some(_) }), "{error}");
    assert!(error.is_retryable());
    assert_eq!(error.wait(), Some(Wait::default()));
    let request = error.request().expect("known");
    assert!(error.to_string().ends_with(&format!(" [request {request} | at once]")), "{error}");
    pool.ready();
    assert!(pool.check_out().is_ok());
}

// KX-05
fn stale_connections_are_closed_as_stale_however_long_they_were_idle<R: TestRuntime>() {
    let options = at_most(1).with_max_idle_time(Duration::from_nanos(1));
    let (pool, log) = ready::<R>(&Gate::open(), options.with_maintenance(Maintenance::Never));
    drop(pool.check_out().expect("a connection"));
    pool.clear(failure(), false);
    pool.ready();
    drop(pool.check_out().expect("another connection"));
    until(|| log.closed_for() == [CloseReason::Stale]);
}

// CS-03, CS-05, SI-18: the connection belongs to the pool, and serves the next caller.
fn a_deadline_ends_the_wait_and_not_the_connection<R: TestRuntime>() {
    let gate = Gate::closed();
    let (pool, log) = ready::<R>(&gate, at_most(1));
    let deadline = Instant::now() + Duration::from_millis(30);
    let error = pool.check_out_before(deadline).expect_err("it fails");
    assert!(error.is_timeout() && Instant::now() >= deadline, "{error}");
    assert_eq!(pool.snapshot().pending, 1);
    assert_eq!(log.take_all(5)[4..], ["ConnectionCheckOutFailed"]);
    gate.admit(1);
    assert_eq!(pool.check_out().expect("a connection").number, 1);
    pool.close();
}

// WC-01
fn with_connection_checks_in_in_any_case<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(1));
    let number =
        pool.with_connection(|connection| Ok::<_, Box<dyn std::error::Error>>(connection.number));
    assert_eq!(number.expect("it works"), 1);
    let failed = pool.with_connection(|connection| {
        connection.broken = true;
        Err::<(), Box<dyn std::error::Error>>("no".into())
    });
    assert_eq!(failed.expect_err("it fails").to_string(), "no");
    assert_eq!(pool.snapshot().total, 0, "it was found broken");
    until(|| gate.alive().is_empty());
}
