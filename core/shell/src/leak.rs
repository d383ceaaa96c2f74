//! Connections that are held for long, and who holds them.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{ConnId, PoolOptions};

use crate::log;

/// A connection that has been checked out for as long as
/// [`leak_detection_threshold`](PoolOptions::leak_detection_threshold) says, as `Builder::on_leak` shows it: perhaps
/// it leaks.
///
/// `Display` is one line about all of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeakReport {
    /// The server that the pool is for.
    pub address: Arc<ServerAddress>,
    /// The number of the connection, as in events: 1, 2, 3, …
    pub connection_id: u64,
    /// For how long it has been out.
    pub held: Duration,
    /// Where it was checked out: the call of `Pool::check_out`, or whichever it was, in the
    /// application. `None` when nobody has taken it over from the pool yet, which is when the task that
    /// asked for it is not polled any more, or when it was checked out before the option was set.
    pub place: Option<&'static Location<'static>>,
}

/// Who is shown what is held for long.
pub type LeakCallback = Box<dyn Fn(&LeakReport) + Send + Sync>;

/// Where connections were checked out, as long as anybody wants to know.
pub struct LeakDetector {
    is_wanted: AtomicBool,
    places: Mutex<BTreeMap<ConnId, &'static Location<'static>>>,
    overseer: Option<LeakCallback>,
}

impl LeakDetector {
    /// As `options` say, and `overseer` is shown what is found.
    pub fn new(options: &PoolOptions, overseer: Option<LeakCallback>) -> Self {
        let is_wanted = AtomicBool::new(wants_places(options));
        Self { is_wanted, places: Mutex::default(), overseer }
    }

    /// From now on as these say.
    pub fn set_options(&self, options: &PoolOptions) {
        self.is_wanted.store(wants_places(options), Ordering::Relaxed);
    }

    /// Notes where a connection is checked out, if anybody wants to know. Says whether it was noted,
    /// and so has to be [forgotten](Self::forget).
    #[inline]
    pub fn note(&self, id: ConnId, place: &'static Location<'static>) -> bool {
        let is_wanted = self.is_wanted.load(Ordering::Relaxed);
        if is_wanted {
            self.places().insert(id, place);
        }
        is_wanted
    }

    /// It came back.
    pub fn forget(&self, id: ConnId) {
        self.places().remove(&id);
    }

    /// Warns, and shows whoever wants to see: what to do with
    /// [`Action::ReportLeak`](cenote_core::pool::Action::ReportLeak), without a lock.
    pub fn report(&self, address: &Arc<ServerAddress>, id: ConnId, held: Duration) {
        let place = self.places().get(&id).copied();
        let (address, connection_id) = (Arc::clone(address), id.number());
        let report = LeakReport { address, connection_id, held, place };
        log::leak_detection_threshold(&report);
        if let Some(overseer) = &self.overseer {
            // One that panics has said so; what comes next is not to suffer.
            let _ = catch_unwind(AssertUnwindSafe(|| overseer(&report)));
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<ConnId, &'static Location<'static>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wants_places(options: &PoolOptions) -> bool {
    options.leak_detection_threshold.is_some_and(|limit| !limit.is_zero())
}

impl fmt::Display for LeakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, connection_id, held, place } = self;
        write!(f, "connection {connection_id} of {address} has been checked out for {held:?}, ")?;
        match place {
            Some(place) => write!(f, "at {place}"),
            None => f.write_str("nobody knows where"),
        }
    }
}

impl fmt::Debug for LeakDetector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeakDetector").field("is_wanted", &self.is_wanted).finish_non_exhaustive()
    }
}
