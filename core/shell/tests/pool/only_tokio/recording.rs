//! The times in a trace, for which time has to be virtual. Everything else about traces is tested in
//! `core/shell/tests/recording`, and the traces of clients in `spec-tests/tests/client/recording.rs`.

use std::fs;
use std::time::Duration;

use cenote_core::pool::{Input, Instant};
use cenote_tokio::Builder;
use tempfile::tempdir;

use super::world::{Gate, at_most, failure, unobserved};
use crate::recording::shared_buffer::steps;

#[tokio::test(start_paused = true)]
async fn times_are_recorded_although_nothing_depends_on_them() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("all.bson");
    // Without subscribers.
    let builder: Builder<Gate> = unobserved(&Gate::open(), at_most(1));
    let builder = builder.flight_recorder(4096).record(path.as_path());
    let pool = builder.build().expect("a pool");
    pool.ready();
    let held = pool.check_out().await.expect("a connection");
    tokio::time::advance(Duration::from_secs(7)).await;
    drop(held);
    pool.end_recording().await.expect("a whole trace");
    let last = steps(&fs::read(path).expect("a file")).pop().expect("a step");
    assert_eq!((last.input.name(), last.at.as_nanos()), ("CheckedIn", 7_000_000_000));

    // With a flight recorder alone, the clock is not read for check-outs that are served at once.
    drop(pool.check_out().await.expect("a connection"));
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(pool.check_out().await.expect("a connection"));
    pool.clear(failure(), false);
    let all = steps(&pool.write_trace(Vec::new()).expect("memory"));
    let [.., pair, last] = all.as_slice() else { panic!("{} steps", all.len()) };
    assert_eq!((pair.input.name(), pair.at.as_nanos()), ("CheckedIn", 7_000_000_000));
    assert_eq!((last.input.name(), last.at.as_nanos()), ("Clear", 9_000_000_000));
}

/// With a flight recorder alone.
#[tokio::test(start_paused = true)]
async fn times_are_recorded_where_waiting_is_limited() {
    let options = at_most(1).with_wait_queue_timeout(Duration::from_secs(60));
    let builder: Builder<Gate> = unobserved(&Gate::open(), options);
    let pool = builder.flight_recorder(4096).build().expect("a pool");
    pool.ready();
    drop(pool.check_out().await.expect("a connection"));
    tokio::time::advance(Duration::from_secs(2)).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
    let held = pool.check_out_before(deadline).await.expect("it is idle");
    tokio::time::advance(Duration::from_secs(7)).await;
    drop(held);
    let all = steps(&pool.write_trace(Vec::new()).expect("memory"));
    let [.., asked, last] = all.as_slice() else { panic!("{} steps", all.len()) };
    assert_eq!((last.input.name(), last.at.as_nanos()), ("CheckedIn", 9_000_000_000));
    let Input::CheckOutRequested { deadline, .. } = &asked.input else { panic!("{asked:?}") };
    assert_eq!(deadline.map(Instant::as_nanos), Some(7_000_000_000));
    assert_eq!(asked.at.as_nanos(), 2_000_000_000);
}
