//! Connections ahead of the first request.

use std::time::Duration;

use cenote_core::pool::PoolOptions;
use tokio::time::timeout;

use crate::world::{Gate, at_most, failure, ready, settle};

#[tokio::test(start_paused = true)]
async fn so_many_are_idle_afterwards() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, PoolOptions::default());
    assert_eq!(pool.warm_up(0).await.unwrap(), 0);
    assert_eq!(pool.warm_up(5).await.unwrap(), 5);
    assert_eq!((pool.snapshot().available, pool.snapshot().total), (5, 5));
    // Those that are there count.
    assert_eq!(pool.warm_up(7).await.unwrap(), 7);
    assert_eq!(pool.warm_up(2).await.unwrap(), 2);
    assert_eq!(gate.alive(), [1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test(start_paused = true)]
async fn as_many_at_a_time_as_may_connect() {
    let gate = Gate::closed();
    let (pool, _) = ready(&gate, PoolOptions::default().with_max_connecting(3));
    let warming = tokio::spawn({
        let pool = pool.clone();
        async move { pool.warm_up(8).await }
    });
    settle().await;
    assert_eq!((pool.snapshot().pending, pool.snapshot().waiting), (3, 0));
    // Whoever asks meanwhile does not come last.
    let other = tokio::spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.unwrap().number }
    });
    settle().await;
    gate.admit(4);
    assert_eq!(other.await.unwrap(), 4);
    gate.admit(4);
    assert_eq!(warming.await.unwrap().unwrap(), 8);
    assert_eq!(pool.snapshot().available, 8);
}

#[tokio::test(start_paused = true)]
async fn never_more_than_the_pool_may_have() {
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(4));
    let held = pool.check_out().await.unwrap();
    assert_eq!(pool.warm_up(10).await.unwrap(), 3);
    assert_eq!((pool.snapshot().available, pool.snapshot().in_use), (3, 1));
    drop(held);
    assert_eq!(pool.warm_up(10).await.unwrap(), 4);
    let unlimited = ready(&gate, at_most(0)).0;
    assert_eq!(unlimited.warm_up(150).await.unwrap(), 150);
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_ends_it_and_what_was_made_stays() {
    let gate = Gate::open();
    gate.refuse(3);
    let (pool, _) = ready(&gate, PoolOptions::default().with_max_connecting(1));
    let error = pool.warm_up(5).await.unwrap_err();
    assert_eq!(error.name(), "ConnectionError", "{error}");
    assert_eq!((pool.snapshot().available, pool.snapshot().total), (2, 2));

    pool.clear(failure(), false);
    assert_eq!(pool.warm_up(5).await.unwrap_err().name(), "PoolClearedError");
}

#[tokio::test(start_paused = true)]
async fn given_up_it_leaves_everything_to_the_pool() {
    for admitted in 0..5 {
        let gate = Gate::closed();
        let (pool, _) = ready(&gate, at_most(5));
        gate.admit(admitted);
        assert!(timeout(Duration::from_secs(1), pool.warm_up(5)).await.is_err());
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{admitted}: {snapshot}");
        assert_eq!(snapshot.available as usize, admitted, "{snapshot}");
        gate.admit(10);
        settle().await;
        assert_eq!(pool.warm_up(5).await.unwrap(), 5);
    }
}

/// Neither holds what the other waits for, however the pool's limits lie.
#[tokio::test(start_paused = true)]
async fn several_at_once_come_to_an_end() {
    for max in 1..12 {
        for connecting in 1..6 {
            let gate = Gate::closed();
            let (pool, _) = ready(&gate, at_most(max).with_max_connecting(connecting));
            let warming: Vec<_> = (0..4)
                .map(|_| {
                    let pool = pool.clone();
                    tokio::spawn(async move { pool.warm_up(8).await.unwrap() })
                })
                .collect();
            for _ in 0..max {
                gate.admit(1);
                settle().await;
            }
            gate.admit(32);
            for task in warming {
                let had = timeout(Duration::from_secs(1), task).await;
                had.unwrap_or_else(|_| panic!("max {max}, connecting {connecting}")).unwrap();
            }
            let snapshot = pool.snapshot();
            assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
            assert!(snapshot.available >= max.min(8), "{snapshot}");
        }
    }
}
