//! The lock, and what is done after it is released.

mod properties;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::Stage;
use cenote_core::pool::{ConnId, Input};

use super::failure_counts::FailureCounts;
use super::inner::PoolInner;
use super::runtime_handle::RuntimeHandle;
use super::types::{InputContext, Types};
use crate::builder::Measured;
use crate::connection::Connector;
use crate::event::Subscribers;
use crate::failure::FailureHandler;
use crate::pool::leak::{LeakCallback, LeakDetector};
use crate::runtime::origin::Origin;
use crate::runtime::signal::{Signal, Wakers};
use crate::runtime::wake_list::WakeList;
use crate::runtime::{Lock, Runtime};
use crate::spans::CheckOutSpans;
use crate::trace::{PanicGuard, Traces};

/// One pool: the machine under its lock, and the shell around it.
///
/// [`Pool`](super::Pool) is its handle. Shells with a face of their own, such as a blocking one, use the
/// driver directly: they [request](Self::request) a connection and wait for the answer as they like.
///
/// ```no_run
/// use std::panic::Location;
/// use std::sync::Arc;
/// use std::task::Waker;
///
/// use cenote_core::error::PoolError;
/// use cenote_core::pool::Purpose;
/// use cenote_shell::connection::Connector;
/// use cenote_shell::pool::{PoolDriver, PooledConnection, Until};
/// use cenote_shell::runtime::Runtime;
///
/// /// A connection that is there at once, without waiting for one.
/// fn available<R: Runtime<Waiter = Waker>, K: Connector<R>>(
///     driver: &Arc<PoolDriver<R, K>>,
/// ) -> Option<Result<PooledConnection<R, K>, PoolError>> {
///     let (mut until, caller) = (Until::Deadline(None), Location::caller());
///     match driver.request(&mut until, Purpose::Other, caller, || Waker::noop().clone()) {
///         Ok(answer) => Some(driver.guard(answer, caller)),
///         Err(key) => {
///             driver.abandon(key);
///             None
///         }
///     }
/// }
/// ```
pub struct PoolDriver<R: Runtime, K: Connector<R>> {
    pub(super) address: Arc<ServerAddress>,
    connector: K,
    pub(super) runtime: RuntimeHandle<R>,
    /// The machine's zero.
    pub(super) origin: std::time::Instant,
    pub(super) subscribers: Subscribers,
    pub(super) failure_handler: Option<FailureHandler>,
    pub(super) leak_detector: LeakDetector,
    pub(super) failures: FailureCounts,
    /// Since when the pool is watched, in nanoseconds of its clock; `u64::MAX` while it is not.
    pub(super) watched_since: AtomicU64,
    pub(super) traces: Traces,
    measured: Measured,
    pub(super) spans: CheckOutSpans,
    pub(super) timeout: Option<Duration>,
    /// In nanoseconds.
    pub(super) min_round_trip: AtomicU64,
    pub(super) drained: Signal<R::Mutex<Wakers>>,
    inner: R::Mutex<PoolInner<R, K>>,
}

/// Holds the pool's lock.
pub(super) type InnerGuard<'a, R, K> =
    <<R as Runtime>::Mutex<PoolInner<R, K>> as Lock<PoolInner<R, K>>>::Guard<'a>;

/// Callbacks and traces of a pool.
pub(super) struct Observers {
    pub(super) subscribers: Subscribers,
    pub(super) failure_handler: Option<FailureHandler>,
    pub(super) leak_callback: Option<LeakCallback>,
    pub(super) traces: Traces,
    pub(super) measured: Measured,
}

/// Feeding the machine.
impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    pub(super) fn new(
        address: ServerAddress,
        connector: K,
        timeout: Option<Duration>,
        observers: Observers,
        runtime: R,
        origin: Origin,
        inner: PoolInner<R, K>,
    ) -> Arc<Self> {
        let Observers { subscribers, failure_handler, leak_callback, traces, measured } = observers;
        Arc::new(Self {
            address: Arc::new(address),
            connector,
            runtime: RuntimeHandle::new(runtime),
            origin: origin.at,
            subscribers,
            failure_handler,
            leak_detector: LeakDetector::new(inner.state.options(), leak_callback),
            failures: FailureCounts::default(),
            watched_since: AtomicU64::new(u64::MAX),
            traces,
            measured,
            spans: CheckOutSpans::default(),
            timeout: timeout.filter(|timeout| !timeout.is_zero()),
            min_round_trip: AtomicU64::new(0),
            drained: Signal::default(),
            inner: Lock::new(inner),
        })
    }

    pub(super) fn is_recording(&self) -> bool {
        self.lock().state.is_recording()
    }

    /// Records to which stage an establishment has come, or that a connection `failed` in it, and by which step of the
    /// client its server became another.
    pub(super) fn record_stage(&self, id: ConnId, stage: Stage, failed: Option<u64>) {
        let mut inner = self.lock();
        match failed {
            None => inner.state.enter_stage(self.now(), id, stage),
            Some(step) => inner.state.fail_in_stage(self.now(), id, stage, step),
        }
        inner.state.call_writer_if_full();
    }

    /// Feeds one input, and does what follows from it.
    pub fn feed(self: &Arc<Self>, input: Input<Types<R, K>>) {
        self.feed_locked(self.lock(), input);
    }

    /// As [`feed`](Self::feed), for a caller that holds the lock. Releases it.
    pub(super) fn feed_locked(
        self: &Arc<Self>,
        inner: InnerGuard<'_, R, K>,
        input: Input<Types<R, K>>,
    ) {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        // A recording has the time of everything but check-outs that are served at once.
        let is_timed = matches!(input, Input::SetOptions { .. }) || inner.state.is_recording();
        let context = self.context(&inner, is_timed);
        let mut wakes = WakeList::default();
        self.handle(&mut inner, context, input, &mut wakes);
        panic_guard.defuse();
        self.release_and_run(inner, context, wakes);
    }

    /// Has the machine handle an input, and notes for the inspector what a clear has done.
    #[inline(always)]
    fn handle(
        &self,
        inner: &mut PoolInner<R, K>,
        context: InputContext,
        input: Input<Types<R, K>>,
        wakes: &mut WakeList<R::Waiter>,
    ) {
        let clear = inner.before_clear(&input);
        inner.handle(context.now, input, context.wants_events, wakes);
        if let Some(before) = clear {
            inner.after_clear(&before, self.now());
        }
    }

    /// Feeds one input while the caller holds a lock of its own, so that a server's description and its pool change at
    /// once. What follows waits until that lock is released: for [`run_pending_work`](Self::run_pending_work), and then
    /// for [`tell_pending`](Self::tell_pending). A recording has the step of the client that it follows, and the time.
    pub(crate) fn feed_within(&self, input: Input<Types<R, K>>, follows: Option<u64>) {
        let panic_guard = PanicGuard::new(self);
        let mut inner = self.lock(); // Released before the guard is dropped.
        let context = self.context(&inner, inner.state.is_recording());
        if let Some(step) = follows {
            inner.state.follow(step);
        }
        let mut wakes = std::mem::take(&mut inner.pending.wakes);
        self.handle(&mut inner, context, input, &mut wakes);
        inner.pending.wakes = wakes;
        drop(inner);
        panic_guard.defuse();
    }

    /// Wakes callers, and opens, interrupts and closes sockets, unless another thread does so already.
    pub(crate) fn run_pending_work(self: &Arc<Self>) {
        let mut inner = self.lock();
        let wakes = std::mem::take(&mut inner.pending.wakes);
        let context = self.context(&inner, true);
        let timer = self.prepare_release(&mut inner, context);
        let (work, is_failing) = (inner.pending.work.claim(), !inner.pending.failing.is_empty());
        drop(inner);
        if is_failing {
            self.fail_in_turns();
        }
        self.run_work(wakes, timer, work);
    }

    /// Tells subscribers, which may take long, unless another thread does so already: those of a pool that is closed to the
    /// end, because its server may have another one next.
    pub(crate) fn tell_pending(self: &Arc<Self>) {
        let mut inner = self.lock();
        let (is_closed, notifications) = (inner.is_closed(), inner.pending.notifications.claim());
        drop(inner);
        match notifications {
            Some(last) if is_closed => drop(self.notify_some(usize::MAX, last)),
            notifications => self.run_notifications(notifications),
        }
    }

    /// Whether an event has a subscriber, or is logged.
    #[inline(always)]
    pub(super) fn wants_events(&self) -> bool {
        self.subscribers.want_events()
    }

    // WQ-02, PS-03
    #[inline]
    pub(super) fn lock(&self) -> InnerGuard<'_, R, K> {
        self.inner.lock()
    }

    pub(super) fn try_lock(&self) -> Option<InnerGuard<'_, R, K>> {
        self.inner.try_lock()
    }
}

impl<R: Runtime, K: Connector<R>> fmt::Debug for PoolDriver<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolDriver").field("address", &self.address).finish_non_exhaustive()
    }
}
