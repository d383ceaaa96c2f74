//! 10,000 tasks wait while all connections are out, and give up together.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

use crate::bare::HandMade;
use crate::measure::{Column, Contestant, Row, Sample, cpu_time, nanoseconds};
use crate::peer::Peer;
use crate::pools;

const WAITERS: u32 = 10_000;
const CONNECTIONS: u32 = 4;

/// Long enough for all of them to begin to wait.
const LIMIT: Duration = Duration::from_millis(100);

pub(crate) fn row() -> Row {
    Row::new("timeouts", "one of 10,000 waiters that time out together", contestants)
        .with_columns(vec![Column { name: "CPU ns", is_compared: true }])
        .counted_in(WAITERS)
}

fn contestants() -> Vec<Contestant> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let options = pools::plain(CONNECTIONS).with_wait_queue_timeout(LIMIT);
    let limited = runtime.block_on(pools::cenote(options, false));
    let unlimited = runtime.block_on(pools::cenote(pools::plain(CONNECTIONS), false));
    let deadpool = runtime.block_on(pools::deadpool(CONNECTIONS as usize, Some(LIMIT)));
    let bb8 = runtime.block_on(pools::bb8(CONNECTIONS, Some(LIMIT)));
    let mobc = runtime.block_on(pools::mobc(CONNECTIONS, Some(LIMIT)));
    vec![
        ("bare: a sleep each", sleeps(&runtime)),
        ("semaphore and mutex, by hand", outside(&runtime, HandMade::new(4))),
        ("cenote, timed", inside(&runtime, limited)),
        ("cenote", outside(&runtime, unlimited)),
        ("deadpool with a timeout", inside(&runtime, deadpool)),
        ("bb8", inside(&runtime, bb8)),
        ("mobc", inside(&runtime, mobc)),
    ]
}

/// No pool.
fn sleeps(runtime: &Arc<Runtime>) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || runtime.block_on(measure(|limit| sleep_until(limit.into()))))
}

/// The pool ends the wait.
fn inside<P: Peer>(runtime: &Arc<Runtime>, pool: P) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let held = exhaust(&pool).await;
            let sample = measure(|_| {
                let pool = pool.clone();
                async move { assert!(pool.take().await.is_none(), "all are out") }
            });
            let sample = sample.await;
            drop(held);
            sample
        })
    })
}

/// A timeout around it ends the wait.
fn outside<P: Peer>(runtime: &Arc<Runtime>, pool: P) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let held = exhaust(&pool).await;
            let sample = measure(|limit| {
                let pool = pool.clone();
                async move {
                    let waited = timeout_at(limit.into(), pool.take()).await;
                    assert!(waited.is_err(), "all are out");
                }
            });
            let sample = sample.await;
            drop(held);
            sample
        })
    })
}

async fn exhaust<P: Peer>(pool: &P) -> Vec<P::Held> {
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        held.push(pool.take().await.expect("a connection"));
    }
    held
}

async fn measure<F: Future<Output = ()> + Send + 'static>(wait: impl Fn(Instant) -> F) -> Sample {
    let cpu = cpu_time();
    let limit = Instant::now() + LIMIT;
    let mut tasks = JoinSet::new();
    for _ in 0..WAITERS {
        tasks.spawn(wait(limit));
    }
    tasks.join_all().await;
    vec![nanoseconds((cpu_time() - cpu) / WAITERS)]
}
