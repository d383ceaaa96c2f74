//! Deadlines to the exact time, and check-outs that yield to other tasks.

use std::time::Duration;

use tokio::time::{Instant, advance, timeout};

use super::world::{Gate, at_most, ready, settle};

// DU-06
#[tokio::test(start_paused = true)]
async fn waiting_ends_exactly_at_the_timeout() {
    let gate = Gate::open();
    let options = at_most(1).with_wait_queue_timeout(Duration::from_millis(100));
    let (pool, _) = ready(&gate, options);
    let held = pool.check_out().await.unwrap();
    let began = Instant::now();
    let error = pool.check_out().await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_millis(100));
    assert!(error.is_timeout());
    let text = error.to_string();
    assert!(text.contains("total 1/1") && text.contains("in use 1"), "{text}");

    // The caller's own deadline replaces it, whether earlier or later (CS-07).
    for wait in [10, 500] {
        let began = Instant::now();
        let deadline = began + Duration::from_millis(wait);
        assert!(pool.check_out_before(deadline).await.unwrap_err().is_timeout());
        assert_eq!(began.elapsed(), Duration::from_millis(wait));
    }
    drop(held);
    assert!(pool.check_out().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_callers_time_out_each_at_its_deadline() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let _held = pool.check_out().await.unwrap();
    let began = Instant::now();
    let tasks: Vec<_> = (0..1000_u64)
        .map(|number| {
            let pool = pool.clone();
            // Later check-outs have earlier deadlines, so that the timer is set again for each.
            let deadline = began + Duration::from_millis(1001 - number);
            tokio::spawn(async move {
                assert!(pool.check_out_before(deadline).await.unwrap_err().is_timeout());
                assert_eq!(Instant::now(), deadline);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(pool.snapshot().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_and_the_minimum_is_kept() {
    let gate = Gate::open();
    let options = at_most(4).with_min_pool_size(2).with_max_idle_time(Duration::from_secs(1));
    let (pool, _) = ready(&gate, options);
    settle().await;
    assert_eq!(gate.alive(), [1, 2]);
    advance(Duration::from_secs(2)).await;
    settle().await;
    assert_eq!(gate.alive(), [3, 4], "both were idle for too long, and were replaced");
    assert_eq!(pool.snapshot().available, 2);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_around_a_check_out_cancels_it() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let held = pool.check_out().await.unwrap();
    assert!(timeout(Duration::from_millis(5), pool.check_out()).await.is_err());
    assert_eq!(pool.snapshot().waiting, 0);
    drop(held);
    assert_eq!(pool.snapshot().available, 1);
}

/// Check-outs that are served at once use up the budget of the task.
#[tokio::test(start_paused = true)]
async fn check_outs_served_at_once_let_other_tasks_run() {
    let (pool, _) = ready(&Gate::open(), at_most(1));
    drop(pool.check_out().await.unwrap());
    let other = tokio::spawn(async {});
    let mut pairs = 0;
    while !other.is_finished() {
        drop(pool.check_out().await.unwrap());
        pairs += 1;
        assert!(pairs < 10_000, "no other task runs");
    }
}

// CS-03.
#[tokio::test(start_paused = true)]
async fn a_deadline_holds_for_a_connector_that_ignores_it() {
    let (pool, log) = ready(&Gate::closed(), at_most(1));
    let begin = Instant::now();
    let error = pool.check_out_before(begin + Duration::from_secs(3)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(begin.elapsed().as_secs(), 3);
    assert_eq!(pool.snapshot().pending, 0);
    assert_eq!(log.take()[4..], ["ConnectionClosed", "ConnectionCheckOutFailed"]);
}
