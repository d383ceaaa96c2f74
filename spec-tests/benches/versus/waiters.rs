//! Many tasks wait while all connections are out; then these come back.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::bare::HandMade;
use crate::measure::{Contestant, Sample, nanoseconds};
use crate::pools;

const CONNECTIONS: u32 = 4;

pub(crate) fn contestants(waiters: u32) -> Vec<Contestant> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let made = HandMade::new(CONNECTIONS.into());
    let silent = runtime.block_on(pools::cenote(pools::plain(CONNECTIONS), false));
    let timed = runtime.block_on(pools::cenote(pools::timed(CONNECTIONS), false));
    let deadpool = runtime.block_on(pools::deadpool(CONNECTIONS as usize, None));
    let bb8 = runtime.block_on(pools::bb8(CONNECTIONS, None));
    let mobc = runtime.block_on(pools::mobc(CONNECTIONS, None));
    let cenote = |pool: cenote_tokio::Pool<pools::Numbers>| {
        on(&runtime, waiters, move |held| {
            let pool = pool.clone();
            async move {
                let connection = pool.check_out().await;
                wait_for(held).await;
                drop(connection);
            }
        })
    };
    let made = on(&runtime, waiters, move |held| {
        let made = made.clone();
        async move { made.with(async || wait_for(held).await).await }
    });
    let deadpool = on(&runtime, waiters, move |held| {
        let pool = deadpool.clone();
        async move {
            let connection = pool.get().await;
            wait_for(held).await;
            drop(connection);
        }
    });
    let bb8 = on(&runtime, waiters, move |held| {
        let pool = bb8.clone();
        async move {
            let connection = pool.get().await;
            wait_for(held).await;
            drop(connection);
        }
    });
    let mobc = on(&runtime, waiters, move |held| {
        let pool = mobc.clone();
        async move {
            let connection = pool.get().await;
            wait_for(held).await;
            drop(connection);
        }
    });
    vec![
        ("bare: a chain of oneshot wake-ups", chain(&runtime, waiters)),
        ("semaphore and mutex, by hand", made),
        ("cenote", cenote(silent)),
        ("cenote, timed", cenote(timed)),
        ("deadpool", deadpool),
        ("bb8", bb8),
        ("mobc", mobc),
    ]
}

/// The first holders of the connections keep them until they are told.
async fn wait_for(held: Option<oneshot::Receiver<()>>) {
    if let Some(held) = held {
        let _ = held.await;
    }
}

fn on<F: Future<Output = ()> + Send + 'static>(
    runtime: &Arc<Runtime>,
    waiters: u32,
    take: impl Fn(Option<oneshot::Receiver<()>>) -> F + 'static,
) -> Box<dyn FnMut() -> Sample> {
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
            for _ in 0..waiters {
                tasks.spawn(take(None));
            }
            settle().await;
            let began = Instant::now();
            drop(releases);
            tasks.join_all().await;
            vec![nanoseconds(began.elapsed() / waiters)]
        })
    })
}

/// Each one wakes the next.
fn chain(runtime: &Arc<Runtime>, waiters: u32) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            let (first, mut before) = oneshot::channel::<()>();
            for _ in 0..waiters {
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
            vec![nanoseconds(began.elapsed() / waiters)]
        })
    })
}

/// Lets every task start to wait: the runtime, which is one thread, polls new tasks in the order in
/// which they are spawned, so that this one comes after all of them.
async fn settle() {
    tokio::spawn(async {}).await.expect("it does nothing");
}
