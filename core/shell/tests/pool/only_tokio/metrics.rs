//! OpenTelemetry metrics of a scripted run, exactly: time is virtual, and every duration is a sum of powers
//! of two.

use std::time::Duration;

use cenote_tokio::{Pool, PooledConnection};
use tokio::time::{Instant, advance};

use super::world::{Gate, at_most, builder, failure, settle};
use crate::metrics::Readings;

const EIGHTH: Duration = Duration::from_millis(125);

#[tokio::test(start_paused = true)]
async fn every_metric_of_a_run() {
    const POOL: &str = "pool.name=db.example.com:27017";
    let readings = Readings::new();
    let gate = Gate::closed();
    let options = at_most(2).with_min_pool_size(1).with_max_connecting(1);
    let pool = builder(&gate, options).metrics(readings.metrics()).build().unwrap();
    assert_eq!(
        readings.take().lines(),
        [
            format!("count {{connection}} {POOL} state=idle: 0"),
            format!("count {{connection}} {POOL} state=used: 0"),
            format!("idle.max {{connection}} {POOL}: 2"),
            format!("idle.min {{connection}} {POOL}: 1"),
            format!("max {{connection}} {POOL}: 2"),
            format!("pending_requests {{request}} {POOL}: 0"),
        ]
    );

    // The connection for minPoolSize takes an eighth of a second, and the check-out waits for it.
    pool.ready();
    let first = tokio::spawn(take(pool.clone()));
    settle().await;
    advance(EIGHTH).await;
    gate.admit(1);
    let first = first.await.unwrap();
    // The next one takes two eighths, for one check-out; another check-out waits for three.
    let second = tokio::spawn(take(pool.clone()));
    settle().await;
    let third = tokio::spawn(take(pool.clone()));
    settle().await;
    let lines = readings.take().lines();
    assert!(lines.contains(&format!("pending_requests {{request}} {POOL}: 2")), "{lines:?}");
    advance(EIGHTH * 2).await;
    gate.admit(1);
    let second = second.await.unwrap();
    advance(EIGHTH).await;
    drop(first); // After three.
    let third = third.await.unwrap();
    // One waits for an eighth, and times out; two do not wait.
    let error = pool.check_out_before(Instant::now() + EIGHTH).await.unwrap_err();
    assert!(error.is_timeout());
    assert!(pool.check_out_before(Instant::now()).await.unwrap_err().is_timeout());
    assert!(pool.try_check_out().unwrap().is_none());
    drop(second); // After two.
    assert_eq!(
        readings.take().lines(),
        [
            format!("count {{connection}} {POOL} state=idle: 1"),
            format!("count {{connection}} {POOL} state=used: 1"),
            format!("create_time s {POOL}: 2 in 0.375 s"),
            format!("idle.max {{connection}} {POOL}: 2"),
            format!("idle.min {{connection}} {POOL}: 1"),
            format!("max {{connection}} {POOL}: 2"),
            format!("pending_requests {{request}} {POOL}: 0"),
            format!("timeouts {{timeout}} {POOL}: 1"),
            format!("use_time s {POOL}: 2 in 0.625 s"),
            format!("wait_time s {POOL}: 3 in 0.75 s"),
        ]
    );
    drop(third); // After one.
    let lines = readings.take().lines();
    assert!(lines.contains(&format!("use_time s {POOL}: 3 in 0.75 s")), "{lines:?}");
}

async fn take(pool: Pool<Gate>) -> PooledConnection<Gate> {
    pool.check_out().await.expect("a connection")
}

#[tokio::test(start_paused = true)]
async fn failed_connections_are_not_measured() {
    let readings = Readings::new();
    let gate = Gate::open();
    gate.refuse(1);
    let pool = builder(&gate, at_most(1)).metrics(readings.metrics()).build().unwrap();
    assert!(pool.check_out().await.is_err(), "it is paused");
    pool.ready();
    assert!(pool.check_out().await.is_err(), "it is refused");
    let mut broken = pool.check_out().await.unwrap();
    advance(EIGHTH).await;
    broken.mark_errored(failure());
    drop(broken);
    let lines = readings.take().lines();
    let figures: Vec<_> = lines
        .iter()
        .filter(|line| {
            ["count", "create", "wait", "use", "time", "pend"].iter().any(|it| line.starts_with(it))
        })
        .map(|line| line.replace("pool.name=db.example.com:27017", "-"))
        .collect();
    assert_eq!(
        figures,
        [
            "count {connection} - state=idle: 0",
            "count {connection} - state=used: 0",
            "create_time s -: 1 in 0 s",
            "pending_requests {request} -: 0",
            "use_time s -: 1 in 0.125 s",
            "wait_time s -: 1 in 0 s",
        ]
    );
}
