//! A short soak of the tokio shell; `--example soak_tokio` is the long one.

use std::time::Duration;

use cenote::soak::{self, Plan};
use cenote_core::trace::Replay;
use tempfile::tempdir;

// PS-22
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_have_a_bad_time_and_nothing_is_lost() {
    let time = Duration::from_secs(3);
    let folder = tempdir().unwrap();
    let trace = folder.path().join("soak.bson");
    let (events, path) = (None, Some(trace.clone()));
    let plan = Plan { time, tasks: 1000, connections: 50, seed: 3, events, trace: path };
    let outcome = soak::run(&plan).await.unwrap();
    let complaints = outcome.complaints();
    assert!(complaints.is_empty(), "{outcome}\n{}", complaints.join("\n"));
    assert!(outcome.counts.given_up > 0 && outcome.counts.refused > 0, "{outcome}");

    // All of it was recorded, and goes the same way without sockets, threads and troubles.
    let mut replay = Replay::new(std::fs::File::open(trace).unwrap()).unwrap();
    let mut lost = 0;
    while let Some(step) = replay.step(&mut |_| {}).unwrap_or_else(|error| panic!("{error}")) {
        lost += step.lost_before.unwrap_or(0);
    }
    assert_eq!((lost, replay.pool().snapshot().total), (0, 0));
    assert!(replay.steps() > 2 * outcome.counts.delivered, "{} steps", replay.steps());
}
