//! Spans of check-outs and establishments: exactly in virtual time, with `tracing` alone; and on real sockets with
//! OpenTelemetry, in the trace of a caller that uses its API.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::PoolOptions;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_mio::EventLoop;
use cenote_shell::builder::Builder as PoolBuilder;
use cenote_shell::connection::MongoConnector;
use cenote_shell::runtime::Network;
use cenote_smol::Smol;
use cenote_test_runtimes::alone;
use cenote_tokio::{Builder, Connector, HandshakeReporter, Pool, Target, Tokio};
use opentelemetry::trace::{SpanId, TraceContextExt, TraceId, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracer, SdkTracerProvider, SpanData};
use tokio::time::{Instant, sleep};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Instrument, Metadata, Subscriber, info_span};
use tracing_subscriber::layer::SubscriberExt;

use crate::pool::blocking::{TestPool, TestRuntime};

const EIGHTH: Duration = Duration::from_millis(125);

/// A line for each span, when it ends: the names of its parents and its own, how long it took, and its fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Collected>>);

#[derive(Default)]
struct Collected {
    spans: Vec<Collecting>,
    entered: Vec<usize>,
    lines: Vec<String>,
}

struct Collecting {
    path: String,
    since: Instant,
    fields: BTreeMap<&'static str, String>,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().expect("no panic")
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().lines)
    }
}

fn index(id: &Id) -> usize {
    usize::try_from(id.into_u64()).expect("a few") - 1
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && ["cenote::spans", "test"].contains(&metadata.target())
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut all = self.lock();
        let current = attributes.is_contextual().then(|| all.entered.last().copied()).flatten();
        let parent = attributes.parent().map(index).or(current);
        let parent = parent.map(|parent| format!("{} > ", all.spans[parent].path));
        let path = format!("{}{}", parent.unwrap_or_default(), attributes.metadata().name());
        let mut span = Collecting { path, since: Instant::now(), fields: BTreeMap::new() };
        attributes.record(&mut span);
        all.spans.push(span);
        Id::from_u64(u64::try_from(all.spans.len()).expect("a few"))
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        values.record(&mut self.lock().spans[index(id)]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.lock().entered.push(index(id));
    }

    fn exit(&self, _: &Id) {
        self.lock().entered.pop();
    }

    /// The spans of pools have one handle each.
    fn try_close(&self, id: Id) -> bool {
        let mut all = self.lock();
        let span = &all.spans[index(&id)];
        let fields = span.fields.iter().filter(|(name, _)| !name.starts_with("server."));
        let fields: String = fields.map(|(name, value)| format!(" {name}={value}")).collect();
        let line = format!("{}: {:?}{fields}", span.path, span.since.elapsed());
        all.lines.push(line);
        true
    }
}

impl Visit for Collecting {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Opens connections in three eighths: one for the name, two for hello. The fourth is refused.
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
        sleep(EIGHTH * 2).await;
        match target.connection_id {
            4 => Err(ConnectionError::network(Stage::Hello, "refused by the test")),
            _ => Ok(()),
        }
    }
}

fn staged(options: PoolOptions) -> Pool<Staged> {
    let address = "db.example.com".parse().expect("an address");
    let pool = Builder::new(address, Staged).replace_options(options).build();
    let pool: Pool<Staged> = pool.expect("good options");
    pool.ready();
    pool
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_a_span_that_explains_it() {
    let lines = Lines::default();
    let collects = tracing::subscriber::set_default(lines.clone());
    let pool = staged(PoolOptions::default().with_max_pool_size(2).with_max_connecting(1));

    // For a connection that is opened for it, in the caller's span.
    let request = info_span!(target: "test", "request");
    let first = pool.check_out().instrument(request).await.expect("a connection");
    assert_eq!(
        lines.take(),
        [
            "request > check out > establish > name resolution: 125ms",
            "request > check out > establish > hello: 250ms",
            "request > check out > establish: 375ms cenote.background=false cenote.connection=1",
            "request > check out: 375ms cenote.connection=1 cenote.outcome=connection \
             cenote.request=w1 cenote.waits_for=establishment",
            "request: 375ms",
        ]
    );

    // Not at all.
    drop(first);
    let first = pool.check_out().await.expect("a connection");
    assert!(lines.take().is_empty(), "there is no wait");

    // For its own connection, and for one that comes back.
    let back = async {
        sleep(EIGHTH * 4).await;
        drop(first);
    };
    let (second, third, ()) = tokio::join!(check_out(&pool), check_out(&pool), back);
    assert_eq!(
        lines.take(),
        [
            "check out > establish > name resolution: 125ms",
            "check out > establish > hello: 250ms",
            "check out > establish: 375ms cenote.background=false cenote.connection=2",
            "check out: 375ms cenote.connection=2 cenote.outcome=connection cenote.request=w3 \
             cenote.waits_for=establishment",
            "check out: 500ms cenote.connection=1 cenote.outcome=connection cenote.request=w4 \
             cenote.waits_for=maxPoolSize",
        ]
    );

    // In vain.
    let until = Instant::now() + EIGHTH;
    assert!(pool.check_out_before(until).await.expect_err("it fails").is_timeout());
    assert!(tokio::time::timeout(EIGHTH, pool.check_out()).await.is_err());
    assert!(pool.try_check_out().expect("it is ready").is_none());
    assert_eq!(
        lines.take(),
        [
            "check out: 125ms cenote.outcome=timeout cenote.request=w5 \
             cenote.waits_for=maxPoolSize error.message=Timed out while checking out a connection \
             from connection pool otel.status_code=ERROR",
            "check out: 125ms cenote.outcome=cancelled cenote.request=w6 \
             cenote.waits_for=maxPoolSize",
        ]
    );
    drop((second, third));
    drop(collects);
}

async fn check_out(pool: &Pool<Staged>) -> cenote_tokio::PooledConnection<Staged> {
    pool.check_out().await.expect("a connection")
}

#[tokio::test(start_paused = true)]
async fn establishments_in_the_background_are_roots_and_failures_say_why() {
    let lines = Lines::default();
    let collects = tracing::subscriber::set_default(lines.clone());
    let options = PoolOptions::default().with_max_pool_size(4).with_min_pool_size(2);
    let pool = staged(options.with_max_connecting(1));
    sleep(EIGHTH * 7).await;
    let mut expected = Vec::new();
    for connection in [1, 2] {
        expected.extend([
            "establish > name resolution: 125ms".to_owned(),
            "establish > hello: 250ms".to_owned(),
            format!("establish: 375ms cenote.background=true cenote.connection={connection}"),
        ]);
    }
    assert_eq!(lines.take(), expected);

    let held = [check_out(&pool).await, check_out(&pool).await, check_out(&pool).await];
    lines.take();
    assert!(pool.check_out().await.is_err(), "the fourth connection is refused");
    let error =
        "error.message=hello: refused by the test error.type=network otel.status_code=ERROR";
    let taken = lines.take();
    assert_eq!(
        taken[1..3],
        [
            "check out > establish > hello: 250ms error.type=network otel.status_code=ERROR"
                .to_owned(),
            format!(
                "check out > establish: 375ms cenote.background=false cenote.connection=4 {error}"
            ),
        ]
    );
    assert!(taken[3].starts_with("check out: 375ms cenote.outcome=connectionError"), "{taken:?}");

    // Aborted in the middle of hello, by a clear.
    let cleared = async {
        sleep(EIGHTH * 2).await;
        pool.clear(ConnectionError::network(Stage::Operation, "by the test"), true);
    };
    let (failed, ()) = tokio::join!(pool.check_out(), cleared);
    assert!(failed.is_err(), "the pool is cleared");
    sleep(EIGHTH).await;
    let taken = lines.take();
    let aborted = "error.type=aborted otel.status_code=ERROR";
    assert!(
        taken.contains(&format!("check out > establish > hello: 125ms {aborted}")),
        "{taken:?}"
    );
    drop(held);
    drop(collects);
}

/// Whatever it is asked for.
struct Panics;

impl Subscriber for Panics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cenote::spans"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        if attributes.metadata().name() == "hello" {
            resume_unwind(Box::new("on purpose"));
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        resume_unwind(Box::new("on purpose"));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn try_close(&self, _: Id) -> bool {
        resume_unwind(Box::new("on purpose"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_panics_costs_no_connection() {
    let collects = tracing::subscriber::set_default(Panics);
    let pool = staged(PoolOptions::default().with_max_pool_size(1));
    let held = pool.check_out().await.expect("a connection");
    assert!(pool.check_out_before(Instant::now() + EIGHTH).await.is_err(), "it is held");
    drop(held);
    drop(pool.check_out().await.expect("a connection"));
    drop(collects);
}

/// OpenTelemetry for the whole process.
fn telemetry() -> &'static (SdkTracer, InMemorySpanExporter) {
    static TELEMETRY: OnceLock<(SdkTracer, InMemorySpanExporter)> = OnceLock::new();
    TELEMETRY.get_or_init(|| {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let tracer = provider.tracer("test");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer.clone());
        let collector = tracing_subscriber::registry().with(layer);
        tracing::subscriber::set_global_default(collector).expect("the only one");
        (tracer, exporter)
    })
}

/// A slow server with TLS and authentication.
fn server() -> Endpoint {
    let settings =
        Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).expect("it starts");
    let slow = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": "alwaysOn",
        "data": { "failCommands": ["hello", "isMaster"], "blockConnection": true, "blockTimeMS": 20 },
    };
    endpoint.with(|server, _| server.set_fail_point(&slow)).expect("a fail point");
    endpoint
}

/// What the caller's trace has after a check-out that opened a connection.
fn check_trace(trace: TraceId, request: SpanId, server: &Endpoint) {
    let (_, exporter) = telemetry();
    let spans = exporter.get_finished_spans().expect("they are there");
    let spans: Vec<_> =
        spans.into_iter().filter(|span| span.span_context.trace_id() == trace).collect();
    let children = |parent: SpanId| -> Vec<&SpanData> {
        spans.iter().filter(|span| span.parent_span_id == parent).collect()
    };
    let [check_out] = children(request)[..] else { panic!("{spans:?}") };
    let [establish] = children(check_out.span_context.span_id())[..] else { panic!("{spans:?}") };
    let stages = children(establish.span_context.span_id());
    let names = [check_out, establish].map(|span| span.name.as_ref());
    assert_eq!(names, ["check out", "establish"]);
    let names: Vec<_> = stages.iter().map(|stage| stage.name.as_ref()).collect();
    let expected = ["name resolution", "connect", "TLS handshake", "hello", "authentication"];
    assert_eq!(names, expected);
    let hello = stages[3];
    let took = hello.end_time.duration_since(hello.start_time).expect("forwards");
    assert!(took >= Duration::from_millis(20), "{took:?}");
    assert_eq!(spans.len(), 8, "{spans:?}");
    for attribute in [
        KeyValue::new("server.address", "localhost"),
        KeyValue::new("server.port", i64::from(server.address().port().expect("TCP"))),
        KeyValue::new("cenote.request", "w1"),
        KeyValue::new("cenote.waits_for", "establishment"),
        KeyValue::new("cenote.outcome", "connection"),
        KeyValue::new("cenote.connection", 1_i64),
    ] {
        assert!(check_out.attributes.contains(&attribute), "{attribute:?} {check_out:?}");
    }
}

fn begin() -> (Context, TraceId, SpanId) {
    let context = Context::new().with_span(telemetry().0.start("request"));
    let ids = context.span().span_context().clone();
    (context, ids.trace_id(), ids.span_id())
}

#[test]
fn a_trace_of_opentelemetry_has_them() {
    alone(|| {
        has_them::<Tokio>();
        has_them::<EventLoop>();
        has_them::<Smol>();
    });
}

fn has_them<R: TestRuntime + Network>() {
    let (context, trace, request) = begin();
    let server = server();
    let uri = server.uri().replace("127.0.0.1", "localhost");
    let builder = PoolBuilder::<R::Pool<MongoConnector<R>>>::from_uri(&uri).expect("good");
    let pool = builder.build().expect("good options");
    pool.ready();
    let attached = context.clone().attach();
    drop(pool.check_out().expect("a connection"));
    drop(attached);
    context.span().end();
    check_trace(trace, request, &server);
    pool.close();
}
