//! OpenTelemetry metrics on each runtime: exact counts, and stages against the mock server. Durations are exact in
//! `only_tokio`, where time is virtual.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use cenote_shell::metrics::Metrics;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Metric, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{
    InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality,
};

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_endpoint::{Endpoint, Fault, ListenOptions, Script, Settings, User};
use cenote_shell::builder::Builder;
use cenote_shell::connection::MongoConnector;
use cenote_shell::runtime::Network;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, builder, failure, until};

on_all_runtimes!(
    pools_with_names,
    pools_of_a_client,
    what_became_of_connections,
    stages_of_an_establishment,
    a_stage_that_fails,
);

/// OpenTelemetry's prefix, which is left out of the names; ours is `cenote.connection.`, and is not.
const PREFIX: &str = "db.client.connection.";

/// A provider whose metrics are read when the test asks, on its own thread: elsewhere its clock does not stand still.
pub(crate) struct Readings {
    provider: SdkMeterProvider,
    reader: Reader,
}

#[derive(Clone, Debug)]
struct Reader(Arc<ManualReader>);

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

/// Counts and sums by name and attributes; histograms as a number and seconds; times that run as seconds.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    numbers: BTreeMap<String, i64>,
    times: BTreeMap<String, (u64, f64)>,
    ages: BTreeMap<String, f64>,
    /// Counters that have counted nothing, which are not among the numbers.
    zeros: Vec<String>,
}

impl Readings {
    pub(crate) fn new() -> Self {
        let reader = Reader(Arc::new(ManualReader::builder().build()));
        let provider = SdkMeterProvider::builder().with_reader(reader.clone()).build();
        Self { provider, reader }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::new(self.provider.meter("test"))
    }

    pub(crate) fn take(&self) -> Figures {
        let mut all = ResourceMetrics::default();
        self.reader.collect(&mut all).expect("it is read");
        let mut figures = Figures::default();
        let scopes = all.scope_metrics();
        scopes.flat_map(ScopeMetrics::metrics).for_each(|metric| figures.add(metric));
        figures
    }
}

impl Figures {
    fn add(&mut self, metric: &Metric) {
        let name = format!("{} {}", without_prefix(metric.name()), metric.unit());
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
                for (name, value) in points.map(|it| (keyed(&name, it.attributes()), it.value())) {
                    match i64::try_from(value).expect("a few") {
                        0 => self.zeros.push(name),
                        value => drop(self.numbers.insert(name, value)),
                    }
                }
            }
            AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                for it in histogram.data_points() {
                    let bounds: Vec<_> = it.bounds().collect();
                    assert_eq!(bounds, [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0]);
                    self.times.insert(keyed(&name, it.attributes()), (it.count(), it.sum()));
                }
            }
            AggregatedMetrics::F64(MetricData::Gauge(gauge)) => {
                let points = gauge.data_points();
                self.ages.extend(points.map(|it| (keyed(&name, it.attributes()), it.value())));
            }
            other @ (AggregatedMetrics::F64(_)
            | AggregatedMetrics::U64(_)
            | AggregatedMetrics::I64(_)) => panic!("{name}: {other:?}"),
        }
    }

    /// The counters that have counted nothing, sorted.
    pub(crate) fn zeros(mut self) -> Vec<String> {
        self.zeros.sort();
        self.zeros
    }

    /// A line for each metric, sorted.
    pub(crate) fn lines(&self) -> Vec<String> {
        let times =
            self.times.iter().map(|(name, (count, sum))| format!("{name}: {count} in {sum} s"));
        let ages = self.ages.iter().map(|(name, seconds)| format!("{name}: {seconds} s"));
        let mut lines: Vec<_> = self.numbers().into_iter().chain(times).chain(ages).collect();
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

fn without_prefix(name: &str) -> &str {
    assert!(name.starts_with(PREFIX) || name.starts_with("cenote.connection."), "{name}");
    name.strip_prefix(PREFIX).unwrap_or(name)
}

fn keyed<'a>(name: &str, attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let word = |it: &KeyValue| match it.key.as_str() {
        key @ "error.type" => format!("{key}={}", it.value),
        key => format!("{}={}", without_prefix(key), it.value),
    };
    let mut words: Vec<_> = attributes.map(word).collect();
    words.sort();
    format!("{name} {}", words.join(" "))
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

/// By why they were closed, and how often the pool was cleared; how long a request waits, and a connection is out.
fn what_became_of_connections<R: TestRuntime>() {
    const POOL: &str = "pool.name=db.example.com:27017";
    let readings = Readings::new();
    let gate = Gate::closed();
    let options = at_most(2).with_max_connecting(1);
    let pool =
        builder::<R>(&gate, options).metrics(readings.metrics()).build().expect("good options");
    pool.ready();
    thread::scope(|scope| {
        let waits = scope.spawn(|| pool.check_out().expect("a connection"));
        let pending = format!("cenote.connection.pending {{connection}} {POOL}");
        until(|| readings.take().numbers[&pending] == 1);
        let oldest_wait = format!("cenote.connection.oldest_wait s {POOL}");
        until(|| readings.take().ages[&oldest_wait] >= 0.02);
        gate.admit(1);
        let held = waits.join().expect("no panic");
        let figures = readings.take();
        assert_eq!((figures.numbers[&pending], figures.ages[&oldest_wait]), (0, 0.0));
        let oldest_use = format!("cenote.connection.oldest_use s {POOL}");
        until(|| readings.take().ages[&oldest_use] >= 0.02);
        drop(held);
        until(|| readings.take().ages[&oldest_use] == 0.0);
    });
    gate.admit(3);
    let mut broken = pool.check_out().expect("a connection");
    broken.mark_errored(failure());
    drop(broken);
    drop(pool.check_out().expect("a connection"));
    pool.clear(ConnectionError::network(Stage::Operation, "by the test"), false);
    pool.ready();
    let interrupted = pool.check_out().expect("a connection");
    pool.clear(ConnectionError::network(Stage::Operation, "by the test"), true);
    drop(interrupted);
    pool.ready();
    gate.admit(1);
    drop(pool.check_out().expect("a connection"));
    pool.close();
    let expected = [
        format!("cenote.connection.clears {{clear}} cenote.connection.interrupt=false {POOL}: 1"),
        format!("cenote.connection.clears {{clear}} cenote.connection.interrupt=true {POOL}: 1"),
        format!(
            "cenote.connection.closed {{connection}} cenote.connection.close_reason=error {POOL}: 2"
        ),
        format!(
            "cenote.connection.closed {{connection}} cenote.connection.close_reason=poolClosed \
             {POOL}: 1"
        ),
        format!(
            "cenote.connection.closed {{connection}} cenote.connection.close_reason=stale {POOL}: 1"
        ),
        format!("cenote.connection.created {{connection}} {POOL}: 4"),
        format!("cenote.connection.pending {{connection}} {POOL}: 0"),
    ];
    until(|| {
        let mut lines = readings.take().numbers();
        lines.retain(|line| line.starts_with("cenote."));
        lines == expected
    });
    let figures = readings.take();
    let count = |name| figures.times[&format!("{name} s {POOL}")].0;
    assert_eq!(["create_time", "wait_time", "use_time"].map(count), [4, 5, 5]);
}

/// Each is slow in the endpoint where the endpoint can be slow, and takes at least that long here.
fn stages_of_an_establishment<R: TestRuntime + Network>() {
    let pause = Duration::from_millis(20);
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).expect("it starts");
    let slow = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": "alwaysOn",
        "data": {
            "failCommands": ["hello", "isMaster", "saslContinue"],
            "blockConnection": true,
            "blockTimeMS": 20,
        },
    };
    endpoint.with(|server, _| server.set_fail_point(&slow)).expect("a fail point");
    let readings = Readings::new();
    let began = Instant::now();
    // By name, so that the name is resolved.
    let uri = endpoint.uri().replace("127.0.0.1", "localhost");
    let pool = pool_of::<R>(&uri, &readings);
    drop(pool.check_out().expect("a connection"));
    let least = |stage| match stage {
        "hello" | "authentication" => pause,
        _ => Duration::ZERO,
    };
    let figures = readings.take();
    for stage in ["dns", "tcp", "tls", "hello", "authentication"] {
        let name = stage_time(stage, &uri, "");
        figures.time(&name, 1, least(stage), began.elapsed());
    }
    let stages = figures.times.keys().filter(|name| name.starts_with("cenote.")).count();
    assert_eq!(stages, 5, "{figures:?}");
    pool.close();
}

/// It has the error's kind; the stages before it went well, and those after it never came.
fn a_stage_that_fails<R: TestRuntime + Network>() {
    let mut scripts = vec![Script::new(Fault::Reset).at_command("isMaster", 0)];
    scripts[0].connections = 1..=1;
    let settings = Settings { scripts, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let readings = Readings::new();
    let pool = pool_of::<R>(&endpoint.uri(), &readings);
    let began = Instant::now();
    assert!(pool.check_out().is_err(), "it is reset");
    let figures = readings.take();
    let stages: Vec<_> = figures.times.keys().filter(|it| it.starts_with("cenote.")).collect();
    let failed = stage_time("hello", &endpoint.uri(), " error.type=network");
    let connected = stage_time("tcp", &endpoint.uri(), "");
    assert_eq!(stages, [&failed, &connected]);
    figures.time(&failed, 1, Duration::ZERO, began.elapsed());
    pool.close();
}

fn pool_of<R: TestRuntime + Network>(uri: &str, readings: &Readings) -> R::Pool<MongoConnector<R>> {
    let builder = Builder::<R::Pool<MongoConnector<R>>>::from_uri(uri).expect("it can be read");
    let pool = builder.metrics(readings.metrics()).build().expect("good options");
    pool.ready();
    pool
}

/// The name of the durations of a stage in [`Figures`].
fn stage_time(stage: &str, uri: &str, error: &str) -> String {
    let uri: cenote_core::uri::ConnectionString = uri.parse().expect("a connection string");
    let address = &uri.hosts[0];
    let stage = format!("cenote.connection.stage={stage}{error}");
    format!("cenote.connection.stage_time s {stage} pool.name={address}")
}
