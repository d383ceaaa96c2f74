//! Many threads, some of whose check-outs time out or are cancelled.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, failure, ready};

on_all_runtimes!(the_pool_size_holds_and_nothing_is_lost,);

// WQ-02, PS-03, PS-11, EV-26
// Reports PgDog#1361, HikariCP#2366: with more callers than connections none is served any more.
fn the_pool_size_holds_and_nothing_is_lost<R: TestRuntime>() {
    const MAX: u32 = 8;
    let gate = Gate::open();
    let (pool, _) = ready::<R>(&gate, at_most(MAX));
    let out = AtomicU32::new(0);
    thread::scope(|scope| {
        for thread in 0..64_u64 {
            let (pool, out) = (&pool, &out);
            scope.spawn(move || {
                for round in 0..200_u64 {
                    if (thread + round) % 5 == 0 {
                        // In time, or not, or already too late.
                        let timeout = Duration::from_micros((thread * 7 + round * 13) % 300);
                        drop(match round % 2 == 0 && R::CAN_GIVE_UP {
                            true => R::check_out_or_give_up(pool, timeout),
                            false => Some(pool.check_out_before(Instant::now() + timeout)),
                        });
                    }
                    let Ok(mut connection) = pool.check_out() else { continue };
                    assert!(out.fetch_add(1, Ordering::SeqCst) < MAX);
                    thread::yield_now();
                    connection.broken = (thread + round) % 31 == 0;
                    out.fetch_sub(1, Ordering::SeqCst);
                    drop(connection);
                    if thread == 0 && round % 50 == 0 {
                        pool.clear(failure(), false);
                        pool.ready();
                    }
                }
            });
        }
    });
    assert_eq!(out.load(Ordering::SeqCst), 0);
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0), "{snapshot}");
    pool.close();
    assert_eq!(gate.alive(), [0; 0]);
    assert_eq!(pool.snapshot().total, 0);
}
