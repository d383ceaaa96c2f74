//! Connections that are checked out for long are reported, with the place of the check-out.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;
use cenote_shell::pool::leak::DEFAULT_LEAK_DETECTION_THRESHOLD;

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, builder};

on_all_runtimes!(
    a_connection_that_is_out_for_long_is_reported,
    every_way_to_check_out_knows_its_caller,
    a_callback_sets_a_threshold_where_there_is_none,
);

fn a_connection_that_is_out_for_long_is_reported<R: TestRuntime>() {
    let gate = Gate::open();
    let (sender, reports) = channel();
    let options = at_most(1).with_leak_detection_threshold(Duration::from_millis(200));
    let pool = builder::<R>(&gate, options)
        .on_leak(move |report| sender.send(report.clone()).expect("the test listens"))
        .build()
        .expect("good options");
    pool.ready();
    let _held = pool.check_out().expect("a connection");
    let line = line!() - 1;
    let report = reports.recv().expect("a message");
    let place = report.place.expect("it works");
    assert_eq!((report.connection_id, place.line()), (1, line));
    assert!(place.file().ends_with("leaks.rs") && report.held >= Duration::from_millis(200));
}

fn every_way_to_check_out_knows_its_caller<R: TestRuntime>() {
    let (sender, reports) = channel();
    let options = at_most(1).with_leak_detection_threshold(Duration::from_millis(50));
    let pool = builder::<R>(&Gate::open(), options)
        .on_leak(move |report| sender.send(report.place).expect("the test listens"))
        .build()
        .expect("good options");
    pool.ready();
    // From now on check-outs are served at once.
    assert_eq!(pool.warm_up(1).expect("a warm pool"), 1);
    let place = || {
        let place = reports.recv().expect("a message").expect("known");
        assert!(place.file().ends_with("leaks.rs"), "{place}");
        place.line()
    };
    let later = Instant::now() + Duration::from_secs(60);
    let held = pool.check_out_before(later).expect("a connection");
    assert_eq!(place(), line!() - 1);
    drop(held);
    let held = pool.check_out_for(Purpose::Cursor, None).expect("a connection");
    assert_eq!(place(), line!() - 1);
    drop(held);
    let held = pool.try_check_out().expect("a connection");
    assert_eq!(place(), line!() - 1);
    drop(held);
    let told = pool.with_connection(|_| Ok::<_, PoolError>(place()));
    assert_eq!(told.expect("it works"), line!() - 1);
}

fn a_callback_sets_a_threshold_where_there_is_none<R: TestRuntime>() {
    let gate = Gate::open();
    let silent = builder::<R>(&gate, at_most(1)).build().expect("good options");
    assert_eq!(silent.options().leak_detection_threshold, None);
    let pool = builder::<R>(&gate, at_most(1)).on_leak(|_| {}).build().expect("good options");
    let threshold = || pool.options().leak_detection_threshold;
    assert_eq!(threshold(), Some(DEFAULT_LEAK_DETECTION_THRESHOLD));
    for set in [Duration::from_secs(5), Duration::ZERO] {
        pool.set_options(at_most(1).with_leak_detection_threshold(set)).expect("good options");
        assert_eq!(threshold(), Some(set));
    }
    pool.set_options(at_most(1)).expect("good options");
    assert_eq!(threshold(), Some(DEFAULT_LEAK_DETECTION_THRESHOLD));
}
