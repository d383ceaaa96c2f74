//! What an inspector shows of a pool: counts, connections and requests, as documents. `docs/run.md` says what
//! each field means.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bson::raw::cstr;
use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};
use cenote_core::pool::{
    ConnectionInfo, ConnectionState, Instant, Purpose, Snapshot, WaiterInfo, WaitsFor,
};

use super::clear_report::ClearReport;
use super::driver::PoolDriver;
use super::inner::PoolInner;
use crate::connection::Connector;
use crate::inspect::{InspectedPool, RecordingEnded};
use crate::pool::leak::Holder;
use crate::runtime::Runtime;
use crate::trace::{self, RecordingError};

/// How many idle connections are listed at most, how many others, and how many requests.
const IDLE_MAX: usize = 100;
const BUSY_MAX: usize = 500;
const REQUESTS_MAX: usize = 500;

/// Copied under the pool's lock.
struct Counts {
    now: Instant,
    snapshot: Snapshot,
    check_outs: u64,
    clears: u64,
    /// Since when the request waits that has waited longest.
    oldest: Option<Instant>,
    has_flight_recorder: bool,
    is_recorded: bool,
}

/// Copied under the pool's lock, too: the connections and requests.
struct Lists {
    busy: Vec<ConnectionInfo>,
    idle: Vec<ConnectionInfo>,
    requests: Vec<WaiterInfo>,
    last_clear: Option<ClearReport>,
    /// Whether the clock is read for every check-out.
    are_check_outs_timed: bool,
    /// From then on the clock is read for every request that waits.
    requests_timed_from: Instant,
}

impl<R: Runtime, K: Connector<R>> InspectedPool for PoolDriver<R, K> {
    fn begin(&self) {
        self.failures.keeps_last.store(true, Ordering::Relaxed);
        self.lock().is_inspected = true;
    }

    fn set_watched(&self, is_watched: bool) {
        self.leak_detector().set_watched(is_watched);
        let since = if is_watched { self.now().as_nanos() } else { u64::MAX };
        self.watched_since.store(since, Ordering::Relaxed);
    }

    fn summary(&self) -> RawDocumentBuf {
        let counts = Counts::of(&self.lock(), self.now());
        self.describe(&counts)
    }

    fn detail(&self) -> RawDocumentBuf {
        let watched_since = self.watched_since.load(Ordering::Relaxed);
        let (counts, lists, clock) = {
            let inner = self.lock();
            let lists = Lists::of(&inner, self.wants_events(), watched_since);
            (Counts::of(&inner, self.now()), lists, R::now())
        };
        let holders = self.leak_detector().holders();
        let (mut connections, mut requests) = (RawArrayBuf::new(), RawArrayBuf::new());
        for connection in lists.busy.iter().chain(&lists.idle) {
            let holder = holders.get(&connection.id);
            let held = holder.map(|holder| clock.saturating_duration_since(holder.since));
            connections.push(describe_connection(&counts, &lists, connection, holder.zip(held)));
        }
        for request in &lists.requests {
            requests.push(describe_request(&counts, &lists, request));
        }
        let last_failure = self.failures.last().map(|(at, error)| {
            let ago = R::now().saturating_duration_since(at);
            rawdoc! { "agoMS": milliseconds(ago), "text": error.to_string() }
        });
        let mut document = self.describe(&counts);
        document.append(cstr!("connections"), connections);
        document.append(cstr!("requests"), requests);
        let clear = lists.last_clear.as_ref().map(|clear| describe_clear(&counts, clear));
        document.append(cstr!("lastClear"), or_null(clear));
        document.append(cstr!("lastFailure"), or_null(last_failure));
        document
    }

    fn dump_into(&self, folder: &Path) -> Result<PathBuf, RecordingError> {
        trace::dump_into(self, folder)
    }

    fn record_into(self: Arc<Self>, folder: &Path) -> Result<PathBuf, RecordingError> {
        trace::record_into(&self, folder)
    }

    fn end_recording(&self, reply: RecordingEnded) -> bool {
        trace::end_recording(self, reply)
    }
}

impl Counts {
    fn of<R: Runtime, K: Connector<R>>(inner: &PoolInner<R, K>, now: Instant) -> Self {
        let state = &inner.state;
        Self {
            now,
            snapshot: state.snapshot(),
            check_outs: inner.check_outs,
            clears: inner.clears,
            oldest: inner.oldest_request(),
            has_flight_recorder: state.has_flight_recorder(),
            is_recorded: state.is_journaled(),
        }
    }

    fn since(&self, at: Instant) -> f64 {
        milliseconds(self.now.saturating_since(at))
    }
}

impl Lists {
    fn of<R: Runtime, K: Connector<R>>(
        inner: &PoolInner<R, K>,
        wants_events: bool,
        watched_since: u64,
    ) -> Self {
        let state = &inner.state;
        let (mut busy, mut idle) = (Vec::new(), Vec::new());
        for connection in state.connections() {
            let (list, most) = match connection.state {
                ConnectionState::Available => (&mut idle, IDLE_MAX),
                ConnectionState::Pending { .. }
                | ConnectionState::PendingResponse { .. }
                | ConnectionState::Draining { .. }
                | ConnectionState::InUse { .. } => (&mut busy, BUSY_MAX),
            };
            if list.len() < most {
                list.push(connection);
            }
        }
        let are_check_outs_timed =
            wants_events || state.is_journaled() || state.needs_now_at_once();
        let timeout = state.options().wait_queue_timeout;
        let has_timeout = timeout.is_some_and(|timeout| !timeout.is_zero());
        let are_requests_timed = are_check_outs_timed || has_timeout;
        let from = if are_requests_timed { 0 } else { watched_since };
        let requests_timed_from = Instant::from_nanos(from);
        Self {
            busy,
            idle,
            requests: state.waiters().take(REQUESTS_MAX).collect(),
            last_clear: inner.last_clear.clone(),
            are_check_outs_timed,
            requests_timed_from,
        }
    }
}

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// For an inspector, which does not keep the pool alive.
    pub(crate) fn inspected(self: &Arc<Self>) -> Weak<dyn InspectedPool> {
        Arc::downgrade(self) as _
    }

    fn describe(&self, counts: &Counts) -> RawDocumentBuf {
        let Counts { snapshot, .. } = counts;
        let failures = &self.failures;
        let count = |counter: &AtomicU64| integer(counter.load(Ordering::Relaxed));
        rawdoc! {
            "address": self.address().to_string(),
            "status": snapshot.status.to_string(),
            "generation": integer(snapshot.generation),
            "total": i64::from(snapshot.total),
            "inUse": i64::from(snapshot.in_use),
            "idle": i64::from(snapshot.available),
            "pending": i64::from(snapshot.pending),
            "waiting": integer(snapshot.waiting.saturating_add(snapshot.owners)),
            "queued": integer(snapshot.waiting),
            "longestWaitMS": or_null(counts.oldest.map(|at| counts.since(at))),
            "minPoolSize": i64::from(snapshot.min_pool_size),
            "maxPoolSize": or_null(snapshot.max_pool_size.map(i64::from)),
            "maxConnecting": i64::from(snapshot.max_connecting),
            "checkOuts": integer(counts.check_outs),
            "created": integer(snapshot.connections_created),
            "clears": integer(counts.clears),
            "failures": {
                "timeout": count(&failures.timeouts),
                "connectionError": count(&failures.connection_errors),
                "cleared": count(&failures.cleared),
                "closed": count(&failures.closed),
                "rejected": count(&failures.rejected),
            },
            "flightRecorder": counts.has_flight_recorder,
            "recorded": counts.is_recorded,
        }
    }
}

fn describe_connection(
    counts: &Counts,
    lists: &Lists,
    connection: &ConnectionInfo,
    holder: Option<(&Holder, Duration)>,
) -> RawDocumentBuf {
    let (state, owner, purpose) = match connection.state {
        ConnectionState::Pending { owner, .. } => ("pending", owner, None),
        ConnectionState::Available => ("idle", None, None),
        ConnectionState::PendingResponse { .. } => ("pendingResponse", None, None),
        ConnectionState::Draining { owner, .. } => ("draining", owner, None),
        ConnectionState::InUse { purpose, interrupted: false } => ("inUse", None, Some(purpose)),
        ConnectionState::InUse { purpose, interrupted: true } => {
            ("interrupted", None, Some(purpose))
        }
    };
    // The holder of a connection that was not in use has checked it out meanwhile.
    let holder = holder.filter(|_| purpose.is_some());
    let request = owner.or_else(|| holder?.0.request);
    let held = holder.map(|(_, held)| milliseconds(held));
    rawdoc! {
        "connection": integer(connection.id.number()),
        "state": state,
        "forMS": held.unwrap_or_else(|| counts.since(connection.since)),
        "exact": lists.are_check_outs_timed || holder.is_some(),
        "ageMS": counts.since(connection.created),
        "request": or_null(request.map(|request| integer(request.0))),
        "place": or_null(holder.map(|(holder, _)| holder.place.to_string())),
        "purpose": or_null(purpose.map(name)),
        "stale": connection.stale,
        "service": or_null(connection.service.map(|service| service.to_string())),
    }
}

fn describe_request(counts: &Counts, lists: &Lists, request: &WaiterInfo) -> RawDocumentBuf {
    let (waits_for, connection) = match request.waits_for {
        WaitsFor::Establishment(id) => ("establishment", Some(id)),
        WaitsFor::PendingResponse(id) => ("pendingResponse", Some(id)),
        WaitsFor::Connection => ("connection", None),
        WaitsFor::Permit => ("permit", None),
        WaitsFor::Pacing => ("pacing", None),
        _ => ("other", None),
    };
    let left = request.deadline.map(|deadline| deadline.saturating_since(counts.now));
    rawdoc! {
        "request": integer(request.id.0),
        "waitedMS": counts.since(request.started),
        "exact": request.deadline.is_some() || request.started >= lists.requests_timed_from,
        "deadlineInMS": or_null(left.map(milliseconds)),
        "purpose": name(request.purpose),
        "waitsFor": waits_for,
        "connection": or_null(connection.map(|id| integer(id.number()))),
    }
}

fn describe_clear(counts: &Counts, clear: &ClearReport) -> RawDocumentBuf {
    rawdoc! {
        "agoMS": counts.since(clear.at),
        "cause": clear.cause.to_string(),
        "interrupt": clear.interrupt,
        "service": or_null(clear.service.map(|service| service.to_string())),
        "requests": integer(clear.requests),
        "inUse": i64::from(clear.in_use),
        "idle": i64::from(clear.idle),
        "pending": i64::from(clear.pending),
    }
}

const fn name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Cursor => "cursor",
        Purpose::Transaction => "transaction",
        Purpose::Other | _ => "other",
    }
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// With three decimals.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn or_null(value: Option<impl Into<RawBson>>) -> RawBson {
    value.map_or(RawBson::Null, Into::into)
}
