//! 64 tasks on two threads share 8 connections for a while: how many each gets, and how long each
//! waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, yield_now};

use crate::bare::HandMade;
use crate::measure::{Column, Contestant, Row, Sample};
use crate::peer::Peer;
use crate::pools;

const TASKS: usize = 64;
const CONNECTIONS: u32 = 8;
const WHILE: Duration = Duration::from_millis(300);

pub(crate) fn row() -> Row {
    Row::new("fairness", "64 tasks over 8 connections, two threads, 0.3 s", contestants)
        .with_columns(vec![
            Column { name: "least ÷ most", is_compared: false },
            Column { name: "p99 ÷ p50", is_compared: false },
            Column { name: "p50 µs", is_compared: false },
        ])
}

fn contestants() -> Vec<Contestant> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let cenote = |options, counts| runtime.block_on(pools::cenote(options, counts));
    let (silent, counted) =
        (cenote(pools::plain(CONNECTIONS), false), cenote(pools::timed(CONNECTIONS), true));
    let deadpool = runtime.block_on(pools::deadpool(CONNECTIONS as usize, None));
    let bb8 = runtime.block_on(pools::bb8(CONNECTIONS, None));
    let mobc = runtime.block_on(pools::mobc(CONNECTIONS, None));
    vec![
        ("semaphore and mutex, by hand", on(&runtime, HandMade::new(CONNECTIONS.into()))),
        ("cenote", on(&runtime, silent)),
        ("cenote, timed, a subscriber", on(&runtime, counted)),
        ("deadpool", on(&runtime, deadpool)),
        ("bb8", on(&runtime, bb8)),
        ("mobc", on(&runtime, mobc)),
    ]
}

fn on<P: Peer>(runtime: &Arc<Runtime>, pool: P) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        let pool = pool.clone();
        let waits = runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            let until = Instant::now() + WHILE;
            for _ in 0..TASKS {
                tasks.spawn(serve(pool.clone(), until));
            }
            tasks.join_all().await
        });
        let served = waits.iter().map(Vec::len);
        let (least, most) = (served.clone().min(), served.max());
        let mut all: Vec<_> = waits.into_iter().flatten().collect();
        all.sort_unstable();
        let at = |percent: usize| all[all.len() * percent / 100].as_secs_f64() * 1e6;
        let part = |count: Option<usize>| count.expect("there are tasks") as f64;
        vec![part(least) / part(most), at(99) / at(50), at(50)]
    })
}

/// How long each of its waits was.
async fn serve<P: Peer>(pool: P, until: Instant) -> Vec<Duration> {
    let mut waits = Vec::new();
    loop {
        let asked = Instant::now();
        if asked >= until {
            return waits;
        }
        let held = pool.take().await;
        waits.push(asked.elapsed());
        yield_now().await;
        drop(held);
    }
}
