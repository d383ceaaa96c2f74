//! OpenTelemetry's figures of a scripted run, exactly: time is virtual, and every duration is a sum
//! of powers of two.

use std::time::Duration;

use cenote_tokio::{Client, Metrics, Pool};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Metric, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use tokio::time::{Instant, advance};

use crate::world::{Gate, at_most, builder, failure, settle};

const EIGHTH: Duration = Duration::from_millis(125);

/// A provider whose figures are read when the test asks.
struct Readings {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Readings {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone());
        let reader = reader.with_interval(Duration::from_secs(3600)).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), exporter }
    }

    fn metrics(&self) -> Metrics {
        Metrics::new(self.provider.meter("test"))
    }

    /// A line a figure, without what all names begin with, in the order of the alphabet.
    fn take(&self) -> Vec<String> {
        self.exporter.reset();
        self.provider.force_flush().expect("it is read");
        let all = self.exporter.get_finished_metrics().expect("they are there");
        let scopes = all.iter().flat_map(ResourceMetrics::scope_metrics);
        let mut lines: Vec<_> = scopes.flat_map(ScopeMetrics::metrics).flat_map(lines).collect();
        lines.sort();
        lines
    }
}

fn lines(metric: &Metric) -> Vec<String> {
    let name = metric.name().strip_prefix("db.client.connection.").expect("all begin so");
    let line = |attributes: String, value: String| {
        format!("{name} {} {attributes}: {value}", metric.unit())
    };
    match metric.data() {
        AggregatedMetrics::I64(MetricData::Sum(sum)) => {
            assert!(!sum.is_monotonic(), "{name} goes up and down");
            let points = sum.data_points();
            points.map(|it| line(text(it.attributes()), it.value().to_string())).collect()
        }
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            assert!(sum.is_monotonic(), "{name} is a counter");
            let points = sum.data_points();
            points.map(|it| line(text(it.attributes()), it.value().to_string())).collect()
        }
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            let points = histogram.data_points().map(|it| {
                let bounds: Vec<_> = it.bounds().collect();
                assert_eq!(bounds, [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0]);
                line(text(it.attributes()), format!("{} in {} s", it.count(), it.sum()))
            });
            points.collect()
        }
        other @ (AggregatedMetrics::F64(_)
        | AggregatedMetrics::U64(_)
        | AggregatedMetrics::I64(_)) => panic!("{name}: {other:?}"),
    }
}

fn text<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let word = |it: &KeyValue| {
        let key = it.key.as_str().strip_prefix("db.client.connection.").expect("all begin so");
        format!("{key}={}", it.value)
    };
    let mut words: Vec<_> = attributes.map(word).collect();
    words.sort();
    words.join(" ")
}

#[tokio::test(start_paused = true)]
async fn every_figure_of_a_run() {
    const POOL: &str = "pool.name=db.example.com:27017";
    let readings = Readings::new();
    let gate = Gate::closed();
    let options = at_most(2).with_min_pool_size(1).with_max_connecting(1);
    let pool = builder(&gate, options).metrics(readings.metrics()).build().unwrap();
    assert_eq!(
        readings.take(),
        [
            format!("count {{connection}} {POOL} state=idle: 0"),
            format!("count {{connection}} {POOL} state=used: 0"),
            format!("idle.max {{connection}} {POOL}: 2"),
            format!("idle.min {{connection}} {POOL}: 1"),
            format!("max {{connection}} {POOL}: 2"),
            format!("pending_requests {{request}} {POOL}: 0"),
        ]
    );

    // The minimum's connection takes an eighth of a second, and the request waits for it.
    pool.ready();
    let first = tokio::spawn(take(pool.clone()));
    settle().await;
    advance(EIGHTH).await;
    gate.admit(1);
    let first = first.await.unwrap();
    // The next one takes two, for one request; another one waits for three.
    let second = tokio::spawn(take(pool.clone()));
    settle().await;
    let third = tokio::spawn(take(pool.clone()));
    settle().await;
    let lines = readings.take();
    assert!(lines.contains(&format!("pending_requests {{request}} {POOL}: 2")), "{lines:?}");
    advance(EIGHTH * 2).await;
    gate.admit(1);
    let second = second.await.unwrap();
    advance(EIGHTH).await;
    drop(first); // After three.
    let third = third.await.unwrap();
    // One waits in vain for one; two do not wait at all.
    let error = pool.check_out_before(Instant::now() + EIGHTH).await.unwrap_err();
    assert!(error.is_timeout());
    assert!(pool.check_out_before(Instant::now()).await.unwrap_err().is_timeout());
    assert!(pool.try_check_out().unwrap().is_none());
    drop(second); // After two.
    assert_eq!(
        readings.take(),
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
    let lines = readings.take();
    assert!(lines.contains(&format!("use_time s {POOL}: 3 in 0.75 s")), "{lines:?}");
}

async fn take(pool: Pool<Gate>) -> cenote_tokio::PooledConnection<Gate> {
    pool.check_out().await.expect("a connection")
}

/// Two pools of one server on one meter: each has its own figures, until it is gone.
#[tokio::test(start_paused = true)]
async fn pools_with_names() {
    let readings = Readings::new();
    let make = |name: &str, max| {
        let metrics = readings.metrics().pool_name(name);
        let pool = builder(&Gate::open(), at_most(max)).metrics(metrics).build().unwrap();
        pool.ready();
        pool
    };
    let (orders, users) = (make("orders", 0), make("users", 5));
    orders.warm_up(3).await.unwrap();
    let held = users.check_out().await.unwrap();
    let lines = readings.take();
    let of = |name: &str| -> Vec<&str> {
        let part = format!(" pool.name={name}");
        let numbers = ["count", "idle.max", "max"];
        let chosen = lines.iter().filter(|line| line.contains(&part));
        let chosen = chosen.filter(|line| numbers.contains(&line.split(' ').next().unwrap()));
        chosen.map(|line| line.split_once(&part).unwrap().1).collect()
    };
    assert_eq!(of("orders"), [" state=idle: 3", " state=used: 0"], "there is no maximum");
    assert_eq!(of("users"), [" state=idle: 0", " state=used: 1", ": 5", ": 5"]);

    drop(orders);
    settle().await;
    let lines = readings.take();
    let counts: Vec<_> = lines.iter().filter(|line| line.starts_with("count ")).collect();
    assert_eq!(counts.len(), 2, "those of the other one: {lines:?}");
    drop(held);
}

/// A client measures each of its pools, under its own name and the server's.
#[tokio::test]
async fn pools_of_a_client() {
    let readings = Readings::new();
    let client = Client::builder("mongodb://127.0.0.1:1,127.0.0.1:2/?maxPoolSize=7").unwrap();
    let client = client.metrics(readings.metrics().pool_name("orders")).build().unwrap();
    let lines = readings.take();
    let limits: Vec<_> = lines.iter().filter(|line| line.starts_with("max ")).collect();
    let expected =
        ["1", "2"].map(|port| format!("max {{connection}} pool.name=orders/127.0.0.1:{port}: 7"));
    assert_eq!(limits, expected.iter().collect::<Vec<_>>());
    client.close().await;
}

/// What never comes back, and what fails, is forgotten.
#[tokio::test(start_paused = true)]
async fn failures_are_no_successes() {
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
    let lines = readings.take();
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
