//! Leak detection: connections that are checked out for long, and where they were checked out.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{ConnId, PoolOptions};

use crate::log;

/// How long a connection may be checked out before it is reported, where a pool has a
/// [callback for leaks](crate::builder::Builder::on_leak) and its options set no
/// [threshold](PoolOptions::leak_detection_threshold): 60 seconds.
pub const DEFAULT_LEAK_DETECTION_THRESHOLD: Duration = Duration::from_secs(60);

/// A connection that has been checked out for the
/// [`leak_detection_threshold`](PoolOptions::leak_detection_threshold): possibly a leak.
///
/// `Display` is one line about all of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeakReport {
    /// The server that the pool is for.
    pub address: Arc<ServerAddress>,
    /// The number of the connection, as in events: 1, 2, 3, …
    pub connection_id: u64,
    /// How long it has been checked out.
    pub held: Duration,
    /// The call in the application that checked it out. `None` while the caller has not taken it over from the
    /// pool, because its task is not polled any more, and when it was checked out before the option was set.
    pub place: Option<&'static Location<'static>>,
}

/// The callback of [`Builder::on_leak`](crate::builder::Builder::on_leak).
pub type LeakCallback = Box<dyn Fn(&LeakReport) + Send + Sync>;

/// Remembers where connections were checked out, while leak detection is on.
pub struct LeakDetector {
    is_on: AtomicBool,
    places: Mutex<BTreeMap<ConnId, &'static Location<'static>>>,
    callback: Option<LeakCallback>,
}

impl LeakDetector {
    /// A detector that is on if `options` say so, and reports to `callback`.
    pub fn new(options: &PoolOptions, callback: Option<LeakCallback>) -> Self {
        let is_on = AtomicBool::new(is_detecting(options));
        Self { is_on, places: Mutex::default(), callback }
    }

    /// Switches detection on or off as these options say.
    pub fn set_options(&self, options: &PoolOptions) {
        self.is_on.store(is_detecting(options), Ordering::Relaxed);
    }

    /// Sets the [default](DEFAULT_LEAK_DETECTION_THRESHOLD) threshold if there is a callback, and none is set.
    #[must_use]
    pub fn with_default_threshold(&self, options: PoolOptions) -> PoolOptions {
        with_default_threshold(options, self.callback.as_ref())
    }

    /// Notes where a connection is checked out, if detection is on. Returns whether it was noted, and so has to
    /// be [forgotten](Self::forget).
    #[inline(always)]
    pub fn note(&self, id: ConnId, place: &'static Location<'static>) -> bool {
        let is_on = self.is_on.load(Ordering::Relaxed);
        if is_on {
            self.insert(id, place);
        }
        is_on
    }

    #[inline(never)]
    fn insert(&self, id: ConnId, place: &'static Location<'static>) {
        self.places().insert(id, place);
    }

    /// The connection was checked in.
    pub fn forget(&self, id: ConnId) {
        self.places().remove(&id);
    }

    /// Logs a warning and calls the callback: what to do with
    /// [`Action::ReportLeak`](cenote_core::pool::Action::ReportLeak), without a lock.
    pub fn report(&self, address: &Arc<ServerAddress>, id: ConnId, held: Duration) {
        let place = self.places().get(&id).copied();
        let (address, connection_id) = (Arc::clone(address), id.number());
        let report = LeakReport { address, connection_id, held, place };
        log::leak(&report);
        if let Some(callback) = &self.callback {
            // A panic of the callback must not keep the pool from what comes next.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(&report)));
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<ConnId, &'static Location<'static>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A callback without a threshold would never be called.
pub(crate) fn with_default_threshold(
    options: PoolOptions,
    callback: Option<&LeakCallback>,
) -> PoolOptions {
    match (options.leak_detection_threshold, callback) {
        (None, Some(_)) => options.with_leak_detection_threshold(DEFAULT_LEAK_DETECTION_THRESHOLD),
        _ => options,
    }
}

fn is_detecting(options: &PoolOptions) -> bool {
    options.leak_detection_threshold.is_some_and(|limit| !limit.is_zero())
}

impl fmt::Display for LeakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, connection_id, held, place } = self;
        write!(f, "connection {connection_id} of {address} has been checked out for {held:?}, ")?;
        match place {
            Some(place) => write!(f, "at {place}"),
            None => f.write_str("at an unknown place"),
        }
    }
}

impl fmt::Debug for LeakDetector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeakDetector").field("is_on", &self.is_on).finish_non_exhaustive()
    }
}
