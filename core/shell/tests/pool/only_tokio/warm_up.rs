//! `warm_up` that is cancelled, and many at once.

use std::time::Duration;

use tokio::time::timeout;

use super::world::{Gate, at_most, ready, settle};

#[tokio::test(start_paused = true)]
async fn cancelled_it_leaves_its_connections_to_the_pool() {
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

/// Whatever the pool's limits are.
#[tokio::test(start_paused = true)]
async fn concurrent_calls_do_not_wait_for_each_other() {
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
