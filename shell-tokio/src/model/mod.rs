//! The lock, the outbox and the way of an answer, with every way in which threads can interleave:
//! `.ci/model`. What runs here is the shell's own code, with loom's mutex for the one of `std`.

mod notify;
mod outbox;
mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::model::Builder;

pub(crate) use self::notify::Notify;

/// Goes through all interleavings with at most so many places where a thread is stopped that could
/// have gone on: bugs need few of them. `None` is without a limit. Says how many there were.
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
