//! Leak reports to the exact time, with the place of the check-out.

use std::panic::{Location, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_core::pool::PoolOptions;
use cenote_tokio::{LeakReport, Pool};
use tokio::time::sleep;

use super::world::{Gate, at_most, builder, settle};

type Reports = Arc<Mutex<Vec<LeakReport>>>;

const LIMIT: Duration = Duration::from_millis(100);

fn with_reports(options: PoolOptions) -> (Pool<Gate>, Reports) {
    let reports = Reports::default();
    let heard = Arc::clone(&reports);
    let pool = builder(&Gate::open(), options)
        .on_leak(move |report| heard.lock().expect("no panic").push(report.clone()))
        .build()
        .expect("good options");
    pool.ready();
    (pool, reports)
}

fn take(reports: &Reports) -> Vec<LeakReport> {
    std::mem::take(&mut reports.lock().expect("no panic"))
}

/// Lets time pass, and tasks run.
async fn pass(time: Duration) {
    sleep(time).await;
    settle().await;
}

/// The lines of this file in the reports.
fn lines(reports: &Reports) -> Vec<u32> {
    let line = |report: LeakReport| {
        let place = report.place.expect("known");
        assert_eq!(place.file(), file!());
        place.line()
    };
    take(reports).into_iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn a_report_says_what_where_and_for_how_long() {
    let (pool, reports) = with_reports(at_most(2).with_leak_detection_threshold(LIMIT));
    drop(pool.check_out().await.unwrap());
    let line = line!() + 1;
    let held = pool.check_out().await.unwrap();
    pass(LIMIT / 2).await;
    drop(pool.check_out().await.unwrap()); // Another one, and not for long.
    pass(LIMIT).await;
    let found = take(&reports);
    let [report] = found.as_slice() else { panic!("once: {found:?}") };
    assert_eq!((report.connection_id, report.held), (1, LIMIT));
    assert_eq!(report.address.to_string(), "db.example.com:27017");
    let place = report.place.expect("known");
    assert_eq!((place.file(), place.line()), (file!(), line));
    let text = report.to_string();
    let expected = "connection 1 of db.example.com:27017 has been checked out for 100ms, at ";
    assert!(text.starts_with(expected) && text.contains(&format!("leaks.rs:{line}")), "{text}");
    drop(held);

    // The same connection, checked out again.
    let held = pool.check_out().await.unwrap();
    pass(LIMIT * 2).await;
    assert_eq!(lines(&reports), [line!() - 2]);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_not_polled_any_more_has_no_place() {
    let (pool, reports) = with_reports(at_most(1).with_leak_detection_threshold(LIMIT));
    let held = pool.check_out().await.unwrap();
    let mut waiting = Box::pin(pool.check_out());
    assert!(poll(waiting.as_mut()).is_pending());
    drop(held); // It is delivered to the other check-out, which is not polled.
    pass(LIMIT).await;
    let found = take(&reports);
    assert_eq!(found.len(), 1);
    assert!(found[0].place.is_none());
    assert!(found[0].to_string().ends_with("at an unknown place"), "{}", found[0]);
}

fn poll<F: Future + Unpin>(future: F) -> std::task::Poll<F::Output> {
    let mut future = std::pin::pin!(future);
    future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn connections_are_tracked_while_the_option_is_set() {
    let off = at_most(2).with_leak_detection_threshold(Duration::ZERO);
    let (pool, reports) = with_reports(off.clone());
    let early = pool.check_out().await.unwrap();
    pass(LIMIT).await;
    assert!(take(&reports).is_empty());

    pool.set_options(at_most(2).with_leak_detection_threshold(LIMIT * 2)).unwrap();
    let late = pool.check_out().await.unwrap();
    let line = line!() - 1;
    pass(LIMIT * 2).await;
    let found = take(&reports);
    let places: Vec<_> = found.iter().map(|report| report.place.map(Location::line)).collect();
    assert_eq!(places, [None, Some(line)]);

    pool.set_options(off).unwrap();
    drop((early, late));
    let _held = pool.check_out().await.unwrap();
    pass(LIMIT * 4).await;
    assert!(take(&reports).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_does_not_affect_callers() {
    let pool = builder(&Gate::open(), at_most(1).with_leak_detection_threshold(LIMIT))
        .on_leak(|_| resume_unwind(Box::new("on purpose")))
        .build()
        .unwrap();
    pool.ready();
    let held = pool.check_out().await.unwrap();
    pass(LIMIT * 2).await;
    drop(held);
    assert!(pool.check_out().await.is_ok());
}
