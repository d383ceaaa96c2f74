//! 10,000 tasks wait while all connections are out; then these come back.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};

use crate::{Contestant, bare::HandMade, pools};

const WAITERS: u32 = 10_000;
const CONNECTIONS: u32 = 4;

pub(crate) fn contestants() -> Vec<Contestant> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let made = HandMade::new(CONNECTIONS.into());
    let silent = runtime.block_on(pools::cenote(pools::plain(CONNECTIONS), false));
    let timed = runtime.block_on(pools::cenote(pools::timed(CONNECTIONS), false));
    let deadpool = runtime.block_on(pools::deadpool(CONNECTIONS as usize, None));
    let bb8 = runtime.block_on(pools::bb8(CONNECTIONS));
    let cenote = |pool: cenote_tokio::Pool<pools::Numbers>| {
        on(&runtime, move |held| {
            let pool = pool.clone();
            async move {
                let connection = pool.check_out().await;
                wait_for(held).await;
                drop(connection);
            }
        })
    };
    let made = on(&runtime, move |held| {
        let made = made.clone();
        async move { made.with(async || wait_for(held).await).await }
    });
    let deadpool = on(&runtime, move |held| {
        let pool = deadpool.clone();
        async move {
            let connection = pool.get().await;
            wait_for(held).await;
            drop(connection);
        }
    });
    let bb8 = on(&runtime, move |held| {
        let pool = bb8.clone();
        async move {
            let connection = pool.get().await;
            wait_for(held).await;
            drop(connection);
        }
    });
    vec![
        ("bare: a chain of oneshot wake-ups", chain(&runtime)),
        ("semaphore and mutex, by hand", made),
        ("cenote, events off, nothing timed", cenote(silent)),
        ("cenote, idle times and a 30 s limit", cenote(timed)),
        ("deadpool", deadpool),
        ("bb8", bb8),
    ]
}

/// Those who hold the connections at the beginning do so until they are told.
async fn wait_for(held: Option<oneshot::Receiver<()>>) {
    if let Some(held) = held {
        let _ = held.await;
    }
}

fn on<F: Future<Output = ()> + Send + 'static>(
    runtime: &Arc<Runtime>,
    take: impl Fn(Option<oneshot::Receiver<()>>) -> F + 'static,
) -> Box<dyn FnMut() -> Duration> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            let mut releases = Vec::new();
            for _ in 0..CONNECTIONS {
                let (release, held) = oneshot::channel();
                releases.push(release);
                tasks.spawn(take(Some(held)));
            }
            settle().await;
            for _ in 0..WAITERS {
                tasks.spawn(take(None));
            }
            settle().await;
            let began = Instant::now();
            drop(releases);
            tasks.join_all().await;
            began.elapsed() / WAITERS
        })
    })
}

/// Each one wakes the next.
fn chain(runtime: &Arc<Runtime>) -> Box<dyn FnMut() -> Duration> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            let (first, mut before) = oneshot::channel::<()>();
            for _ in 0..WAITERS {
                let (wake, next) = oneshot::channel();
                let waits = std::mem::replace(&mut before, next);
                tasks.spawn(async move {
                    let _ = waits.await;
                    drop(wake);
                });
            }
            settle().await;
            let began = Instant::now();
            drop(first);
            tasks.join_all().await;
            began.elapsed() / WAITERS
        })
    })
}

/// Everybody gets as far as to wait.
async fn settle() {
    for _ in 0..4 {
        yield_now().await;
    }
}
