//! How fast traces are verified, and that the memory for it does not depend on their length.

use std::time::Instant;

use cenote_core::trace::{JournalOptions, Replay};
use cenote_replay::record;
use cenote_replay::traffic::Scene;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    for (connections, steps) in [(10, 1_000_000), (10, 4_000_000), (100, 2_000_000)] {
        let scene = Scene::new(1, connections);
        let trace = record::traffic(scene, steps, JournalOptions::default(), Vec::new());
        let trace = trace.expect("memory can be written to");
        let seconds = (0..5).map(|_| verify(&trace, steps)).fold(f64::INFINITY, f64::min);
        println!(
            "{steps:>9} inputs to {connections:>3} connections, {:>5.1} bytes each: \
             {:>5.2} million a second, {:>8} bytes of memory",
            trace.len() as f64 / steps as f64,
            steps as f64 / seconds / 1e6,
            memory(&trace, steps),
        );
    }
}

fn verify(trace: &[u8], steps: u64) -> f64 {
    let start = Instant::now();
    let mut replay = Replay::new(trace).expect("a trace");
    assert_eq!(replay.verify().expect("a good trace"), steps);
    start.elapsed().as_secs_f64()
}

/// At its most.
fn memory(trace: &[u8], steps: u64) -> usize {
    let _profiler = dhat::Profiler::builder().testing().build();
    verify(trace, steps);
    dhat::HeapStats::get().max_bytes
}
