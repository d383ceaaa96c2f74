//! A short soak of the tokio shell; `--example soak_tokio` is the long one.

use std::time::Duration;

use cenote::soak::{self, Plan};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_have_a_bad_time_and_nothing_is_lost() {
    let time = Duration::from_secs(3);
    let plan = Plan { time, tasks: 1000, connections: 50, seed: 3, events: None };
    let outcome = soak::run(&plan).await.unwrap();
    let complaints = outcome.complaints();
    assert!(complaints.is_empty(), "{outcome}\n{}", complaints.join("\n"));
    assert!(outcome.counts.given_up > 0 && outcome.counts.refused > 0, "{outcome}");
}
