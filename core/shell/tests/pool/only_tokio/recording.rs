//! The times in a trace, for which time has to be virtual. Everything else about traces is tested in
//! `core/shell/tests/recording`.

use std::fs;
use std::time::Duration;

use cenote_core::trace::{Replay, Step, topology};
use cenote_tokio::{BuildError, Builder, Client, ClientBuildError};
use tempfile::tempdir;

use super::world::{Gate, at_most, failure, unobserved};

#[tokio::test(start_paused = true)]
async fn times_are_recorded_although_nothing_depends_on_them() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("all.bson");
    // Without subscribers.
    let builder: Builder<Gate> = unobserved(&Gate::open(), at_most(1));
    let builder = builder.flight_recorder(4096).record(path.as_path());
    let pool = builder.build().expect("a pool");
    pool.ready();
    let held = pool.check_out().await.expect("a connection");
    tokio::time::advance(Duration::from_secs(7)).await;
    drop(held);
    pool.end_recording().await.expect("a whole trace");
    let last = steps(&fs::read(path).expect("a file")).pop().expect("a step");
    assert_eq!((last.input.name(), last.at.as_nanos()), ("CheckedIn", 7_000_000_000));

    // With a flight recorder alone, the clock is not read for check-outs that are served at once.
    drop(pool.check_out().await.expect("a connection"));
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(pool.check_out().await.expect("a connection"));
    pool.clear(failure(), false);
    let all = steps(&pool.write_trace(Vec::new()).expect("memory"));
    let [.., pair, last] = all.as_slice() else { panic!("{} steps", all.len()) };
    assert_eq!((pair.input.name(), pair.at.as_nanos()), ("CheckedIn", 7_000_000_000));
    assert_eq!((last.input.name(), last.at.as_nanos()), ("Clear", 9_000_000_000));
}

/// A client records each of its pools, under the server's address, and its topology.
#[tokio::test]
async fn pools_of_a_client() {
    let folder = tempdir().expect("a folder");
    let [all, last] = ["all", "last"].map(|name| folder.path().join(name));
    let client = Client::builder("mongodb://127.0.0.1:1,127.0.0.1:2/?maxPoolSize=7");
    let client = client.expect("a connection string").record_into(&all).flight_recorder(4096);
    let client = client.build().expect("a client");
    client.dump_traces(&last).expect("three dumps");
    client.close().await;
    client.end_recording().await.expect("three traces");
    for (folder, is_closed) in [(all, true), (last, false)] {
        for port in 1..=2 {
            let trace = fs::read(folder.join(format!("127.0.0.1-{port}.bson"))).expect("a file");
            let names: Vec<_> = steps(&trace).iter().map(|step| step.input.name()).collect();
            assert_eq!(names.last() == Some(&"Close"), is_closed, "{names:?}");
            let header = Replay::new(trace.as_slice()).expect("a trace").header().clone();
            assert_eq!(header.address, Some(format!("127.0.0.1:{port}")));
        }
        let topology = fs::read(folder.join("topology.bson")).expect("a file");
        let mut replay = topology::Replay::new(topology.as_slice()).expect("a trace");
        replay.verify().expect("it replays as it was recorded");
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 3);
    }

    // Where nothing can be written, there is no client.
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let client = Client::builder("mongodb://127.0.0.1:1").expect("a connection string");
    let error = client.record_into(&file).build().expect_err("it is a file");
    assert!(matches!(error, ClientBuildError::Pool(BuildError::Recording(_))), "{error}");
}

/// All steps of a trace, which must replay as it was recorded.
fn steps(trace: &[u8]) -> Vec<Step> {
    let mut replay = Replay::new(trace).expect("a trace");
    let mut steps = Vec::new();
    while let Some(step) = replay.step(&mut |_| {}).expect("it replays as it was recorded") {
        steps.push(step);
    }
    steps
}
