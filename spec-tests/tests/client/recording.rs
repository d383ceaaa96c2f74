//! Traces of a client on mio, as of one on tokio: a file for each of its pools.

use std::fs;

use cenote_core::trace::Replay;
use cenote_mio::{BuildError, Client, ClientBuildError};
use tempfile::tempdir;

/// The names of the inputs of a trace, which must replay to its end as it was recorded.
fn inputs(trace: &[u8]) -> Vec<&'static str> {
    let mut replay = Replay::new(trace).expect("a trace");
    let mut names = Vec::new();
    while let Some(step) = replay.step(&mut |_| {}).expect("it goes the way it went") {
        names.push(step.input.name());
    }
    names
}

#[test]
fn a_trace_of_each_pool_under_its_servers_address() {
    let folder = tempdir().expect("a folder");
    let [all, last] = ["all", "last"].map(|name| folder.path().join(name));
    let client = Client::builder("mongodb://127.0.0.1:1,127.0.0.1:2/?maxPoolSize=7");
    let client = client.expect("a connection string").record_into(&all).flight_recorder(4096);
    let client = client.build().expect("a client");
    client.dump_traces(&last).expect("two dumps");
    client.close();
    client.end_recording().expect("two traces");
    for (folder, is_closed) in [(all, true), (last, false)] {
        for port in 1..=2 {
            let trace = fs::read(folder.join(format!("127.0.0.1-{port}.bson"))).expect("a file");
            let names = inputs(&trace);
            assert_eq!(names.last() == Some(&"Close"), is_closed, "{names:?}");
            let header = Replay::new(trace.as_slice()).expect("a trace").header().clone();
            assert_eq!(header.address, Some(format!("127.0.0.1:{port}")));
        }
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 2);
    }
}

/// And no loop, no thread and no pool of those that were there already.
#[test]
fn where_nothing_can_be_written_there_is_no_client() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let client = Client::builder("mongodb://127.0.0.1:1,127.0.0.1:2").expect("a connection string");
    let error = client.record_into(&file).build().expect_err("it is a file");
    assert!(matches!(error, ClientBuildError::Pool(BuildError::Recording(_))), "{error}");
}
