//! A short soak of the mio shell, in a process of its own, whose sockets and threads are counted by
//! the operating system; `--example soak_mio` is the long one.

use std::fs;
use std::time::Duration;

use cenote::soak::{Plan, on_mio};
use cenote_core::trace::Replay;
use cenote_endpoint::{Endpoint, ListenOptions, Settings};
use tempfile::tempdir;

// WQ-02
#[test]
fn a_thousand_threads_have_a_bad_time_and_nothing_is_lost() {
    let time = Duration::from_secs(3);
    let folder = tempdir().unwrap();
    let trace = folder.path().join("soak.bson");
    let (events, path) = (None, Some(trace.clone()));
    let plan = Plan { time, tasks: 1000, connections: 50, seed: 3, events, trace: path };
    // What tokio keeps for signals is there once and for all: the endpoint runs on it.
    drop(Endpoint::start(Settings::default(), ListenOptions::default()).unwrap());
    let before = descriptors();
    let outcome = on_mio::run(&plan).unwrap();
    let complaints = outcome.complaints();
    assert!(complaints.is_empty(), "{outcome}\n{}", complaints.join("\n"));
    assert!(outcome.counts.given_up > 0 && outcome.counts.refused > 0, "{outcome}");
    assert_eq!((outcome.sockets, outcome.threads), (Some(0), Some(0)), "{outcome}");
    assert_eq!(descriptors(), before, "files, sockets, polls and all");

    // All of it was recorded, and goes the same way without sockets, threads and troubles.
    let mut replay = Replay::new(fs::File::open(trace).unwrap()).unwrap();
    let mut lost = 0;
    while let Some(step) = replay.step(&mut |_| {}).unwrap_or_else(|error| panic!("{error}")) {
        lost += step.lost_before.unwrap_or(0);
    }
    assert_eq!((lost, replay.pool().snapshot().total), (0, 0));
    assert!(replay.steps() > 2 * outcome.counts.delivered, "{} steps", replay.steps());
}

/// What the process has open.
fn descriptors() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    // But for the folder that is read.
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut names: Vec<_> = links.map(|it| it.to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.ends_with("/fd"));
    names.sort();
    names
}
