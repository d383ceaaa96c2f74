//! 64 tasks on one thread or two share 8 connections; each yields while it has one.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, yield_now};

use crate::bare::HandMade;
use crate::measure::{Contestant, Sample, nanoseconds};
use crate::pools;

const TASKS: u32 = 64;
const PAIRS: u32 = 300;

pub(crate) const UNITS: u32 = TASKS * PAIRS;

pub(crate) fn on_one_thread() -> Vec<Contestant> {
    contestants(Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

pub(crate) fn on_two_threads() -> Vec<Contestant> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    contestants(runtime.expect("a runtime"))
}

fn contestants(runtime: Runtime) -> Vec<Contestant> {
    let runtime = Arc::new(runtime);
    let made = HandMade::new(8);
    let silent = runtime.block_on(pools::cenote(pools::plain(8), false));
    let counted = runtime.block_on(pools::cenote(pools::timed(8), true));
    let deadpool = runtime.block_on(pools::deadpool(8, None));
    let bb8 = runtime.block_on(pools::bb8(8, None));
    let cenote = |pool: cenote_tokio::Pool<pools::Numbers>| {
        on(&runtime, move || {
            let pool = pool.clone();
            async move {
                let connection = pool.check_out().await;
                yield_now().await;
                drop(connection);
            }
        })
    };
    let bare = on(&runtime, || async {
        yield_now().await;
        yield_now().await;
    });
    let made = on(&runtime, move || {
        let made = made.clone();
        async move { made.with(yield_now).await }
    });
    let deadpool = on(&runtime, move || {
        let pool = deadpool.clone();
        async move {
            let connection = pool.get().await;
            yield_now().await;
            drop(connection);
        }
    });
    let bb8 = on(&runtime, move || {
        let pool = bb8.clone();
        async move {
            let connection = pool.get().await;
            yield_now().await;
            drop(connection);
        }
    });
    vec![
        ("bare: two yields", bare),
        ("semaphore and mutex, by hand", made),
        ("cenote", cenote(silent)),
        ("cenote, timed, a subscriber", cenote(counted)),
        ("deadpool", deadpool),
        ("bb8", bb8),
    ]
}

fn on<F: Future<Output = ()> + Send + 'static>(
    runtime: &Arc<Runtime>,
    pair: impl Fn() -> F + Clone + Send + 'static,
) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        let pair = pair.clone();
        runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            let began = Instant::now();
            for _ in 0..TASKS {
                let pair = pair.clone();
                tasks.spawn(async move {
                    for _ in 0..PAIRS {
                        pair().await;
                    }
                });
            }
            tasks.join_all().await;
            vec![nanoseconds(began.elapsed() / UNITS)]
        })
    })
}
