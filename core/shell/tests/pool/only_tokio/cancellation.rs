//! Every future is dropped after each of its polls, while its answer comes early or late: no connection leaks.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use cenote_core::pool::{PoolOptions, Snapshot};
use tokio::time::{Duration, Instant};

use super::world::{Gate, at_most, failure, ready, settle};

/// Polls that many times, and lets other tasks run in between. `true` if it was ready.
async fn poll_times(future: impl Future, times: usize) -> bool {
    let mut future = pin!(future);
    for _ in 0..times {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        settle().await;
    }
    false
}

/// Counts that are zero again after a cancellation.
fn counts(snapshot: &Snapshot) -> (u32, u32, u64) {
    (snapshot.in_use, snapshot.pending, snapshot.waiting)
}

/// When the answer comes.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Early,
    BetweenPolls,
    Late,
    Never,
}

#[tokio::test(start_paused = true)]
async fn a_check_out_that_makes_a_connection() {
    for answer in [Answer::Early, Answer::BetweenPolls, Answer::Late, Answer::Never] {
        for polls in 0..4 {
            let gate = Gate::closed();
            let (pool, _) = ready(&gate, at_most(1));
            if matches!(answer, Answer::Early) {
                gate.admit(1);
            }
            {
                let check_out = pool.check_out();
                let mut check_out = pin!(check_out);
                let first = poll_times(check_out.as_mut(), polls.min(1)).await;
                if matches!(answer, Answer::BetweenPolls) {
                    gate.admit(1);
                    settle().await;
                }
                if !first {
                    let _ = poll_times(check_out, polls.saturating_sub(1)).await;
                }
            }
            if matches!(answer, Answer::Late) {
                gate.admit(1);
            }
            settle().await;
            let snapshot = pool.snapshot();
            let context = format!("{answer:?}, {polls} polls: {snapshot}");
            assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{context}");
            assert_eq!(gate.alive().len() as u32, snapshot.available, "{context}");
            // The pool still serves.
            gate.admit(10);
            drop(pool.check_out().await.expect(&context));
            pool.close().await;
            settle().await;
            assert_eq!(gate.alive(), [0; 0], "{context}");
        }
    }
}

// Reports clickhouse-go#1759: a caller that is cancelled while it waits costs the pool a place.
#[tokio::test(start_paused = true)]
async fn a_check_out_that_waits_for_a_check_in() {
    for returned_after in 0..4 {
        for polls in 0..4 {
            let gate = Gate::open();
            let (pool, _) = ready(&gate, at_most(1));
            let mut held = Some(pool.check_out().await.unwrap());
            {
                let mut check_out = pin!(pool.check_out());
                for poll in 0..polls {
                    if poll == returned_after {
                        held = None;
                    }
                    if poll_times(check_out.as_mut(), 1).await {
                        break;
                    }
                }
            }
            drop(held);
            settle().await;
            let context = format!("returned after {returned_after}, {polls} polls");
            assert_eq!(counts(&pool.snapshot()), (0, 0, 0), "{context}");
            assert_eq!(pool.snapshot().available, 1, "{context}");
            assert_eq!(pool.check_out().await.unwrap().number, 1, "{context}");
        }
    }
}

/// A delivered connection goes to the next in the queue.
// Reports psycopg#1345: a cancellation is lost that meets the delivery of a connection.
#[tokio::test(start_paused = true)]
async fn a_delivered_connection_goes_to_the_next_caller() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    let held = pool.check_out().await.unwrap();
    let mut first = Box::pin(pool.check_out());
    assert!(!poll_times(first.as_mut(), 1).await);
    let second = tokio::spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.unwrap().number }
    });
    settle().await;
    drop(held); // It is delivered to the first one, which is not polled.
    assert_eq!(pool.snapshot().waiting, 1);
    drop(first);
    assert_eq!(second.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation() {
    for polls in 0..4 {
        for is_interrupted in [false, true] {
            let gate = Gate::open();
            let (pool, _) = ready(&gate, at_most(1));
            let mut connection = pool.check_out().await.unwrap();
            {
                let operation = connection.run(async |connection| {
                    connection.broken = true; // Half of the operation is done.
                    tokio::task::yield_now().await;
                    tokio::task::yield_now().await;
                    connection.broken = false; // All of it.
                    Ok(())
                });
                let mut operation = pin!(operation);
                let _ = poll_times(operation.as_mut(), polls.min(1)).await;
                if is_interrupted {
                    pool.clear(failure(), true);
                }
                let _ = polls > 1 && poll_times(operation, polls - 1).await;
            }
            let is_half_done = connection.broken;
            drop(connection);
            settle().await;
            let expected = usize::from(!is_half_done && !is_interrupted);
            let context = format!("{polls} polls, interrupted: {is_interrupted}");
            assert_eq!(gate.alive().len(), expected, "{context}");
            assert_eq!(counts(&pool.snapshot()), (0, 0, 0), "{context}");
        }
    }
}

/// The connector finds no fault with it.
#[tokio::test(start_paused = true)]
async fn an_operation_that_is_dropped_breaks_the_connection() {
    for polls in 0..2 {
        let gate = Gate::open();
        let (pool, _) = ready(&gate, at_most(1));
        let mut connection = pool.check_out().await.unwrap();
        {
            let operation = connection.run(async |_| std::future::pending().await);
            let operation: &mut (dyn Future<Output = Result<(), _>> + Unpin) = &mut pin!(operation);
            assert!(!poll_times(operation, polls).await);
        }
        connection.run(async |_| Ok(())).await.expect("it does not make up for the first one");
        drop(connection);
        assert_eq!(gate.alive().len(), 1 - polls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_aborted_or_panics() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    for panics in [false, true] {
        let holder = tokio::spawn({
            let pool = pool.clone();
            async move {
                let _held = pool.check_out().await.unwrap();
                assert!(!panics, "as it should");
                std::future::pending::<()>().await;
            }
        });
        settle().await;
        if !panics {
            assert_eq!(pool.snapshot().in_use, 1);
            holder.abort();
        }
        assert!(holder.await.is_err());
        assert_eq!(pool.check_out().await.unwrap().number, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_guard_stays_in_use() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(1));
    std::mem::forget(pool.check_out().await.unwrap());
    let closed = pool.close_before(Instant::now() + Duration::from_secs(1)).await;
    assert_eq!(closed.unwrap_err().in_use, 1);
    assert_eq!(gate.alive(), [1]);
}

#[tokio::test(start_paused = true)]
async fn closing() {
    for polls in 0..3 {
        let gate = Gate::open();
        let (pool, _) = ready(&gate, PoolOptions::default());
        let held = pool.check_out().await.unwrap();
        assert!(!poll_times(pool.close(), polls).await, "a connection is in use");
        drop(held);
        settle().await;
        assert_eq!(gate.alive().len(), usize::from(polls == 0), "not closed before it is polled");
        pool.close().await;
        assert_eq!(gate.alive(), [0; 0]);
    }
}

/// Tasks with timeouts around check-outs, for many mixtures of times.
#[tokio::test(start_paused = true)]
async fn many_tasks_at_any_time() {
    for seed in 0..200_u64 {
        let gate = Gate::open();
        let (pool, _) = ready(&gate, at_most(2));
        let began = Instant::now();
        let tasks: Vec<_> = (0..12_u64)
            .map(|number| {
                let pool = pool.clone();
                let limit = Duration::from_millis((seed * 7 + number * 13) % 17);
                let use_time = Duration::from_millis((seed + number * 5) % 7);
                tokio::spawn(async move {
                    let hold = async {
                        let connection = pool.check_out().await.unwrap();
                        tokio::time::sleep(use_time).await;
                        drop(connection);
                    };
                    let _ = tokio::time::timeout(limit, hold).await;
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        settle().await;
        assert!(began.elapsed() < Duration::from_millis(20));
        assert_eq!(counts(&pool.snapshot()), (0, 0, 0), "seed {seed}: {}", pool.snapshot());
        assert_eq!(gate.alive().len() as u32, pool.snapshot().available);
    }
}
