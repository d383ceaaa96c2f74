//! OpenTelemetry metrics of a scripted run, exactly: time is virtual, and every duration is a sum of powers
//! of two.

use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_tokio::{Builder, Connector, HandshakeReporter, Pool, PooledConnection, Target, Tokio};
use tokio::time::{Instant, advance, sleep};

use super::world::{Gate, at_most, builder, failure, settle};
use crate::pool::metrics::Readings;

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
            format!("cenote.connection.oldest_use s {POOL}: 0 s"),
            format!("cenote.connection.oldest_wait s {POOL}: 0 s"),
            format!("cenote.connection.pending {{connection}} {POOL}: 0"),
            format!("count {{connection}} {POOL} state=idle: 0"),
            format!("count {{connection}} {POOL} state=used: 0"),
            format!("idle.max {{connection}} {POOL}: 2"),
            format!("idle.min {{connection}} {POOL}: 1"),
            format!("max {{connection}} {POOL}: 2"),
            format!("pending_requests {{request}} {POOL}: 0"),
        ]
    );

    let close_reason = "cenote.connection.close_reason";
    let closed =
        |reason| format!("cenote.connection.closed {{connection}} {close_reason}={reason} {POOL}");
    let clears = |interrupt| {
        let interrupt = format!("cenote.connection.interrupt={interrupt}");
        format!("cenote.connection.clears {{clear}} {interrupt} {POOL}")
    };
    assert_eq!(
        readings.take().zeros(),
        [
            clears(false),
            clears(true),
            closed("error"),
            closed("idle"),
            closed("poolClosed"),
            closed("stale"),
            format!("cenote.connection.created {{connection}} {POOL}"),
            format!("timeouts {{timeout}} {POOL}"),
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
    let lines = readings.take().lines();
    for figure in ["oldest_use s {POOL}: 0.25 s", "oldest_wait s {POOL}: 0.25 s"] {
        let line = format!("cenote.connection.{}", figure.replace("{POOL}", POOL));
        assert!(lines.contains(&line), "{lines:?}");
    }
    let pending = format!("cenote.connection.pending {{connection}} {POOL}: 1");
    assert!(lines.contains(&pending), "{lines:?}");
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
            format!("cenote.connection.created {{connection}} {POOL}: 2"),
            // The third has had its connection for an eighth.
            format!("cenote.connection.oldest_use s {POOL}: 0.125 s"),
            format!("cenote.connection.oldest_wait s {POOL}: 0 s"),
            format!("cenote.connection.pending {{connection}} {POOL}: 0"),
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

/// Opens connections in four eighths: one for the name, three for hello.
struct Staged;

impl Connector<Tokio> for Staged {
    type Connection = ();
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target,
        reporter: HandshakeReporter,
    ) -> Result<(), ConnectionError> {
        reporter.entered(Stage::Dns);
        sleep(EIGHTH).await;
        reporter.entered(Stage::Hello);
        sleep(EIGHTH).await;
        reporter.entered(Stage::Hello);
        sleep(EIGHTH * 2).await;
        match target.connection_id {
            2 => Err(ConnectionError::timeout(Stage::Hello, EIGHTH)),
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_stage_of_an_establishment() {
    let readings = Readings::new();
    let address = "db.example.com".parse().unwrap();
    let builder = Builder::new(address, Staged).replace_options(at_most(3));
    let pool: Pool<Staged> = builder.metrics(readings.metrics()).build().unwrap();
    pool.ready();
    let held = pool.check_out().await.unwrap();
    assert!(pool.check_out().await.is_err(), "the second fails");
    // The pool does not want the third any more, in the middle of hello.
    pool.ready();
    let third = tokio::spawn({
        let pool = pool.clone();
        async move { pool.check_out().await.map(drop) }
    });
    sleep(EIGHTH * 2).await;
    pool.clear(failure(), true);
    assert!(third.await.unwrap().is_err());
    settle().await;
    let mut lines = readings.take().lines();
    lines.retain(|line| line.starts_with("cenote.connection.stage_time"));
    let stages = ["", " error.type=aborted", " error.type=timeout"];
    let [well, aborted, timeout] = stages.map(|error| {
        format!("cenote.connection.stage=hello{error} pool.name=db.example.com:27017")
    });
    let dns = "cenote.connection.stage=dns pool.name=db.example.com:27017";
    assert_eq!(
        lines,
        [
            format!("cenote.connection.stage_time s {dns}: 3 in 0.375 s"),
            format!("cenote.connection.stage_time s {aborted}: 1 in 0.125 s"),
            format!("cenote.connection.stage_time s {timeout}: 1 in 0.375 s"),
            format!("cenote.connection.stage_time s {well}: 1 in 0.375 s"),
        ]
    );
    drop(held);
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
            ["cenote", "count", "create", "wait", "use", "time", "pend"]
                .iter()
                .any(|it| line.starts_with(it))
        })
        .map(|line| line.replace("pool.name=db.example.com:27017", "-"))
        .collect();
    assert_eq!(
        figures,
        [
            "cenote.connection.closed {connection} cenote.connection.close_reason=error -: 2",
            "cenote.connection.created {connection} -: 2",
            "cenote.connection.oldest_use s -: 0 s",
            "cenote.connection.oldest_wait s -: 0 s",
            "cenote.connection.pending {connection} -: 0",
            "count {connection} - state=idle: 0",
            "count {connection} - state=used: 0",
            "create_time s -: 1 in 0 s",
            "pending_requests {request} -: 0",
            "use_time s -: 1 in 0.125 s",
            "wait_time s -: 1 in 0 s",
        ]
    );
}
