//! The memory for verifying a trace depends on the pool, not on the length of the trace.

use std::fs::File;

use cenote_core::trace::{JournalOptions, Replay};
use cenote_replay::record;
use cenote_replay::traffic::Scene;

pub(crate) fn depends_on_the_pool_not_on_the_length() {
    let short = at_most(20_000);
    let long = at_most(200_000);
    // A trace that is ten times as long may have a few more waiters at one time.
    assert!(long <= short + short / 4, "{long} bytes where the short one takes {short}");
    assert!(long < 512 << 10, "{long} bytes");
    println!("20,000 inputs take {short} bytes at most, 200,000 take {long}: ok");
}

/// The peak memory while a trace of this many inputs is read from a file and verified.
fn at_most(steps: u64) -> usize {
    let mut file = tempfile::tempfile().expect("a file");
    let scene = Scene { failure_every: 1_000, ..Scene::new(7, 10) };
    record::traffic(scene, steps, JournalOptions::default(), &mut file).expect("written");
    rewind(&mut file);
    let _profiler = dhat::Profiler::builder().testing().build();
    let mut replay = Replay::new(file).expect("a trace");
    assert_eq!(replay.verify().expect("a good trace"), steps);
    dhat::HeapStats::get().max_bytes
}

fn rewind(file: &mut File) {
    std::io::Seek::rewind(file).expect("a file");
}
