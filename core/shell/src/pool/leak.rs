//! Leak detection: connections that are checked out for long, and where they were checked out.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::pool::{ConnId, PoolOptions, WaiterId};

use crate::log;
use crate::runtime::contain;

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

/// Remembers where connections were checked out, while leak detection is on, or the pool is watched.
pub struct LeakDetector {
    /// Changed while `state` is locked.
    is_on: AtomicBool,
    state: Mutex<State>,
    callback: Option<LeakCallback>,
}

#[derive(Default)]
struct State {
    is_detecting: bool,
    is_watched: bool,
    /// By the slot of the connection, which costs no allocation for a check-out.
    holders: Vec<Option<(ConnId, Holder)>>,
}

impl State {
    fn slot(&mut self, id: ConnId) -> Option<&mut Option<(ConnId, Holder)>> {
        self.holders.get_mut(id.slot() as usize)
    }
}

/// The caller that has checked a connection out.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The call in the application that checked it out.
    pub place: &'static Location<'static>,
    /// The number of its request, if that had to wait.
    pub request: Option<WaiterId>,
    /// When.
    pub since: Instant,
}

impl LeakDetector {
    /// A detector that is on if `options` say so, and reports to `callback`.
    pub fn new(options: &PoolOptions, callback: Option<LeakCallback>) -> Self {
        let detector = Self { is_on: AtomicBool::default(), state: Mutex::default(), callback };
        detector.set_options(options);
        detector
    }

    /// Switches detection on or off as these options say.
    pub fn set_options(&self, options: &PoolOptions) {
        self.change(|state| state.is_detecting = is_detecting(options));
    }

    /// While the pool is watched, places are remembered whatever the options say.
    pub fn set_watched(&self, is_watched: bool) {
        self.change(|state| state.is_watched = is_watched);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        self.is_on.store(state.is_detecting || state.is_watched, Ordering::Relaxed);
    }

    /// The callers that are known.
    pub fn holders(&self) -> BTreeMap<ConnId, Holder> {
        self.state().holders.iter().flatten().copied().collect()
    }

    /// Sets the [default](DEFAULT_LEAK_DETECTION_THRESHOLD) threshold if there is a callback, and none is set.
    #[must_use]
    pub fn with_default_threshold(&self, options: PoolOptions) -> PoolOptions {
        with_default_threshold(options, self.callback.as_ref())
    }

    /// Notes where a connection is checked out, and by which request if it had to wait, if detection is on.
    /// Returns whether it was noted, and so has to be [forgotten](Self::forget).
    #[inline(always)]
    pub fn note(
        &self,
        id: ConnId,
        place: &'static Location<'static>,
        request: Option<WaiterId>,
        clock: fn() -> Instant,
    ) -> bool {
        let is_on = self.is_on.load(Ordering::Relaxed);
        if is_on {
            self.insert(id, Holder { place, request, since: clock() });
        }
        is_on
    }

    #[inline(never)]
    fn insert(&self, id: ConnId, holder: Holder) {
        let mut state = self.state();
        let slots = id.slot() as usize + 1;
        if state.holders.len() < slots {
            state.holders.resize(slots, None);
        }
        if let Some(slot) = state.slot(id) {
            *slot = Some((id, holder));
        }
    }

    /// The connection was checked in.
    pub fn forget(&self, id: ConnId) {
        if let Some(slot) = self.state().slot(id) {
            // A later connection may have the slot already.
            slot.take_if(|(holding, _)| *holding == id);
        }
    }

    /// Logs a warning and calls the callback: what to do with
    /// [`Action::ReportLeak`](cenote_core::pool::Action::ReportLeak), without a lock.
    pub fn report(&self, address: &Arc<ServerAddress>, id: ConnId, held: Duration) {
        let holder = self.state().slot(id).copied().flatten().filter(|(holding, _)| *holding == id);
        let place = holder.map(|(_, holder)| holder.place);
        log::leak(address, id.number(), held, place);
        if let Some(callback) = &self.callback {
            let (address, connection_id) = (Arc::clone(address), id.number());
            let report = LeakReport { address, connection_id, held, place };
            // A panic of the callback must not keep the pool from what comes next.
            contain(|| callback(&report));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
