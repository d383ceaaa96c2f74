//! Bytes of heap for each request that waits, as the queue grows.

use std::time::Duration;

use cenote::workload::Busy;
use cenote_core::pool::PoolOptions;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    println!("{:>10}  {:>10}  of which {PAYLOAD} are payload", "waiting", "bytes each");
    for waiting in [1_000, 10_000, 100_000, 1_000_000] {
        let _profiler = dhat::Profiler::builder().testing().build();
        let mut busy = Busy::new(PoolOptions::default().with_wait_queue_timeout(HOUR));
        let before = dhat::HeapStats::get().curr_bytes;
        busy.enqueue(waiting);
        let after = dhat::HeapStats::get().curr_bytes;
        println!("{waiting:>10}  {:>10.1}", (after - before) as f64 / waiting as f64);
    }
}

/// A waiter of this workload is one number.
const PAYLOAD: usize = size_of::<u64>();

const HOUR: Duration = Duration::from_secs(3600);
