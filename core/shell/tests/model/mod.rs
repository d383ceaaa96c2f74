//! The lock, the outbox, and the way of an answer, with every way in which threads can interleave:
//! `.ci/model`.
//! The shell's own code runs, on a runtime whose lock is loom's.

#![cfg(cenote_model)]

mod check_out;
mod outbox;
mod runtime;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::model::Builder;

/// Runs all interleavings in which at most so many threads are stopped that could have gone on: bugs need
/// few of them. `None` is without a limit. Prints how many there were.
fn check(preemptions: impl Into<Option<usize>>, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions.into();
    builder.max_branches = 10_000;
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        run();
    });
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{name}: {} interleavings", count.load(Ordering::Relaxed));
}
