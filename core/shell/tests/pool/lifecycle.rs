//! Pools are built, change their options, and close.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::ConnectionError;
use cenote_core::pool::Status;
use cenote_shell::builder::Builder;
use cenote_shell::connection::{Connector, HandshakeReporter, Target};
use cenote_shell::runtime::Runtime;

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, checked, failure, ready, until};

on_all_runtimes!(
    close_waits_until_all_connections_are_checked_in,
    close_before_waits_until_its_deadline,
    a_pool_can_be_closed_at_any_time,
    the_last_handle_closes_the_pool,
    a_connection_whose_drop_panics_is_closed,
    a_connector_that_panics_fails_its_check_out,
    each_pool_with_a_connection_lifetime_has_its_own_jitter_seed,
    options_that_contradict_each_other_change_nothing,
);

// EV-27, PCL-02, KX-01, KX-02, KX-03, OUT-17
fn close_waits_until_all_connections_are_checked_in<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, log) = ready::<R>(&gate, at_most(2));
    let held = pool.check_out().expect("a connection");
    let is_closed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pool.close();
            is_closed.store(true, Ordering::Relaxed);
        });
        until(|| pool.snapshot().status == Status::Closed);
        assert_eq!(pool.check_out().expect_err("it fails").name(), "PoolClosedError");
        assert!(!is_closed.load(Ordering::Relaxed));
        drop(held);
    });
    assert_eq!(gate.alive(), [0; 0]);
    assert!(log.take().ends_with(&["ConnectionCheckedIn", "ConnectionClosed"]));
    pool.close(); // Does nothing.
}

fn close_before_waits_until_its_deadline<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(2));
    let held = pool.check_out().expect("a connection");
    let deadline = Instant::now() + Duration::from_millis(20);
    let still_out = pool.close_before(deadline).expect_err("it fails");
    assert!(Instant::now() >= deadline);
    assert_eq!(still_out.in_use, 1);
    drop(held);
    pool.close_before(Instant::now() + Duration::from_secs(60)).expect("it works");
    assert_eq!(gate.alive(), [0; 0]);
}

/// While connections are being opened, are in use, and callers wait.
// WQ-12, PCL-09, KX-02
fn a_pool_can_be_closed_at_any_time<R: TestRuntime>() {
    let gate = Gate::closed();
    gate.admit(2);
    let (pool, _) = ready::<R>(&gate, at_most(4));
    let held = [(); 2].map(|()| pool.check_out().expect("a connection"));
    thread::scope(|scope| {
        let waiting = [(); 20].map(|()| scope.spawn(|| pool.check_out().map(drop)));
        until(|| pool.snapshot().waiting == 18 && pool.snapshot().pending == 2);
        let closing = scope.spawn(|| pool.close());
        for request in waiting {
            assert_eq!(
                request.join().expect("no panic").expect_err("it fails").name(),
                "PoolClosedError"
            );
        }
        drop(held);
        closing.join().expect("no panic");
    });
    assert_eq!(gate.alive(), [0; 0]);
}

fn the_last_handle_closes_the_pool<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, log) = ready::<R>(&gate, at_most(2));
    let held = pool.check_out().expect("a connection");
    drop(pool.check_out().expect("a connection"));
    let clone = pool.clone();
    drop(pool);
    assert_eq!(clone.snapshot().status, Status::Ready);
    drop(clone);
    until(|| log.take().contains(&"ConnectionPoolClosed"));
    until(|| gate.alive() == [1]); // It is checked out.
    drop(held);
    until(|| gate.alive().is_empty());
}

/// Each is closed, and the pool drains.
fn a_connection_whose_drop_panics_is_closed<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, log) = ready::<R>(&gate, at_most(2));
    let [mut first, mut second] = [(); 2].map(|()| pool.check_out().expect("a connection"));
    (first.panics, second.panics) = (true, true);
    drop((first, second));
    pool.clear(failure(), false);
    pool.ready();
    pool.check_out().expect("a connection").panics = true;
    pool.close();
    assert_eq!(log.take().iter().filter(|name| **name == "ConnectionClosed").count(), 3);
    assert_eq!((pool.snapshot().total, gate.alive()), (0, Vec::new()));
}

/// Fails the first connection with a panic.
struct Panics;

impl<R: Runtime> Connector<R> for Panics {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target<R>,
        _: HandshakeReporter,
    ) -> Result<u64, ConnectionError> {
        if target.connection_id == 1 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        Ok(target.connection_id)
    }
}

fn a_connector_that_panics_fails_its_check_out<R: TestRuntime>() {
    let builder: Builder<R::Pool<_>> =
        Builder::new("db.example.com".parse().expect("an address"), Panics);
    let pool = checked(builder).build().expect("good options");
    pool.ready();
    assert_eq!(pool.check_out().expect_err("it fails").name(), "ConnectionError");
    assert_eq!(*pool.check_out().expect("a connection"), 2);
    pool.close();
}

fn each_pool_with_a_connection_lifetime_has_its_own_jitter_seed<R: TestRuntime>() {
    let gate = Gate::open();
    let options = at_most(2).with_max_lifetime(Duration::from_secs(600));
    let (pool, _) = ready::<R>(&gate, options.clone());
    let (other, _) = ready::<R>(&gate, options.clone());
    let seed = pool.options().jitter_seed;
    assert!(seed.is_some() && seed != other.options().jitter_seed);
    pool.set_options(options.clone().with_jitter_seed(7)).expect("it works");
    assert_eq!(pool.options().jitter_seed, Some(7));
    pool.set_options(options).expect("it works");
    assert!(pool.options().jitter_seed.is_some_and(|seed| seed != 7));
}

fn options_that_contradict_each_other_change_nothing<R: TestRuntime>() {
    let (pool, _) = ready::<R>(&Gate::open(), at_most(2));
    let before = pool.options();
    pool.set_options(at_most(2).with_min_pool_size(3))
        .expect_err("the minimum is above the maximum");
    assert_eq!(pool.options(), before);
}
