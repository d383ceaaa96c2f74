//! Failures are reported before the pool learns of them, so that SDAM can clear it first.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, Kind, OperationError};
use cenote_core::pool::{CheckOutError, CloseReason, Event, PoolOptions, ServiceId, Status};
use cenote_core::sdam::PoolVerdict;
use cenote_shell::builder::Builder;
use cenote_shell::connection::{Connector, HandshakeReporter, Target};
use cenote_shell::failure::Failure;
use cenote_shell::runtime::Runtime;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, Log, at_most, builder, checked, failure, ready, until};

on_all_runtimes!(
    a_failed_establishment_is_reported_first,
    the_end_of_the_callers_time_is_no_failure_of_the_server,
    connections_that_fail_together_clear_once,
    an_error_in_use_is_reported_before_the_check_in,
    interruptions_and_faults_are_not_reported,
    a_handler_that_panics_does_not_affect_callers,
    a_load_balanced_pool_clears_the_service,
    a_load_balanced_connector_has_to_report_the_service,
    a_connection_whose_fault_check_panics_is_broken,
    an_attempt_that_hangs_gives_its_permit_back,
    attempts_from_before_a_clear_leave_their_permits,
    an_operation_that_panics_breaks_the_connection,
    an_operation_that_is_interrupted_fails_also_when_it_succeeds,
);

/// Connections that were reported, and whether the report cleared the pool.
type Reported = Arc<Mutex<Vec<(u64, bool)>>>;

const CLEAR: PoolVerdict = PoolVerdict::Clear { interrupt: false };

/// A ready pool whose failures clear it.
fn cleared_by_failures<R: TestRuntime>(
    gate: &Gate,
    options: PoolOptions,
) -> (R::Pool<Gate>, Log, Reported) {
    let (log, reported) = (Log::default(), Reported::default());
    let (heard, seen) = (log.clone(), Arc::clone(&reported));
    let pool = builder::<R>(gate, options)
        .on_event(move |event| heard.push(event))
        .on_failure(move |failure| note(&seen, failure, CLEAR))
        .build()
        .expect("good options");
    pool.ready();
    (pool, log, reported)
}

fn note(reported: &Reported, failure: &Failure<'_>, verdict: PoolVerdict) {
    let was_current = failure.context(None).current_generation;
    let cleared = failure.clear(verdict);
    assert_eq!(cleared, was_current, "nothing else clears in these tests");
    reported.lock().expect("no panic").push((failure.connection_id(), cleared));
}

fn take(reported: &Reported) -> Vec<(u64, bool)> {
    std::mem::take(&mut reported.lock().expect("no panic"))
}

// OUT-19, ES-05, T-03: the order that the specification requires.
fn a_failed_establishment_is_reported_first<R: TestRuntime>() {
    let gate = Gate::open();
    gate.refuse(1);
    let (pool, log, reported) = cleared_by_failures::<R>(&gate, at_most(1));
    let error = pool.check_out().expect_err("it fails");
    assert_eq!(error.name(), "ConnectionError", "{error}");
    assert_eq!(take(&reported), [(1, true)]);
    assert_eq!(
        log.take_all(7).split_off(4),
        ["ConnectionPoolCleared", "ConnectionClosed", "ConnectionCheckOutFailed"]
    );
    assert_eq!(pool.snapshot().status, Status::Paused);
}

// SD-22
fn the_end_of_the_callers_time_is_no_failure_of_the_server<R: TestRuntime>() {
    let (pool, log, reported) = cleared_by_failures::<R>(&Gate::closed(), at_most(1));
    let soon = Instant::now() + Duration::from_millis(20);
    assert!(pool.check_out_before(soon).expect_err("it is never opened").is_timeout());
    assert!(reported.lock().expect("no panic").is_empty());
    assert!(!log.take().contains(&"ConnectionPoolCleared"));
}

// CO-18, CLB-07, SD-20, T-62
fn connections_that_fail_together_clear_once<R: TestRuntime>() {
    let gate = Gate::closed();
    (1..=6).for_each(|number| gate.refuse(number));
    let (pool, log, reported) = cleared_by_failures::<R>(&gate, at_most(6).with_max_connecting(6));
    thread::scope(|scope| {
        let waiting = [(); 6].map(|()| scope.spawn(|| pool.check_out().map(drop)));
        until(|| pool.snapshot().pending == 6);
        gate.admit(1);
        until(|| pool.snapshot().status == Status::Paused);
        gate.admit(5);
        for request in waiting {
            assert!(request.join().expect("no panic").is_err());
        }
    });
    let (cleared, old): (Vec<_>, Vec<_>) = take(&reported).into_iter().partition(|(_, it)| *it);
    assert_eq!((cleared.len(), old.len()), (1, 5));
    assert_eq!(log.take().iter().filter(|name| **name == "ConnectionPoolCleared").count(), 1);
}

// IN-08
fn an_error_in_use_is_reported_before_the_check_in<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, log, reported) = cleared_by_failures::<R>(&gate, at_most(2));
    let mut connection = pool.check_out().expect("a connection");
    let outcome = connection.run(|_| Err::<(), _>(failure()));
    assert!(outcome.is_err());
    assert_eq!(take(&reported), [(1, true)], "at once");
    drop(connection);
    assert_eq!(
        log.take_all(9).split_off(6),
        ["ConnectionPoolCleared", "ConnectionCheckedIn", "ConnectionClosed"]
    );

    pool.ready();
    let mut connection = pool.check_out().expect("a connection");
    connection.mark_errored(failure());
    connection.mark_errored(failure());
    assert_eq!(take(&reported), [(2, true), (2, false)], "the second one is old news");
}

/// They say nothing about the server.
fn interruptions_and_faults_are_not_reported<R: TestRuntime>() {
    let gate = Gate::closed();
    gate.admit(2);
    let (pool, _, reported) = cleared_by_failures::<R>(&gate, at_most(3));
    let mut interrupted = pool.check_out().expect("a connection");
    let mut unread = pool.check_out().expect("a connection");
    let pending = thread::scope(|scope| {
        let pending = scope.spawn(|| pool.check_out().map(drop));
        until(|| pool.snapshot().pending == 1);
        unread.broken = true;
        drop(unread);
        pool.clear(failure(), true);
        pending.join().expect("no panic")
    });
    assert_eq!(pending.expect_err("it fails").name(), "PoolClearedError");
    assert!(interrupted.is_interrupted());
    assert!(interrupted.run(|_| Ok(())).is_err());
    drop(interrupted);
    assert_eq!(take(&reported), []);
}

fn a_handler_that_panics_does_not_affect_callers<R: TestRuntime>() {
    let gate = Gate::open();
    gate.refuse(1);
    let panics = |_: &Failure<'_>| resume_unwind(Box::new("on purpose"));
    let pool = builder::<R>(&gate, at_most(1)).on_failure(panics).build().expect("good options");
    pool.ready();
    assert_eq!(pool.check_out().expect_err("it fails").name(), "ConnectionError");
    assert_eq!(pool.check_out().expect("a connection").number, 2);
}

/// Each connection has a service of its own. The one with the number in `refuse` fails after hello.
struct Balanced {
    refuse: u64,
}

const fn service(number: u64) -> ServiceId {
    ServiceId([number as u8; 12])
}

impl<R: Runtime> Connector<R> for Balanced {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target<R>,
        reporter: HandshakeReporter,
    ) -> Result<u64, ConnectionError> {
        reporter.handshaken(service(target.connection_id));
        if target.connection_id == self.refuse {
            return Err(failure());
        }
        Ok(target.connection_id)
    }
}

// LB-21: the service of the connection, and no other.
fn a_load_balanced_pool_clears_the_service<R: TestRuntime>() {
    let reported = Reported::default();
    let seen = Arc::clone(&reported);
    let address = "db.example.com".parse().expect("an address");
    let pool = checked(Builder::<R::Pool<_>>::new(address, Balanced { refuse: 2 }))
        .replace_options(at_most(3).with_load_balanced(true))
        .on_failure(move |failure| {
            assert!(failure.context(None).load_balanced);
            assert_eq!(failure.service_id(), Some(service(failure.connection_id())));
            note(&seen, failure, PoolVerdict::ClearService);
        })
        .build()
        .expect("good options");
    pool.ready();
    let mut first = pool.check_out().expect("a connection");
    assert!(pool.check_out().is_err());
    assert_eq!(take(&reported), [(2, true)]);
    assert!(!first.is_stale());
    first.mark_errored(failure());
    assert!(first.is_stale());
    assert_eq!(take(&reported), [(1, true)]);
    assert_eq!(pool.snapshot().status, Status::Ready);
}

/// A connector that never calls its reporter.
struct Silent;

impl<R: Runtime> Connector<R> for Silent {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target<R>,
        _: HandshakeReporter,
    ) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

/// The caller gets an error that names the call, and nothing of the connection is left.
fn a_load_balanced_connector_has_to_report_the_service<R: TestRuntime>() {
    let address = "db.example.com".parse().expect("an address");
    let pool = checked(Builder::<R::Pool<_>>::new(address, Silent))
        .replace_options(at_most(1).with_load_balanced(true))
        .build()
        .expect("good options");
    pool.ready();
    for _ in 0..2 {
        let error = pool.check_out().expect_err("it fails");
        let CheckOutError::EstablishFailed { cause } = error.error() else { panic!("{error}") };
        assert_eq!(cause.kind(), &Kind::Configuration);
        assert!(cause.reason().contains("HandshakeReporter::handshaken"), "{cause}");
    }
    assert_eq!(pool.snapshot().total, 0);
    pool.close();
}

/// A connector that never connects.
struct Hangs;

impl<R: Runtime> Connector<R> for Hangs {
    type Connection = u64;
    type Error = ConnectionError;

    async fn connect(&self, _: Target<R>, _: HandshakeReporter) -> Result<u64, ConnectionError> {
        std::future::pending().await
    }

    fn connect_timeout(&self) -> Option<Duration> {
        Some(Duration::from_millis(50))
    }
}

// Reports HikariCP#2161, node-firebird#406, n8n#30612 (mended): attempts to connect that hang keep their places for ever.
fn an_attempt_that_hangs_gives_its_permit_back<R: TestRuntime>() {
    let address = "db.example.com".parse().expect("an address");
    let options = at_most(4).with_max_connecting(1);
    let pool = checked(Builder::<R::Pool<_>>::new(address, Hangs)).replace_options(options);
    let pool = pool.build().expect("good options");
    pool.ready();
    for _ in 0..3 {
        let error = pool.check_out().expect_err("it hangs");
        let CheckOutError::EstablishFailed { cause } = error.error() else { panic!("{error}") };
        assert!(cause.is_timeout(), "{cause}");
    }
    assert_eq!((pool.snapshot().total, pool.snapshot().connections_created), (0, 3));
    pool.close();
}

/// At the clear if it interrupts, else when the pool is ready again, and long before `connect_timeout`: 10 s.
// INT-09, SI-07
// Reports PYTHON-4414: a clear that interrupts leaves connections that are being opened.
fn attempts_from_before_a_clear_leave_their_permits<R: TestRuntime>() {
    for interrupts in [true, false] {
        let gate = Gate::closed();
        let (pool, _) = ready::<R>(&gate, at_most(4).with_max_connecting(1));
        thread::scope(|scope| {
            let caller = scope.spawn(|| pool.check_out().expect_err("it is cleared"));
            until(|| pool.snapshot().pending == 1);
            pool.clear(failure(), interrupts);
            assert_eq!(pool.snapshot().pending, u32::from(!interrupts));
            pool.ready();
            let error = caller.join().expect("no panic");
            assert!(matches!(error.error(), CheckOutError::PoolCleared { .. }), "{error}");
        });
        gate.admit(1);
        assert_eq!(pool.check_out().expect("a connection").number, 2);
        assert_eq!(gate.alive(), [2], "the first one was given up");
    }
}

/// A connector that panics when it is asked what is wrong with a connection.
struct PanickingFault;

impl<R: Runtime> Connector<R> for PanickingFault {
    type Connection = ();
    type Error = ConnectionError;

    async fn connect(&self, _: Target<R>, _: HandshakeReporter) -> Result<(), ConnectionError> {
        Ok(())
    }

    fn fault(&self, (): &()) -> Option<ConnectionError> {
        resume_unwind(Box::new("on purpose"))
    }
}

fn a_connection_whose_fault_check_panics_is_broken<R: TestRuntime>() {
    let builder: Builder<R::Pool<_>> =
        Builder::new("db.example.com".parse().expect("an address"), PanickingFault);
    let pool = checked(builder).build().expect("good options");
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    assert_eq!(pool.snapshot().total, 0);
    pool.close();
}

/// For a connector that finds no fault with it.
fn an_operation_that_panics_breaks_the_connection<R: TestRuntime>() {
    let gate = Gate::open();
    let closed = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&closed);
    let pool = builder::<R>(&gate, at_most(1))
        .on_event(move |event| {
            if let Event::ConnectionClosed { reason, error, .. } = &event.event {
                *seen.lock().expect("no panic") = Some((*reason, error.is_some()));
            }
        })
        .build()
        .expect("good options");
    pool.ready();
    let mut connection = pool.check_out().expect("a connection");
    let operation = AssertUnwindSafe(|| {
        connection.run(|_| -> Result<(), _> { resume_unwind(Box::new("on purpose")) })
    });
    assert!(catch_unwind(operation).is_err());
    connection.run(|_| Ok(())).expect("it works, and does not make up for the first one");
    drop(connection);
    assert_eq!(gate.alive(), [0; 0]);
    until(|| closed.lock().expect("no panic").is_some());
    assert_eq!(*closed.lock().expect("no panic"), Some((CloseReason::Error, true)));
}

fn an_operation_that_is_interrupted_fails_also_when_it_succeeds<R: TestRuntime>() {
    let gate = Gate::open();
    let (pool, _, reported) = cleared_by_failures::<R>(&gate, at_most(2));
    for outcome in [Ok(()), Err(failure())] {
        let mut connection = pool.check_out().expect("a connection");
        let idle = pool.check_out().expect("a connection");
        let outcome = connection.run(|_| {
            pool.clear(failure(), true);
            until(|| idle.is_interrupted()); // After this one.
            outcome
        });
        assert!(matches!(outcome, Err(OperationError::Interrupted(_))), "{outcome:?}");
        assert!(outcome.expect_err("it is").is_retryable());
        assert!(connection.run(|_| Ok(())).is_err(), "later operations fail, too");
        assert!(idle.is_stale());
        assert_eq!(take(&reported), []);
        pool.ready();
    }
}
