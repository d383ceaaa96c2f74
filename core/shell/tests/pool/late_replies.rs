//! Late replies are read by tasks that the pool can end at any time.

use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_shell::pool::CLOSE_GRACE;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, builder, failure, until};

on_all_runtimes!(
    a_task_ends_that_began_before_the_earlier_one_of_its_connection_had_ended,
    the_socket_is_closed_before_the_pool_is,
    an_operation_that_did_not_end_leaves_no_late_reply,
);

fn timeout() -> ConnectionError {
    ConnectionError::timeout(Stage::Operation, Duration::from_millis(1))
}

/// The connection whose reply is late is idle.
fn time_out<R: TestRuntime>(pool: &R::Pool<Gate>) {
    let mut connection = pool.check_out().expect("a connection");
    let outcome = connection.run(|connection| {
        connection.is_pending = true;
        Err::<(), _>(timeout())
    });
    assert!(outcome.expect_err("it is late").is_timeout());
    drop(connection);
    assert_eq!(pool.snapshot().pending_response, 1);
}

fn a_task_ends_that_began_before_the_earlier_one_of_its_connection_had_ended<R: TestRuntime>() {
    // The caller's own thread may be the one that tells the event.
    while !ends_early::<R>() {}
}

/// Whether the task that opened the connection still ran a subscriber when the late reply was to be read.
fn ends_early<R: TestRuntime>() -> bool {
    let (enter, entered) = channel();
    let (leave, left) = channel::<()>();
    let left = Mutex::new(left);
    let gate = Gate::open();
    let options = at_most(1).with_experimental_pending_response(true);
    let caller = thread::current().id();
    let pool = builder::<R>(&gate, options)
        .on_event(move |event| {
            if event.event.name() == "ConnectionReady" {
                let is_in_task = thread::current().id() != caller;
                enter.send(is_in_task).expect("the test waits");
                if is_in_task {
                    let _ = left.lock().expect("no panic").recv();
                }
            }
        })
        .build()
        .expect("good options");
    pool.ready();
    time_out::<R>(&pool);
    let is_in_task = entered.recv().expect("an event");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.check_out().map(drop));
        until(|| pool.snapshot().owners == 1);
        drop(leave);
        // The earlier task has ended.
        R::wait_for_tasks(&pool);
        let (told, tells) = channel::<()>();
        let closing = pool.clone();
        thread::spawn(move || {
            closing.close();
            drop(told);
        });
        let closed = tells.recv_timeout(CLOSE_GRACE - Duration::from_millis(500));
        assert_eq!(closed, Err(RecvTimeoutError::Disconnected), "{}", pool.snapshot());
        waiting.join().expect("no panic").expect_err("the pool is closed");
    });
    assert_eq!(gate.alive(), [0; 0]);
    is_in_task
}

/// Also of a task that was never polled.
fn the_socket_is_closed_before_the_pool_is<R: TestRuntime>() {
    for _ in 0..200 {
        let gate = Gate::open();
        let options = at_most(1).with_experimental_pending_response(true);
        let pool = builder::<R>(&gate, options).build().expect("good options");
        pool.ready();
        time_out::<R>(&pool);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.check_out().map(drop));
            until(|| pool.snapshot().owners == 1);
            pool.close();
            assert_eq!(gate.alive(), [0; 0]);
            waiting.join().expect("no panic").expect_err("the pool is closed");
        });
    }
}

/// The caller, too, may say so. The cause is the first error.
fn an_operation_that_did_not_end_leaves_no_late_reply<R: TestRuntime>() {
    for is_marked in [false, true] {
        let gate = Gate::open();
        let options = at_most(1).with_experimental_pending_response(true);
        let pool = builder::<R>(&gate, options).build().expect("good options");
        pool.ready();
        let mut connection = pool.check_out().expect("a connection");
        let outcome = connection.run(|connection| {
            connection.is_pending = true;
            Err::<(), _>(timeout())
        });
        outcome.expect_err("it is late");
        if is_marked {
            connection.mark_errored(failure());
        } else {
            let panics = std::panic::AssertUnwindSafe(|| {
                let panic = || -> Result<(), ConnectionError> {
                    std::panic::resume_unwind(Box::new("on purpose"))
                };
                connection.run(|_| panic())
            });
            assert!(std::panic::catch_unwind(panics).is_err());
        }
        drop(connection);
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.total, snapshot.pending_response), (0, 0), "{is_marked}");
        pool.close();
    }
}
