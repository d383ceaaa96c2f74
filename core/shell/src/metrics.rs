//! OpenTelemetry's metrics of a connection pool, by its semantic conventions for database clients
//! (feature `metrics`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutFailedReason, Event, Snapshot};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Counter, Histogram, Meter};

use crate::event::Subscriber;

/// In seconds: what the conventions advise for the duration of operations.
const BOUNDARIES: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

const POOL_NAME: &str = "db.client.connection.pool.name";
const STATE: &str = "db.client.connection.state";
const CONNECTIONS: &str = "{connection}";

/// Which meter a pool's metrics go to, and under which name (feature `metrics`).
///
/// A shell has a pool measured by [`PoolPlan::measure`](crate::builder::PoolPlan::measure).
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

    /// Has the counts of `recorder`'s pool looked up with `look` whenever the meter's reader asks.
    fn observe(
        &self,
        recorder: &Arc<Recorder>,
        look: impl Fn() -> Option<Snapshot> + Clone + Send + Sync + 'static,
    ) {
        let (meter, [name]) = (&self.meter, &recorder.name);
        let idle = [name.clone(), KeyValue::new(STATE, "idle")];
        let used = [name.clone(), KeyValue::new(STATE, "used")];
        meter
            .i64_observable_up_down_counter("db.client.connection.count")
            .with_unit(CONNECTIONS)
            .with_description("Connections by what they do: those that are being opened do neither")
            .with_callback(looking(&look, move |snapshot, observer| {
                observer.observe(snapshot.available.into(), &idle);
                observer.observe(snapshot.in_use.into(), &used);
            }))
            .build();
        let most = "maxPoolSize, if there is one";
        // A pool has no other limit for what is idle than that for everything.
        self.limit(name, "db.client.connection.idle.max", most, &look, |it| it.max_pool_size);
        self.limit(name, "db.client.connection.idle.min", "minPoolSize", &look, |it| {
            Some(it.min_pool_size)
        });
        self.limit(name, "db.client.connection.max", most, &look, |it| it.max_pool_size);
        let recorder = Arc::clone(recorder);
        meter
            .i64_observable_up_down_counter("db.client.connection.pending_requests")
            .with_unit("{request}")
            .with_description(
                "Requests that have no connection yet, queued or having theirs opened",
            )
            .with_callback(looking(&look, move |_, observer| {
                observer.observe(recorder.pending.load(Ordering::Relaxed), &recorder.name);
            }))
            .build();
    }

    fn limit(
        &self,
        name: &KeyValue,
        instrument: &'static str,
        description: &'static str,
        look: &(impl Fn() -> Option<Snapshot> + Clone + Send + Sync + 'static),
        limit: impl Fn(&Snapshot) -> Option<u32> + Send + Sync + 'static,
    ) {
        let name = [name.clone()];
        self.meter
            .i64_observable_up_down_counter(instrument)
            .with_unit(CONNECTIONS)
            .with_description(description)
            .with_callback(looking(look, move |snapshot, observer| {
                if let Some(limit) = limit(&snapshot) {
                    observer.observe(limit.into(), &name);
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
            let told = Arc::clone(&recorder);
            subscribers.push(Box::new(move |event| told.record(&event.event)));
            (metrics, recorder)
        };
        Self(metrics.into_iter().map(begin).collect())
    }

    /// Has the counts of the pool looked up with `look`.
    pub(crate) fn observe(
        &self,
        look: impl Fn() -> Option<Snapshot> + Clone + Send + Sync + 'static,
    ) {
        for (metrics, recorder) in &self.0 {
            metrics.observe(recorder, look.clone());
        }
    }
}

/// What is measured when it happens.
struct Recorder {
    clock: fn() -> Instant,
    name: [KeyValue; 1],
    create_time: Histogram<f64>,
    wait_time: Histogram<f64>,
    use_time: Histogram<f64>,
    timeouts: Counter<u64>,
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
            timeouts: meter
                .u64_counter("db.client.connection.timeouts")
                .with_unit("{timeout}")
                .with_description("Requests that waited in vain until their time was over")
                .build(),
            pending: AtomicI64::new(0),
            out: Mutex::default(),
        }
    }

    /// Is told every event, one at a time and in order.
    fn record(&self, event: &Event<ConnectionError>) {
        match event {
            Event::ConnectionReady { duration, .. } => {
                self.create_time.record(duration.as_secs_f64(), &self.name);
            }
            Event::ConnectionCheckOutStarted => {
                self.pending.fetch_add(1, Ordering::Relaxed);
            }
            Event::ConnectionCheckedOut { connection_id, duration } => {
                self.pending.fetch_sub(1, Ordering::Relaxed);
                self.wait_time.record(duration.as_secs_f64(), &self.name);
                self.out().insert(*connection_id, (self.clock)());
            }
            Event::ConnectionCheckOutFailed { error, duration } => {
                self.pending.fetch_sub(1, Ordering::Relaxed);
                // A check-out that does not wait, as with `try_check_out`, does not count as a timeout.
                if error.reason() == CheckOutFailedReason::Timeout && !duration.is_zero() {
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
            // After a fork, what the parent has out is closed without coming back.
            Event::ConnectionClosed { connection_id, .. } => {
                self.out().remove(connection_id);
            }
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolReady
            | Event::ConnectionPoolCleared { .. }
            | Event::ConnectionPoolClosed
            | Event::ConnectionCreated { .. }
            | _ => {}
        }
    }

    fn out(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn looking(
    look: &(impl Fn() -> Option<Snapshot> + Clone + Send + Sync + 'static),
    observe: impl Fn(Snapshot, &dyn AsyncInstrument<i64>) + Send + Sync + 'static,
) -> impl Fn(&dyn AsyncInstrument<i64>) + Send + Sync + 'static {
    let look = look.clone();
    move |observer| {
        if let Some(snapshot) = look() {
            observe(snapshot, observer);
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("name", &self.name).finish_non_exhaustive()
    }
}
