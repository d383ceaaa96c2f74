//! Panics, dumped. In a process of its own, where nothing else panics.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{Input, PoolOptions};
use cenote_core::trace::{Replay, Step};
use cenote_tokio::{Builder, Connector, Pool, Progress, Target};
use tempfile::tempdir;

struct Numbers;

impl Connector for Numbers {
    type Connection = u64;

    async fn connect(&self, target: Target, _: Progress<Self>) -> Result<u64, ConnectionError> {
        Ok(target.connection_id)
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_panic_is_dumped() {
    somewhere_else().await;
    under_the_lock().await;
}

async fn somewhere_else() {
    let folder = tempdir().expect("a folder");
    let pool = pool(PoolOptions::default(), folder.path());
    pool.ready();
    let held = pool.check_out().await.expect("a connection");
    for _ in 0..2 {
        let task = tokio::spawn(async { panic!("on purpose, to be dumped") });
        task.await.expect_err("it panics");
    }
    let names: Vec<_> = dump(folder.path()).iter().map(|step| step.input.name()).collect();
    assert_eq!(names, ["Ready", "CheckOutRequested", "EstablishSucceeded"]);
    drop(held);
}

/// When it is given back: before, nobody can look.
async fn under_the_lock() {
    let folder = tempdir().expect("a folder");
    let pool = pool(PoolOptions::default().with_load_balanced(true), folder.path());
    // As documented: only services can be cleared.
    let cause = ConnectionError::network(Stage::Operation, "on purpose");
    catch_unwind(AssertUnwindSafe(|| pool.clear(cause, false))).expect_err("it panics");
    let steps = dump(folder.path());
    let last = steps.last().expect("a step");
    assert!(last.refused && matches!(last.input, Input::Clear { .. }), "{last:?}");
    pool.close().await; // It goes on.
}

fn pool(options: PoolOptions, folder: &Path) -> Pool<Numbers> {
    let address = "db.example.com".parse().expect("an address");
    let builder = Builder::new(address, Numbers).options(options).dump_traces_into(folder);
    builder.build().expect("a pool")
}

/// The steps of the only dump, which replays as it was recorded.
fn dump(folder: &Path) -> Vec<Step> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let [path] = files.collect::<Vec<_>>().try_into().expect("one dump");
    assert!(path.to_str().expect("text").ends_with("-panic.bson"), "{}", path.display());
    let trace = fs::read(&path).expect("a file");
    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    let mut steps = Vec::new();
    while let Some(step) = replay.step(&mut |_| {}).expect("it goes the way it went") {
        steps.push(step);
    }
    steps
}
