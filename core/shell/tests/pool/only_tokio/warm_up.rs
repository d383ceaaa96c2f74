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
