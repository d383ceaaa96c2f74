//! Many tasks on several threads, some of which cancel their check-outs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::world::{Gate, at_most, failure, ready};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pool_size_holds_and_nothing_is_lost() {
    const MAX: u32 = 8;
    let gate = Gate::open();
    let (pool, _) = ready(&gate, at_most(MAX));
    let out = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..64_u64)
        .map(|task| {
            let (pool, out) = (pool.clone(), Arc::clone(&out));
            tokio::spawn(async move {
                for round in 0..200_u64 {
                    let use_it = async {
                        let Ok(mut connection) = pool.check_out().await else { return };
                        assert!(out.fetch_add(1, Ordering::SeqCst) < MAX);
                        tokio::task::yield_now().await;
                        connection.broken = (task + round) % 31 == 0;
                        out.fetch_sub(1, Ordering::SeqCst);
                    };
                    if (task + round) % 5 == 0 {
                        // Cancelled wherever it is by then.
                        let check_out = pool.check_out();
                        drop(tokio::time::timeout(Duration::ZERO, check_out).await);
                    }
                    use_it.await;
                    if task == 0 && round % 50 == 0 {
                        pool.clear(failure(), false);
                        pool.ready();
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(out.load(Ordering::SeqCst), 0);
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
    pool.close().await;
    assert_eq!(gate.alive(), [0; 0]);
    assert_eq!(pool.snapshot().total, 0);
}
