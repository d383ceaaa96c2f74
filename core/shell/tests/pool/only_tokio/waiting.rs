//! Deadlines to the exact time, and check-outs that yield to other tasks.

use std::time::Duration;

use tokio::time::Instant;

use super::world::{Gate, at_most, ready};

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
