//! Bytes of heap for each task that waits for a connection, beyond those of a task that waits for
//! nothing: `cargo bench --profile compare -p cenote --bench versus_memory [-- WAITERS]`. Apart from the other rows,
//! because it counts every allocation.

#[expect(dead_code, reason = "shared with the other rows, which use all of it")]
mod bare;
mod peer;
#[expect(dead_code, reason = "shared with the other rows, which use all of it")]
mod pools;

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bare::HandMade;
use crate::peer::Peer;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const CONNECTIONS: u32 = 4;
const LIMIT: Option<Duration> = Some(Duration::from_secs(30));

fn main() {
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let waiters = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let waiters = waiters.unwrap_or(if is_test { 100 } else { 10_000 });
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let nothing = measure(&runtime, waiters, std::future::pending::<()>);
    println!(
        "a task that waits for nothing: {nothing:.0} bytes. Beyond that, for one of {waiters}:"
    );
    let report = |name: &str, bytes: f64| println!("  {name:<44} {:>7.0}", bytes - nothing);
    report("semaphore and mutex, by hand", on(&runtime, waiters, &HandMade::new(4)));
    for (name, options) in [
        ("cenote, nothing timed", pools::plain(CONNECTIONS)),
        ("cenote, timed", pools::timed(CONNECTIONS)),
    ] {
        let pool = runtime.block_on(pools::cenote(options, false));
        report(name, on(&runtime, waiters, &pool));
    }
    let deadpool = |wait| runtime.block_on(pools::deadpool(CONNECTIONS as usize, wait));
    report("deadpool", on(&runtime, waiters, &deadpool(None)));
    report("deadpool with a timeout", on(&runtime, waiters, &deadpool(LIMIT)));
    report("bb8", on(&runtime, waiters, &runtime.block_on(pools::bb8(CONNECTIONS, LIMIT))));
    report("mobc", on(&runtime, waiters, &runtime.block_on(pools::mobc(CONNECTIONS, LIMIT))));
}

fn on<P: Peer>(runtime: &Runtime, waiters: usize, pool: &P) -> f64 {
    // mobc gives connections back in a task.
    let _inside = runtime.enter();
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        held.push(runtime.block_on(pool.take()).expect("a connection"));
    }
    measure(runtime, waiters, || {
        let pool = pool.clone();
        async move { drop(pool.take().await) }
    })
}

/// Bytes for each of so many tasks, when all of them wait.
fn measure<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    waiters: usize,
    wait: impl Fn() -> F,
) -> f64 {
    let _profiler = dhat::Profiler::builder().testing().build();
    runtime.block_on(async {
        let before = dhat::HeapStats::get().curr_bytes;
        let mut tasks = JoinSet::new();
        for _ in 0..waiters {
            tasks.spawn(wait());
        }
        // Polled after all of them, which then wait.
        tokio::spawn(async {}).await.expect("it does nothing");
        let after = dhat::HeapStats::get().curr_bytes;
        tasks.shutdown().await;
        (after - before) as f64 / waiters as f64
    })
}
