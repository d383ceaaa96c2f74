//! OpenTelemetry's metrics of a connection pool, by its semantic conventions for database clients, and a few for
//! which those have no name (feature `metrics`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutFailedReason, CloseReason, Event, Snapshot};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Counter, Histogram, Meter};

use crate::event::Subscriber;

/// In seconds: what the conventions advise for the duration of operations.
const BOUNDARIES: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

const POOL_NAME: &str = "db.client.connection.pool.name";
const STATE: &str = "db.client.connection.state";
const CONNECTIONS: &str = "{connection}";

/// Attributes of ours.
const CLOSE_REASON: &str = "cenote.connection.close_reason";
const INTERRUPT: &str = "cenote.connection.interrupt";
const STAGE: &str = "cenote.connection.stage";
/// One of OpenTelemetry's.
const ERROR_TYPE: &str = "error.type";

/// Which meter a pool's metrics go to, and under which name (feature `metrics`).
///
/// For [`Builder::metrics`](crate::builder::Builder::metrics).
#[derive(Clone)]
pub struct Metrics {
    meter: Meter,
    pool_name: Option<String>,
}

impl Metrics {
    /// With this meter, and the server's address as the name of the pool: `host:port`, or the path of
    /// the socket.
    #[must_use]
    pub fn new(meter: Meter) -> Self {
        Self { meter, pool_name: None }
    }

    /// With another name for `db.client.connection.pool.name`. It should be the only one of this name
    /// in the application: two pools of the same server need it.
    #[must_use]
    pub fn pool_name(mut self, name: impl Into<String>) -> Self {
        self.pool_name = Some(name.into());
        self
    }

    /// The same for one of several pools: a name that was given comes before the address, so that
    /// two clients of the same servers can be told apart.
    #[must_use]
    pub fn of_one(&self, address: &ServerAddress) -> Self {
        let pool_name = self.pool_name.as_ref().map(|name| format!("{name}/{address}"));
        Self { meter: self.meter.clone(), pool_name }
    }

    fn recorder(&self, address: &ServerAddress, clock: fn() -> Instant) -> Arc<Recorder> {
        let name = self.pool_name.clone().unwrap_or_else(|| address.to_string());
        Arc::new(Recorder::new(&self.meter, KeyValue::new(POOL_NAME, name), clock))
    }

    /// Has the figures of `recorder`'s pool looked up whenever the meter's reader asks.
    fn observe(&self, recorder: &Arc<Recorder>, pool: &Weak<dyn Observed>) {
        let [name] = &recorder.name;
        let idle = [name.clone(), KeyValue::new(STATE, "idle")];
        let used = [name.clone(), KeyValue::new(STATE, "used")];
        self.meter
            .i64_observable_up_down_counter("db.client.connection.count")
            .with_unit(CONNECTIONS)
            .with_description("Connections by what they do: those that are being opened do neither")
            .with_callback(looking(pool, move |pool, observer| {
                let snapshot = pool.snapshot();
                observer.observe(snapshot.available.into(), &idle);
                observer.observe(snapshot.in_use.into(), &used);
            }))
            .build();
        let most = "maxPoolSize, if there is one";
        // A pool has no other limit for what is idle than that for everything.
        self.count(name, "db.client.connection.idle.max", most, pool, |it| it.max_pool_size);
        self.count(name, "db.client.connection.idle.min", "minPoolSize", pool, |it| {
            Some(it.min_pool_size)
        });
        self.count(name, "db.client.connection.max", most, pool, |it| it.max_pool_size);
        let pending = "Connections that are being opened";
        self.count(name, "cenote.connection.pending", pending, pool, |it| Some(it.pending));
        self.observe_ages(recorder, pool);
        let recorder = Arc::clone(recorder);
        self.meter
            .i64_observable_up_down_counter("db.client.connection.pending_requests")
            .with_unit("{request}")
            .with_description(
                "Requests that have no connection yet, queued or having theirs opened",
            )
            .with_callback(looking(pool, move |_, observer| {
                observer.observe(recorder.pending.load(Ordering::Relaxed), &recorder.name);
            }))
            .build();
    }

    fn observe_ages(&self, recorder: &Arc<Recorder>, pool: &Weak<dyn Observed>) {
        let seconds = |name: &'static str, description: &'static str| {
            let gauge = self.meter.f64_observable_gauge(name);
            gauge.with_unit("s").with_description(description)
        };
        let name = recorder.name.clone();
        let description = "How long the oldest request without a connection has waited by now";
        seconds("cenote.connection.oldest_wait", description)
            .with_callback(looking(pool, move |pool, observer| {
                observer.observe(pool.oldest_wait().as_secs_f64(), &name);
            }))
            .build();
        let recorder = Arc::clone(recorder);
        let description = "How long the oldest connection in use has been checked out by now";
        seconds("cenote.connection.oldest_use", description)
            .with_callback(looking(pool, move |_, observer| {
                observer.observe(recorder.oldest_use().as_secs_f64(), &recorder.name);
            }))
            .build();
    }

    fn count(
        &self,
        name: &KeyValue,
        instrument: &'static str,
        description: &'static str,
        pool: &Weak<dyn Observed>,
        count: impl Fn(&Snapshot) -> Option<u32> + Send + Sync + 'static,
    ) {
        let name = [name.clone()];
        self.meter
            .i64_observable_up_down_counter(instrument)
            .with_unit(CONNECTIONS)
            .with_description(description)
            .with_callback(looking(pool, move |pool, observer| {
                if let Some(count) = count(&pool.snapshot()) {
                    observer.observe(count.into(), &name);
                }
            }))
            .build();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("pool_name", &self.pool_name).finish_non_exhaustive()
    }
}

/// A pool that is measured, once for each meter that it was given.
#[derive(Debug)]
pub(crate) struct Measured(Vec<(Metrics, Arc<Recorder>)>);

impl Measured {
    /// Has every event recorded from now on.
    pub(crate) fn begin(
        metrics: Vec<Metrics>,
        address: &ServerAddress,
        clock: fn() -> Instant,
        subscribers: &mut Vec<Subscriber>,
    ) -> Self {
        let begin = |metrics: Metrics| {
            let recorder = metrics.recorder(address, clock);
            recorder.begin_counters();
            let told = Arc::clone(&recorder);
            subscribers.push(Box::new(move |event| told.record(&event.event)));
            (metrics, recorder)
        };
        Self(metrics.into_iter().map(begin).collect())
    }

    /// Has the figures of the pool looked up for as long as it is there.
    pub(crate) fn observe(&self, pool: &Weak<dyn Observed>) {
        for (metrics, recorder) in &self.0 {
            metrics.observe(recorder, pool);
        }
    }

    /// Whether there is no meter.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A stage of an establishment has ended: well, or with this `error.type`.
    pub(crate) fn stage(&self, stage: &'static str, took: Duration, error: Option<&'static str>) {
        for (_, recorder) in &self.0 {
            let error = error.map(|error| KeyValue::new(ERROR_TYPE, error));
            let attributes = recorder.with([KeyValue::new(STAGE, stage)].into_iter().chain(error));
            recorder.stage_time.record(took.as_secs_f64(), &attributes);
        }
    }
}

/// What is looked up whenever a meter's reader asks.
pub(crate) trait Observed: Send + Sync {
    /// The state and the counts.
    fn snapshot(&self) -> Snapshot;

    /// How long the oldest request without an outcome has waited; zero if there is none.
    fn oldest_wait(&self) -> Duration;
}

/// What is measured when it happens.
struct Recorder {
    clock: fn() -> Instant,
    name: [KeyValue; 1],
    create_time: Histogram<f64>,
    wait_time: Histogram<f64>,
    use_time: Histogram<f64>,
    timeouts: Counter<u64>,
    created: Counter<u64>,
    closed: Counter<u64>,
    clears: Counter<u64>,
    stage_time: Histogram<f64>,
    /// Requests that have not had their outcome.
    pending: AtomicI64,
    /// Since when connections are out, by their number.
    out: Mutex<BTreeMap<u64, Instant>>,
}

impl Recorder {
    fn new(meter: &Meter, name: KeyValue, clock: fn() -> Instant) -> Self {
        let seconds = |name: &'static str, description: &'static str| {
            meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(description)
                .with_boundaries(BOUNDARIES.to_vec())
                .build()
        };
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        Self {
            clock,
            name: [name],
            create_time: seconds(
                "db.client.connection.create_time",
                "From the creation of a connection until it is ready",
            ),
            wait_time: seconds(
                "db.client.connection.wait_time",
                "From a request until it has its connection",
            ),
            use_time: seconds(
                "db.client.connection.use_time",
                "From the check-out of a connection until it comes back",
            ),
            timeouts: counter(
                "db.client.connection.timeouts",
                "{timeout}",
                "Requests that waited in vain until their time was over",
            ),
            created: counter(
                "cenote.connection.created",
                CONNECTIONS,
                "Connections whose opening has begun",
            ),
            closed: counter(
                "cenote.connection.closed",
                CONNECTIONS,
                "Connections by why they were closed",
            ),
            clears: counter(
                "cenote.connection.clears",
                "{clear}",
                "How often the pool was cleared",
            ),
            stage_time: seconds(
                "cenote.connection.stage_time",
                "How long the stages of opening a connection take",
            ),
            pending: AtomicI64::new(0),
            out: Mutex::default(),
        }
    }

    /// Counters exist from the start on, with 0: rates miss the step from nothing to 1.
    fn begin_counters(&self) {
        self.timeouts.add(0, &self.name);
        self.created.add(0, &self.name);
        for reason in
            [CloseReason::Error, CloseReason::Stale, CloseReason::Idle, CloseReason::PoolClosed]
        {
            self.count_closed(reason, 0);
        }
        self.count_clears(false, 0);
        self.count_clears(true, 0);
    }

    fn count_closed(&self, reason: CloseReason, count: u64) {
        self.closed.add(count, &self.with([KeyValue::new(CLOSE_REASON, reason.as_str())]));
    }

    fn count_clears(&self, interrupt: bool, count: u64) {
        self.clears.add(count, &self.with([KeyValue::new(INTERRUPT, interrupt)]));
    }

    /// Is told every event, one at a time and in order.
    fn record(&self, event: &Event<ConnectionError>) {
        match event {
            Event::ConnectionReady { duration, .. } => {
                self.create_time.record(duration.as_secs_f64(), &self.name);
            }
            Event::ConnectionCheckOutStarted { .. } => {
                self.pending.fetch_add(1, Ordering::Relaxed);
            }
            Event::ConnectionCheckedOut { connection_id, duration, .. } => {
                self.pending.fetch_sub(1, Ordering::Relaxed);
                self.wait_time.record(duration.get().as_secs_f64(), &self.name);
                self.out().insert(*connection_id, (self.clock)());
            }
            Event::ConnectionCheckOutFailed { error, duration, .. } => {
                self.pending.fetch_sub(1, Ordering::Relaxed);
                // A check-out that does not wait, as with `try_check_out`, does not count as a timeout.
                if error.reason() == CheckOutFailedReason::Timeout && !duration.get().is_zero() {
                    self.timeouts.add(1, &self.name);
                }
            }
            Event::ConnectionCheckedIn { connection_id } => {
                let since = self.out().remove(connection_id);
                if let Some(since) = since {
                    let held = (self.clock)().saturating_duration_since(since);
                    self.use_time.record(held.as_secs_f64(), &self.name);
                }
            }
            Event::ConnectionCreated { .. } => self.created.add(1, &self.name),
            Event::ConnectionClosed { connection_id, reason, .. } => {
                // After a fork, what the parent has out is closed without coming back.
                self.out().remove(connection_id);
                self.count_closed(*reason, 1);
            }
            Event::ConnectionPoolCleared { interrupt_in_use_connections, .. } => {
                self.count_clears(*interrupt_in_use_connections, 1);
            }
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolReady
            | Event::ConnectionPoolClosed
            | _ => {}
        }
    }

    /// The pool's name and more attributes.
    fn with(&self, more: impl IntoIterator<Item = KeyValue>) -> Vec<KeyValue> {
        self.name.iter().cloned().chain(more).collect()
    }

    fn oldest_use(&self) -> Duration {
        let oldest = self.out().values().min().copied();
        oldest.map(|since| (self.clock)().saturating_duration_since(since)).unwrap_or_default()
    }

    fn out(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The callback of an instrument, for as long as the pool is there.
fn looking<T: 'static>(
    pool: &Weak<dyn Observed>,
    observe: impl Fn(&dyn Observed, &dyn AsyncInstrument<T>) + Send + Sync + 'static,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
    let pool = Weak::clone(pool);
    move |observer| {
        if let Some(pool) = pool.upgrade() {
            observe(&*pool, observer);
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("name", &self.name).finish_non_exhaustive()
    }
}
