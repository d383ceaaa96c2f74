//! OpenTelemetry metrics of a scripted run: exact counts, and durations between the shortest time that is
//! possible and the time that the test took.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use cenote_shell::metrics::Metrics;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Metric, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

use crate::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::world::{Gate, at_most, builder, failure, until};

on_all_runtimes!(
    every_metric_of_a_run,
    pools_with_names,
    pools_of_a_client,
    failed_connections_are_not_measured,
);

/// The prefix of all names.
const PREFIX: &str = "db.client.connection.";

/// A provider whose metrics are read when the test asks.
pub(crate) struct Readings {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

/// Counts and sums by name and attributes; histograms as a number and seconds.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    numbers: BTreeMap<String, i64>,
    times: BTreeMap<String, (u64, f64)>,
}

impl Readings {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone());
        let reader = reader.with_interval(Duration::from_secs(3600)).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), exporter }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::new(self.provider.meter("test"))
    }

    pub(crate) fn take(&self) -> Figures {
        self.exporter.reset();
        self.provider.force_flush().expect("it is read");
        let all = self.exporter.get_finished_metrics().expect("they are there");
        let mut figures = Figures::default();
        let scopes = all.iter().flat_map(ResourceMetrics::scope_metrics);
        scopes.flat_map(ScopeMetrics::metrics).for_each(|metric| figures.add(metric));
        figures
    }
}

impl Figures {
    fn add(&mut self, metric: &Metric) {
        let name = metric.name().strip_prefix(PREFIX).expect("all begin so");
        let name = format!("{name} {}", metric.unit());
        match metric.data() {
            AggregatedMetrics::I64(MetricData::Sum(sum)) => {
                assert!(!sum.is_monotonic(), "{name} goes up and down");
                let points = sum.data_points();
                let points = points.map(|it| (keyed(&name, it.attributes()), it.value()));
                self.numbers.extend(points);
            }
            AggregatedMetrics::U64(MetricData::Sum(sum)) => {
                assert!(sum.is_monotonic(), "{name} is a counter");
                let points = sum.data_points();
                let value = |value: u64| i64::try_from(value).expect("a few");
                self.numbers
                    .extend(points.map(|it| (keyed(&name, it.attributes()), value(it.value()))));
            }
            AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                for it in histogram.data_points() {
                    let bounds: Vec<_> = it.bounds().collect();
                    assert_eq!(bounds, [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0]);
                    self.times.insert(keyed(&name, it.attributes()), (it.count(), it.sum()));
                }
            }
            other @ (AggregatedMetrics::F64(_)
            | AggregatedMetrics::U64(_)
            | AggregatedMetrics::I64(_)) => panic!("{name}: {other:?}"),
        }
    }

    /// A line for each metric, sorted.
    pub(crate) fn lines(&self) -> Vec<String> {
        let times =
            self.times.iter().map(|(name, (count, sum))| format!("{name}: {count} in {sum} s"));
        let mut lines: Vec<_> = self.numbers().into_iter().chain(times).collect();
        lines.sort();
        lines
    }

    fn numbers(&self) -> Vec<String> {
        self.numbers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    /// Checks the count of a histogram, and that its sum is between `least` and `most`.
    fn time(&self, name: &str, count: u64, least: Duration, most: Duration) {
        let (counted, seconds) = self.times.get(name).copied().unwrap_or_default();
        assert_eq!(counted, count, "{name}");
        let is_possible = (least.as_secs_f64()..=most.as_secs_f64()).contains(&seconds);
        assert!(is_possible, "{name}: {seconds} s, not {least:?} to {most:?}");
    }
}

fn keyed<'a>(name: &str, attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let word = |it: &KeyValue| {
        let key = it.key.as_str().strip_prefix(PREFIX).expect("all begin so");
        format!("{key}={}", it.value)
    };
    let mut words: Vec<_> = attributes.map(word).collect();
    words.sort();
    format!("{name} {}", words.join(" "))
}

fn every_metric_of_a_run<R: TestRuntime>() {
    const POOL: &str = "pool.name=db.example.com:27017";
    let pause = Duration::from_millis(20);
    let readings = Readings::new();
    let gate = Gate::closed();
    let options = at_most(1).with_min_pool_size(1).with_max_connecting(1);
    let pool =
        builder::<R>(&gate, options).metrics(readings.metrics()).build().expect("good options");
    let began = Instant::now();
    pool.ready();
    // A check-out waits for the connection that minPoolSize asks for.
    let first = thread::scope(|scope| {
        let first = scope.spawn(|| pool.check_out().expect("a connection"));
        until(|| pool.snapshot().waiting == 1);
        until(|| {
            let figures = readings.take();
            figures.numbers.get(&format!("pending_requests {{request}} {POOL}")) == Some(&1)
        });
        // One times out before the connection is there.
        assert!(pool.check_out_before(Instant::now() + pause).expect_err("it fails").is_timeout());
        gate.admit(1);
        first.join().expect("no panic")
    });
    // Two do not wait.
    assert!(pool.check_out_before(Instant::now()).expect_err("it fails").is_timeout());
    assert!(pool.try_check_out().expect("a connection").is_none());
    // A caller may go on before the events that led there are reported.
    let out = format!("count {{connection}} {POOL} state=used");
    until(|| {
        let figures = readings.take();
        figures.times.contains_key(&format!("wait_time s {POOL}"))
            && figures.numbers.get(&out) == Some(&1)
    });
    let figures = readings.take();
    assert_eq!(
        figures.numbers(),
        [
            format!("count {{connection}} {POOL} state=idle: 0"),
            format!("count {{connection}} {POOL} state=used: 1"),
            format!("idle.max {{connection}} {POOL}: 1"),
            format!("idle.min {{connection}} {POOL}: 1"),
            format!("max {{connection}} {POOL}: 1"),
            format!("pending_requests {{request}} {POOL}: 0"),
            format!("timeouts {{timeout}} {POOL}: 1"),
        ]
    );
    figures.time(&format!("create_time s {POOL}"), 1, pause, began.elapsed());
    figures.time(&format!("wait_time s {POOL}"), 1, pause, began.elapsed());
    figures.time(&format!("use_time s {POOL}"), 0, Duration::ZERO, Duration::ZERO);
    assert!(pool.check_out_before(Instant::now() + pause).expect_err("it fails").is_timeout());
    drop(first);
    until(|| readings.take().times.contains_key(&format!("use_time s {POOL}")));
    let figures = readings.take();
    figures.time(&format!("use_time s {POOL}"), 1, pause, began.elapsed());
}

/// Two pools of one server on one meter: each has its own figures, until it is gone.
fn pools_with_names<R: TestRuntime>() {
    let readings = Readings::new();
    let make = |name: &str, max| {
        let metrics = readings.metrics().pool_name(name);
        let pool = builder::<R>(&Gate::open(), at_most(max))
            .metrics(metrics)
            .build()
            .expect("good options");
        pool.ready();
        pool
    };
    let (orders, users) = (make("orders", 0), make("users", 5));
    orders.warm_up(3).expect("a warm pool");
    let held = users.check_out().expect("a connection");
    let of = |name: &str| {
        let part = format!(" pool.name={name}");
        let figures = readings.take().numbers();
        let chosen = figures.into_iter().filter(|line| line.contains(&part));
        let chosen = chosen
            .filter(|it| ["count ", "idle.max ", "max "].iter().any(|name| it.starts_with(name)));
        chosen
            .map(|line| line.split_once(&part).expect("it works").1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("orders"), [" state=idle: 3", " state=used: 0"], "there is no maximum");
    assert_eq!(of("users"), [" state=idle: 0", " state=used: 1", ": 5", ": 5"]);
    orders.close();
    drop(orders);
    until(|| of("orders").is_empty());
    drop(held);
}

/// Their names are the given name and the server's address.
fn pools_of_a_client<R: TestRuntime>() {
    let readings = Readings::new();
    let metrics = readings.metrics().pool_name("orders");
    let close = R::client("mongodb://127.0.0.1:1,127.0.0.1:2/?maxPoolSize=7", metrics);
    let figures = readings.take().numbers();
    let limits: Vec<_> = figures.iter().filter(|line| line.starts_with("max ")).collect();
    let expected =
        ["1", "2"].map(|port| format!("max {{connection}} pool.name=orders/127.0.0.1:{port}: 7"));
    assert_eq!(limits, expected.iter().collect::<Vec<_>>());
    close();
}

/// What never comes back, and what fails, is forgotten.
fn failed_connections_are_not_measured<R: TestRuntime>() {
    const POOL: &str = "pool.name=db.example.com:27017";
    let readings = Readings::new();
    let gate = Gate::open();
    gate.refuse(1);
    let pool =
        builder::<R>(&gate, at_most(1)).metrics(readings.metrics()).build().expect("good options");
    let began = Instant::now();
    assert!(pool.check_out().is_err(), "it is paused");
    pool.ready();
    assert!(pool.check_out().is_err(), "it is refused");
    let mut broken = pool.check_out().expect("a connection");
    broken.mark_errored(failure());
    drop(broken);
    until(|| readings.take().times.contains_key(&format!("use_time s {POOL}")));
    let figures = readings.take();
    for name in ["create_time", "wait_time", "use_time"] {
        figures.time(&format!("{name} s {POOL}"), 1, Duration::ZERO, began.elapsed());
    }
    assert_eq!(figures.numbers[&format!("pending_requests {{request}} {POOL}")], 0);
    assert!(!figures.numbers.contains_key(&format!("timeouts {{timeout}} {POOL}")));
}
