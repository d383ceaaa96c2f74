//! Counts heap allocations: once a pool has been as busy as it gets, there are none.
//!
//! Without the usual harness, whose threads allocate as well: the counts are the whole process's.

use std::time::Duration;

use cenote::workload::{Busy, Recorded, Warm, WarmOnMio, WarmOnTokio};
use cenote_core::pool::PoolOptions;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

// LG-52
fn main() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let hour = Duration::from_secs(3600);
    let everything = PoolOptions::default()
        .with_max_idle_time(hour)
        .with_max_lifetime(hour)
        .with_leak_detection_threshold(hour)
        .with_wait_queue_timeout(hour);

    for options in [PoolOptions::default(), everything.clone()] {
        let mut warm = Warm::new(options);
        let mut buffer = Vec::with_capacity(16);
        assert_eq!(
            allocations(|| {
                for _ in 0..500_000 {
                    warm.timed_pair();
                    warm.buffered_pair(&mut buffer);
                }
            }),
            0,
            "a million pairs"
        );
    }

    let mut recorded = Recorded::new(everything.clone(), Some(64 << 10));
    let pairs = || (0..500_000).for_each(|_| recorded.timed_pair());
    assert_eq!(allocations(pairs), 0, "half a million pairs with a flight recorder");
    for options in [PoolOptions::default(), everything.clone()] {
        for counts_events in [false, true] {
            let warm = WarmOnMio::new(options.clone(), counts_events);
            // On a busy machine the loop's thread may have to catch up meanwhile. What pairs need, they
            // need each time.
            let fewest = (0..5).map(|_| allocations(|| warm.pairs(100_000))).min();
            assert_eq!(fewest, Some(0), "pairs through cenote-mio");
        }
        // Enough pairs for both halves of the memory, many times.
        let warm = WarmOnTokio::with_flight_recorder(options.clone(), 64 << 10);
        warm.pairs(10_000);
        assert_eq!(of_pairs(&warm), 0, "recorded pairs through cenote-tokio");
    }
    for options in [PoolOptions::default(), everything.clone()] {
        for counts_events in [false, true] {
            let warm = WarmOnTokio::new(options.clone(), counts_events);
            assert_eq!(of_pairs(&warm), 0, "pairs through cenote-tokio");
        }
    }

    for options in [PoolOptions::default(), everything] {
        let mut busy = Busy::new(options);
        let mut crowd = || {
            busy.enqueue(10_000);
            busy.serve(10_000);
        };
        assert_ne!(allocations(&mut crowd), 0, "the first time the queue grows");
        assert_eq!(allocations(&mut crowd), 0, "10,000 waiters, enqueued and served");
    }
    println!("a warm pool does not allocate: ok");
}

/// Of a hundred thousand pairs. Tokio makes a list of tasks that have used up their budget each time
/// that a runtime is entered, which is not the pairs': there is one however many there are.
fn of_pairs(warm: &WarmOnTokio) -> u64 {
    warm.pairs(1_000);
    let few = allocations(|| warm.pairs(1_000));
    allocations(|| warm.pairs(101_000)) - few
}

fn allocations(work: impl FnOnce()) -> u64 {
    let before = dhat::HeapStats::get().total_blocks;
    work();
    dhat::HeapStats::get().total_blocks - before
}
