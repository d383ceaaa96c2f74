//! Panics, dumped. Nothing else here panics.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use cenote_core::pool::{Input, PoolOptions};
use cenote_core::trace::Step;
use cenote_mio::EventLoop;
use cenote_smol::Smol;
use cenote_tokio::Tokio;
use tempfile::tempdir;

use crate::pool::blocking::{TestPool, TestRuntime};
use crate::pool::world::{Gate, at_most, builder, failure};
use crate::recording::shared_buffer::steps;

/// One test, because a panic is dumped by every pool that there is.
#[test]
fn the_first_panic_is_dumped() {
    on::<Tokio>();
    on::<EventLoop>();
    on::<Smol>();
}

fn on<R: TestRuntime>() {
    somewhere_else::<R>();
    under_the_lock::<R>();
    one_after_the_other::<R>();
}

fn somewhere_else<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let pool = pool::<R>(at_most(1), folder.path());
    pool.ready();
    let held = pool.check_out().expect("a connection");
    for _ in 0..2 {
        let thread = std::thread::spawn(|| panic!("on purpose, to be dumped"));
        thread.join().expect_err("it panics");
    }
    let names: Vec<_> = dump(folder.path()).iter().map(|step| step.input.name()).collect();
    assert_eq!(names, ["Ready", "CheckOutRequested", "EstablishSucceeded"]);
    drop(held);
}

/// Set when it is given back: before, it cannot be read.
fn under_the_lock<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let pool = pool::<R>(PoolOptions::default().with_load_balanced(true), folder.path());
    // As documented: only services can be cleared.
    catch_unwind(AssertUnwindSafe(|| pool.clear(failure(), false))).expect_err("it panics");
    let steps = dump(folder.path());
    let last = steps.last().expect("a step");
    assert!(last.refused && matches!(last.input, Input::Clear { .. }), "{last:?}");
    pool.close(); // It goes on.
}

/// A panic is dumped by every pool, and only the first one: not the next, under the lock of a pool.
fn one_after_the_other<R: TestRuntime>() {
    let folders = [(); 2].map(|()| tempdir().expect("a folder"));
    let options = PoolOptions::default().with_load_balanced(true);
    let pools = folders.each_ref().map(|folder| pool::<R>(options.clone(), folder.path()));
    let thread = std::thread::spawn(|| panic!("on purpose, to be dumped"));
    thread.join().expect_err("it panics");
    for (pool, folder) in pools.iter().zip(&folders) {
        catch_unwind(AssertUnwindSafe(|| pool.clear(failure(), false))).expect_err("it panics");
        let names: Vec<_> = dump(folder.path()).iter().map(|step| step.input.name()).collect();
        assert_eq!(names, Vec::<&str>::new(), "nothing had happened at the first panic");
    }
}

fn pool<R: TestRuntime>(options: PoolOptions, folder: &Path) -> R::Pool<Gate> {
    let builder = builder::<R>(&Gate::open(), options).dump_traces_into(folder);
    builder.build().expect("a pool")
}

/// The steps of the only dump, which replays as it was recorded.
fn dump(folder: &Path) -> Vec<Step> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let [path] = files.collect::<Vec<_>>().try_into().expect("one dump");
    assert!(path.to_str().expect("text").ends_with("-panic.bson"), "{}", path.display());
    steps(&fs::read(&path).expect("a file"))
}
