//! One task that checks out and in again and again.

use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use crate::bare::HandMade;
use crate::measure::{Contestant, Sample, nanoseconds};
use crate::pools;

pub(crate) const PAIRS: u32 = 20_000;

pub(crate) fn contestants() -> Vec<Contestant> {
    let runtime = Arc::new(Builder::new_current_thread().enable_all().build().expect("a runtime"));
    let list = Mutex::new((0..10_u64).collect::<Vec<_>>());
    let bare = move || {
        time(|| {
            for _ in 0..PAIRS {
                let taken = list.lock().expect("no panic").pop();
                list.lock().expect("no panic").extend(black_box(taken));
            }
        })
    };
    let made = HandMade::new(10);
    let silent = runtime.block_on(pools::cenote(pools::plain(10), false));
    let timed = runtime.block_on(pools::cenote(pools::timed(10), false));
    let recorded = runtime.block_on(pools::recorded(pools::timed(10)));
    let counted = runtime.block_on(pools::cenote(pools::timed(10), true));
    let deadpool = runtime.block_on(pools::deadpool(10, None));
    let limited = runtime.block_on(pools::deadpool(10, Some(Duration::from_secs(30))));
    let bb8 = runtime.block_on(pools::bb8(10, None));
    let r2d2 = pools::r2d2(10);
    let cenote = |pool: cenote_tokio::Pool<pools::Numbers>| {
        on(&runtime, async move || drop(black_box(pool.check_out().await)))
    };
    vec![
        ("bare: Mutex<Vec> pop and push", Box::new(bare)),
        ("semaphore and mutex, by hand", on(&runtime, async move || made.with(async || ()).await)),
        ("cenote", cenote(silent)),
        ("cenote, timed", cenote(timed)),
        ("cenote, timed, a subscriber", cenote(counted)),
        ("cenote, timed, a flight recorder", cenote(recorded)),
        ("deadpool", on(&runtime, async move || drop(black_box(deadpool.get().await)))),
        (
            "deadpool with a timeout",
            on(&runtime, async move || drop(black_box(limited.get().await))),
        ),
        ("bb8", on(&runtime, async move || drop(black_box(bb8.get().await)))),
        ("r2d2", Box::new(move || time(|| (0..PAIRS).for_each(|_| drop(black_box(r2d2.get())))))),
    ]
}

/// The time for one pair of many.
fn on(runtime: &Arc<Runtime>, pair: impl AsyncFn() + 'static) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let began = Instant::now();
            for _ in 0..PAIRS {
                pair().await;
            }
            vec![nanoseconds(began.elapsed() / PAIRS)]
        })
    })
}

fn time(work: impl FnOnce()) -> Sample {
    let began = Instant::now();
    work();
    vec![nanoseconds(began.elapsed() / PAIRS)]
}
