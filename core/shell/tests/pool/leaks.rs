//! Connections that are checked out for long are reported, with the place of the check-out.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;
use cenote_shell::pool::leak::{DEFAULT_LEAK_DETECTION_THRESHOLD, LeakReport};

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, builder};

on_all_runtimes!(
    every_way_to_check_out_knows_its_caller,
    a_callback_sets_a_threshold_where_there_is_none,
);

fn every_way_to_check_out_knows_its_caller<R: TestRuntime>() {
    let (sender, reports) = channel();
    let limit = Duration::from_millis(50);
    let options = at_most(1).with_leak_detection_threshold(limit);
    let pool = builder::<R>(&Gate::open(), options)
        .on_leak(move |report| sender.send(report.clone()).expect("the test listens"))
        .build()
        .expect("good options");
    pool.ready();
    // From now on check-outs are served at once.
    assert_eq!(pool.warm_up(1).expect("a warm pool"), 1);
    // On a busy machine `warm_up` may have been reported, too.
    let expect_report = |line| {
        let is_it = |report: &LeakReport| {
            report.place.is_some_and(|it| it.file().ends_with("leaks.rs") && it.line() == line)
        };
        let mut told = std::iter::from_fn(|| reports.recv_timeout(Duration::from_secs(20)).ok());
        let report = told.find(is_it).unwrap_or_else(|| panic!("no report of line {line}"));
        assert!(report.connection_id == 1 && report.held >= limit, "{report}");
    };
    let held = pool.check_out().expect("a connection");
    expect_report(line!() - 1);
    drop(held);
    let later = Instant::now() + Duration::from_secs(60);
    let held = pool.check_out_before(later).expect("a connection");
    expect_report(line!() - 1);
    drop(held);
    let held = pool.check_out_for(Purpose::Cursor, None).expect("a connection");
    expect_report(line!() - 1);
    drop(held);
    let held = pool.try_check_out().expect("a connection");
    expect_report(line!() - 1);
    drop(held);
    let line = line!() + 1;
    let told = pool.with_connection(|_| {
        expect_report(line);
        Ok::<_, PoolError>(())
    });
    told.expect("it works");
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
