//! What happens at once: the close of the last handle, and an interrupt.

use cenote_core::pool::Status;
use cenote_tokio::OperationError;

use super::world::{Gate, at_most, failure, ready, settle};

#[tokio::test(start_paused = true)]
async fn the_last_handle_closes_the_pool_at_once() {
    let gate = Gate::open();
    let (pool, log) = ready(&gate, at_most(2));
    let held = pool.check_out().await.unwrap();
    drop(pool.check_out().await.unwrap());
    let clone = pool.clone();
    drop(pool);
    assert_eq!(clone.snapshot().status, Status::Ready);
    drop(clone);
    assert!(log.take().contains(&"ConnectionPoolClosed"));
    assert_eq!(gate.alive(), [1], "it is checked out");
    drop(held);
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_an_operation_at_once() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(2));
    let mut busy = pool.check_out().await.unwrap();
    let idle = pool.check_out().await.unwrap();
    let running = tokio::spawn(async move {
        let outcome = busy.run(async |_| std::future::pending().await).await;
        let outcome: Result<(), _> = outcome;
        (busy, outcome)
    });
    settle().await;
    pool.clear(failure(), true);
    let (mut busy, outcome) = running.await.unwrap();
    assert!(matches!(outcome, Err(OperationError::Interrupted(_))), "{outcome:?}");
    assert!(outcome.unwrap_err().is_retryable());
    // Later operations fail, too.
    assert!(busy.run(async |_| Ok(())).await.is_err());
    assert!(idle.is_stale());
    let _ = idle.interrupted().await;
    drop((busy, idle));
    assert_eq!(gate.alive(), [0; 0]);
}
