//! The lock, and what is done after it is released.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError, Wait};
use cenote_core::outbox;
use cenote_core::pool::{
    Action, ConnId, Input, Instant, InvalidOptions, PoolOptions, Snapshot, WaiterId,
};

use super::failure_counts::FailureCounts;
use super::guard::PooledConnection;
use super::inner::{ConnectionTask, PoolInner, TaskKey};
use super::runtime_handle::RuntimeHandle;
use super::types::{CheckOutResult, Delivery, FailedCheckOut, Types};
use super::{drain, establish};
use crate::builder::Measured;
use crate::connection::Connector;
use crate::event::{Notification, Subscribers};
use crate::failure::{DeferredEffects, FailureHandler};
use crate::interrupt::Interrupt;
use crate::leak::{LeakCallback, LeakDetector};
use crate::origin::Origin;
use crate::reentrancy::ReentrancyGuard;
use crate::runtime::{Lock, Runtime};
use crate::signal::{Listener, Signal, Wakers};
use crate::spans::CheckOutSpans;
use crate::trace::{PanicGuard, Traces};
use crate::wake_list::WakeList;
use crate::{error, failure, log, platform};

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
    address: Arc<ServerAddress>,
    connector: K,
    pub(super) runtime: RuntimeHandle<R>,
    /// The machine's zero.
    origin: std::time::Instant,
    subscribers: Subscribers,
    failure_handler: Option<FailureHandler>,
    leak_detector: LeakDetector,
    pub(super) failures: FailureCounts,
    /// Since when the pool is watched, in nanoseconds of its clock; `u64::MAX` while it is not.
    pub(super) watched_since: AtomicU64,
    traces: Traces,
    measured: Measured,
    pub(super) spans: CheckOutSpans,
    timeout: Option<Duration>,
    /// In nanoseconds.
    min_round_trip: AtomicU64,
    drained: Signal<R::Mutex<Wakers>>,
    inner: R::Mutex<PoolInner<R, K>>,
}

/// Holds the pool's lock.
pub(super) type InnerGuard<'a, R, K> =
    <<R as Runtime>::Mutex<PoolInner<R, K>> as Lock<PoolInner<R, K>>>::Guard<'a>;

/// When an input is fed, and what is looked at after it.
#[derive(Clone, Copy)]
pub(super) struct InputContext {
    pub(super) now: Instant,
    /// A deadline may be due earlier after the input.
    is_timed: bool,
    /// The input is a check-out or a check-in.
    is_use: bool,
    pub(super) wants_events: bool,
}

impl InputContext {
    pub(super) const fn of_use(self) -> Self {
        Self { is_use: true, ..self }
    }
}

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
        let driver = Arc::new(Self {
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
        });
        // The first event is there already: ConnectionPoolCreated.
        outbox::release(|| driver.lock(), driver.lock(), |it: Notification| driver.notify(it));
        driver
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
        let clear = inner.before_clear(&input);
        inner.handle(context.now, input, context.wants_events, &mut wakes);
        if let Some(before) = clear {
            inner.after_clear(&before, self.now());
        }
        panic_guard.defuse();
        self.release_and_run(inner, context, wakes);
    }

    /// Feeds one input while the caller holds a lock of its own. Wake-ups, sockets and subscribers wait until
    /// the caller has released that lock and drops the effects. So a server's description and its pool change
    /// at once.
    pub fn feed_within(self: &Arc<Self>, input: Input<Types<R, K>>) -> DeferredEffects {
        self.feed_locked_within(self.lock(), input)
    }

    pub(super) fn feed_locked_within(
        self: &Arc<Self>,
        inner: InnerGuard<'_, R, K>,
        input: Input<Types<R, K>>,
    ) -> DeferredEffects {
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = inner; // Released before the guard is dropped.
        let context = self.context(&inner, false);
        let mut wakes = WakeList::default();
        let clear = inner.before_clear(&input);
        inner.handle(context.now, input, context.wants_events, &mut wakes);
        if let Some(before) = clear {
            inner.after_clear(&before, self.now());
        }
        panic_guard.defuse();
        drop(inner);
        let (worker, notifier) = (Arc::clone(self), Arc::clone(self));
        let work = move || {
            let mut inner = worker.lock();
            let timer = worker.prepare_release(&mut inner, context);
            let work = inner.pending.work.claim();
            drop(inner);
            worker.run_work(wakes, timer, work);
        };
        DeferredEffects::new(work, move || {
            let notifications = notifier.lock().pending.notifications.claim();
            notifier.run_notifications(notifications);
        })
    }

    /// The time for an input that is handled at once while no request waits.
    #[inline(always)]
    pub(super) fn now_at_once(&self, inner: &PoolInner<R, K>) -> Instant {
        if inner.state.needs_now_at_once() { self.now() } else { inner.state.now() }
    }

    #[inline(always)]
    pub(super) fn release_at_once(mut inner: InnerGuard<'_, R, K>) {
        let is_timed = inner.state.needs_now_at_once();
        let timer = if is_timed { inner.arm_at_once() } else { None };
        Self::release_and_wake(inner, timer);
    }

    /// [`release_at_once`](Self::release_at_once), after which subscribers are told.
    #[inline(always)]
    pub(super) fn release_and_notify(self: &Arc<Self>, mut inner: InnerGuard<'_, R, K>) {
        let is_timed = inner.state.needs_now_at_once();
        let timer = if is_timed { inner.arm_at_once() } else { None };
        self.release_and_perform(inner, WakeList::default(), timer);
    }

    #[inline(always)]
    pub(super) fn release_and_wake(inner: InnerGuard<'_, R, K>, timer: Option<Waker>) {
        drop(inner);
        if let Some(timer) = timer {
            timer.wake();
        }
    }

    /// Whether an event has a subscriber, or is logged.
    #[inline(always)]
    pub(super) fn wants_events(&self) -> bool {
        self.subscribers.want_events()
    }

    #[inline]
    pub(super) fn lock(&self) -> InnerGuard<'_, R, K> {
        self.inner.lock()
    }

    pub(super) fn try_lock(&self) -> Option<InnerGuard<'_, R, K>> {
        self.inner.try_lock()
    }
}

/// The clock, and everything that happens after the lock is released.
impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// The clock is read only if someone looks at the time: the machine, a subscriber, or the reader of a
    /// whole trace.
    #[inline(always)]
    pub(super) fn context(&self, inner: &PoolInner<R, K>, is_timed: bool) -> InputContext {
        let wants_events = self.wants_events();
        let is_timed = is_timed || inner.state.needs_now();
        let is_read = is_timed || wants_events || inner.state.is_journaled();
        let now = if is_read { self.now() } else { inner.state.now() };
        InputContext { now, is_timed, is_use: false, wants_events }
    }

    /// Releases the lock; then wakes callers, performs actions and tells subscribers, unless another
    /// thread is doing that already. Subscribers come last, because they may take long.
    #[inline(always)]
    pub(super) fn release_and_run(
        self: &Arc<Self>,
        mut inner: InnerGuard<'_, R, K>,
        context: InputContext,
        wakes: WakeList<R::Waiter>,
    ) {
        let timer = self.prepare_release(&mut inner, context);
        if inner.pending.is_empty() && wakes.is_empty() && timer.is_none() {
            // The usual case, in which not even the drop of nothing is worth its instructions.
            mem::forget((wakes, timer));
        } else {
            self.release_and_perform(inner, wakes, timer);
        }
    }

    #[inline(always)]
    fn release_and_perform(
        self: &Arc<Self>,
        mut inner: InnerGuard<'_, R, K>,
        wakes: WakeList<R::Waiter>,
        timer: Option<Waker>,
    ) {
        let pending = &mut inner.pending;
        let (work, notifications) = (pending.work.claim(), pending.notifications.claim());
        let has_overflowed = pending.notifications.take_overflow();
        drop(inner);
        if has_overflowed {
            log::events_dropped(&self.address);
        }
        self.run_work(wakes, timer, work);
        self.run_notifications(notifications);
    }

    /// Arms the timer and wakes the writer of a trace, if that is necessary. Returns the timer's waker.
    #[inline(always)]
    fn prepare_release(&self, inner: &mut PoolInner<R, K>, context: InputContext) -> Option<Waker> {
        let timer = match context {
            InputContext { is_timed: false, .. } => None,
            InputContext { is_use: true, .. } => inner.arm_after_use(),
            InputContext { is_use: false, .. } => inner.arm(),
        };
        if inner.state.wants_writer(inner.pending.has_timed_out) {
            let has_timed_out = mem::take(&mut inner.pending.has_timed_out);
            inner.state.call_writer(has_timed_out, &self.traces);
        }
        timer
    }

    #[inline(always)]
    fn run_work(
        self: &Arc<Self>,
        wakes: WakeList<R::Waiter>,
        timer: Option<Waker>,
        work: Option<VecDeque<Action<Types<R, K>>>>,
    ) {
        if wakes.is_empty() && timer.is_none() {
            mem::forget((wakes, timer));
        } else {
            Self::wake_all(wakes, timer);
        }
        if let Some(work) = work {
            let _here = self.enter();
            drop(outbox::drain(|| self.lock(), work, |action| self.perform(action)));
        }
    }

    #[inline(always)]
    fn run_notifications(self: &Arc<Self>, notifications: Option<VecDeque<Notification>>) {
        if let Some(notifications) = notifications {
            let _here = self.enter();
            let drained = outbox::drain(|| self.lock(), notifications, |it| self.notify(it));
            self.notify_if_empty(drained);
        }
    }

    #[inline(never)]
    fn wake_all(wakes: WakeList<R::Waiter>, timer: Option<Waker>) {
        wakes.wake(Self::wake);
        timer.into_iter().for_each(Waker::wake);
    }

    /// A waker of a foreign executor that panics must not keep the other callers waiting, nor end a check-in.
    pub(super) fn wake(waiter: R::Waiter) {
        let _ = catch_unwind(AssertUnwindSafe(|| R::wake(waiter)));
    }

    fn enter(self: &Arc<Self>) -> Option<ReentrancyGuard> {
        R::CALLERS_BLOCK.then(|| ReentrancyGuard::enter(self))
    }

    // Apart from the check-outs and check-ins that need none of it.
    #[inline(never)]
    fn perform(self: &Arc<Self>, action: Action<Types<R, K>>) {
        match action {
            Action::StartEstablish { id, owner, deadline, generation: _ } => {
                establish::start(self, id, deadline, owner);
            }
            Action::AbortEstablish { id } => self.abort_task(id),
            Action::CloseSocket { id, conn } => {
                // A connection whose drop panics is closed all the same.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(conn)));
                self.socket_closed(id);
            }
            Action::StartDrain { id, conn } => drain::start(self, id, conn),
            Action::AbortDrain { id } => self.abort_task(id),
            Action::Interrupt { id } => {
                let interrupt = self.lock().interrupts.get(&id).cloned();
                // A shutdown in a child process would shut down the parent's socket.
                let stop = if self.runtime.is_inherited() {
                    Interrupt::renounce
                } else {
                    Interrupt::interrupt
                };
                interrupt.as_deref().into_iter().for_each(stop);
            }
            Action::EmitEvent(_) | Action::ReportLeak { .. } | Action::ReportUnanswered { .. } => {
                unreachable!("told, not performed")
            }
            Action::Deliver { .. } => unreachable!("delivered under the lock"),
        }
    }

    fn notify(&self, notification: Notification) {
        match notification {
            Notification::Event(event) => self.subscribers.tell(&self.address, event),
            Notification::Leak { id, held } => self.leak_detector.report(&self.address, id, held),
            Notification::Unanswered { id, pending } => {
                log::unanswered(&self.address, id.number(), pending);
            }
        }
    }

    fn socket_closed(&self, id: ConnId) {
        let mut inner = self.lock();
        let interrupt = inner.interrupts.remove(&id);
        // A reset after a fork forgets sockets that were to be closed.
        inner.pending.closing = inner.pending.closing.saturating_sub(1);
        self.notify_if_empty(inner);
        drop(interrupt);
    }

    /// A socket was closed by the task that had it.
    pub(super) fn socket_ended(&self, id: ConnId) {
        let mut inner = self.lock();
        let interrupt = inner.interrupts.remove(&id);
        self.notify_if_empty(inner);
        drop(interrupt);
    }

    /// Releases the lock, and wakes callers of `close` if there is nothing left to wait for, or nothing but
    /// subscribers and tasks.
    fn notify_if_empty(&self, inner: InnerGuard<'_, R, K>) {
        let is_empty = inner.is_empty();
        drop(inner);
        if is_empty {
            self.drained.notify_all();
        }
    }

    /// Adds a task that opens a connection or reads its late reply. It has to [end](Self::task_ended).
    pub(super) fn add_task(&self, id: ConnId) -> TaskKey {
        let mut inner = self.lock();
        inner.last_task += 1;
        let key = TaskKey { id, number: inner.last_task };
        inner.tasks.insert(key, ConnectionTask { task: None, is_aborted: false });
        key
    }

    /// Spawns a task that was [added](Self::add_task).
    pub(super) fn spawn_task(&self, key: TaskKey, work: impl Future<Output = ()> + Send + 'static) {
        // The task may end before its handle is known. It is not spawned under the lock, because a runtime that
        // has shut down drops it at once.
        let task = self.runtime().spawn(work);
        let unused = match self.lock().tasks.get_mut(&key) {
            Some(entry) if entry.is_aborted => Some(task),
            Some(entry) => {
                entry.task = Some(task);
                None
            }
            None => return drop(task),
        };
        unused.into_iter().for_each(R::abort);
    }

    /// Ends the last task of a connection that the pool does not want any more. Earlier ones have done their work.
    fn abort_task(&self, id: ConnId) {
        let all = TaskKey { id, number: 0 }..=TaskKey { id, number: u64::MAX };
        let task = self.lock().tasks.range_mut(all).next_back().and_then(|(_, entry)| {
            entry.is_aborted = true;
            entry.task.take()
        });
        task.into_iter().for_each(R::abort);
    }

    /// Whether the pool does not want the connection of a task any more.
    pub(super) fn is_aborted(&self, key: TaskKey) -> bool {
        self.lock().tasks.get(&key).is_none_or(|entry| entry.is_aborted)
    }

    pub(super) fn task_ended(&self, key: TaskKey) {
        let mut inner = self.lock();
        let entry = inner.tasks.remove(&key);
        self.notify_if_empty(inner);
        drop(entry);
    }
}

/// What the pool is and has.
impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// The server that the pool is for.
    #[must_use]
    pub const fn address(&self) -> &Arc<ServerAddress> {
        &self.address
    }

    /// What makes the pool's connections.
    #[must_use]
    pub const fn connector(&self) -> &K {
        &self.connector
    }

    /// The runtime that the pool lives on.
    #[must_use]
    pub fn runtime(&self) -> R {
        self.runtime.runtime()
    }

    /// The state and the counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.lock().state.snapshot()
    }

    /// The options as they were set.
    #[must_use]
    pub fn options(&self) -> PoolOptions {
        self.lock().state.options().clone()
    }

    /// Changes options of the running pool.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; nothing changes then.
    ///
    /// # Panics
    ///
    /// When `loadBalanced` changes.
    pub fn set_options(self: &Arc<Self>, options: PoolOptions) -> Result<(), InvalidOptions> {
        options.validate()?;
        let options = platform::with_jitter_seed_from_os(options);
        let options = self.leak_detector.with_default_threshold(options);
        self.leak_detector.set_options(&options);
        self.feed(Input::SetOptions { options: Box::new(options) });
        Ok(())
    }

    /// Turns an answer that came at once into the guard of a connection that was checked out at `caller`, or
    /// into the error with the server's address.
    ///
    /// # Errors
    ///
    /// Why there is no connection.
    pub fn guard(
        self: &Arc<Self>,
        result: CheckOutResult<R, K>,
        caller: &'static Location<'static>,
    ) -> Result<PooledConnection<R, K>, PoolError> {
        match result {
            Ok(socket) => Ok(PooledConnection::new(Arc::clone(self), socket, caller, None)),
            Err(failed) => Err(self.failed_at_once(failed)),
        }
    }

    #[cold]
    fn failed_at_once(&self, FailedCheckOut { error, request }: FailedCheckOut) -> PoolError {
        let error = PoolError::new(Arc::clone(&self.address), error);
        let error = error.with_wait(Wait::default()).with_request(request);
        self.failures.note(&error, R::now);
        error
    }

    /// As [`guard`](Self::guard), for an answer that came after a wait.
    pub(super) fn guard_after(
        self: &Arc<Self>,
        result: Delivery<R, K>,
        explain: impl FnOnce(PoolError) -> PoolError,
        caller: &'static Location<'static>,
        request: Option<WaiterId>,
    ) -> Result<PooledConnection<R, K>, PoolError> {
        match result {
            Ok(socket) => Ok(PooledConnection::new(Arc::clone(self), socket, caller, request)),
            Err(error) => {
                let error = explain(PoolError::new(Arc::clone(&self.address), error));
                self.failures.note(&error, R::now);
                Err(error)
            }
        }
    }

    /// Whether this is a child of the process that the pool lives in, and the pool was not reset there.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.runtime.is_inherited()
    }

    /// Whether this thread performs the pool's actions or runs one of its subscribers: such a thread must
    /// not wait for the pool. Known only on runtimes whose [callers block](Runtime::CALLERS_BLOCK).
    #[must_use]
    pub fn is_performing_here(self: &Arc<Self>) -> bool {
        ReentrancyGuard::is_here(self)
    }

    /// Whether the pool is closed and nothing of it is left: no connection that is in use or being
    /// opened or closed, and no event to be told.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.lock().is_drained()
    }

    /// Whether the pool is closed, everything was checked in and every socket that was open is closed. What
    /// is left to be [drained](Self::is_drained) takes little time, unless a subscriber blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// How many events and reports were dropped because the subscribers did not return for so long that
    /// the queue was full: [`Builder::event_queue`](crate::builder::Builder::event_queue).
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.lock().pending.notifications.dropped()
    }

    /// Hears when [`is_empty`](Self::is_empty) and [`is_drained`](Self::is_drained) become true. To be made
    /// before they are looked at.
    #[must_use]
    pub fn drained(&self) -> Listener<'_, R::Mutex<Wakers>> {
        self.drained.listen()
    }

    /// Calls the failure handler, which must not wait for this pool.
    pub(super) fn show_failure(self: &Arc<Self>, id: ConnId, error: &ConnectionError) {
        let _here = self.enter();
        failure::show(self.failure_handler.as_ref(), self, id, error);
    }

    /// Whether an inspector is connected.
    pub(super) fn is_watched(&self) -> bool {
        self.watched_since.load(Ordering::Relaxed) != u64::MAX
    }

    pub(super) const fn leak_detector(&self) -> &LeakDetector {
        &self.leak_detector
    }

    pub(super) const fn traces(&self) -> &Traces {
        &self.traces
    }

    pub(super) const fn measured(&self) -> &Measured {
        &self.measured
    }

    /// What the connector finds wrong with a connection. After a panic the connection is not trusted.
    pub(super) fn fault(&self, connection: &K::Connection) -> Option<ConnectionError> {
        error::fault(|| self.connector.fault(connection))
    }

    pub(super) fn add_interrupt(&self, id: ConnId, interrupt: Arc<Interrupt>) {
        self.lock().interrupts.insert(id, interrupt);
    }
}

/// Time.
impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// The time now, as the machine counts it.
    pub(super) fn now(&self) -> Instant {
        self.instant(R::now())
    }

    pub(super) fn instant(&self, at: std::time::Instant) -> Instant {
        Instant::from_std(at, self.origin)
    }

    /// A time of the machine's as one of the clock's; `None` if it is out of the clock's range, which
    /// means never.
    pub(super) fn time_of(&self, instant: Instant) -> Option<std::time::Instant> {
        instant.into_std(self.origin)
    }

    /// The zero of the pool's time: when it was made, or the client that it is of. As a deadline it asks for what is
    /// there at once.
    #[must_use]
    pub const fn time_zero(&self) -> std::time::Instant {
        self.origin
    }

    /// When a check-out that begins now, without a deadline of its own, has to be finished: `timeoutMS`.
    #[must_use]
    #[inline]
    pub fn end_of_operation(&self) -> Option<std::time::Instant> {
        // The clock is read only if there is one.
        let timeout = self.timeout?;
        R::now().checked_add(timeout)
    }

    /// See [`Pool::set_min_round_trip`](super::Pool::set_min_round_trip).
    pub fn set_min_round_trip(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.min_round_trip.store(nanos, Ordering::Relaxed);
    }

    /// How long a round trip to the server takes at least, as far as is known; otherwise zero.
    #[must_use]
    pub fn min_round_trip(&self) -> Duration {
        Duration::from_nanos(self.min_round_trip.load(Ordering::Relaxed))
    }

    /// When a check-out that begins now times out, if it has no deadline of its own: `waitQueueTimeoutMS`.
    #[must_use]
    pub fn end_of_wait(&self) -> Option<std::time::Instant> {
        let timeout = self.lock().state.options().wait_queue_timeout?;
        R::now().checked_add(timeout).filter(|_| !timeout.is_zero())
    }
}

impl<R: Runtime, K: Connector<R>> fmt::Debug for PoolDriver<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolDriver").field("address", &self.address).finish_non_exhaustive()
    }
}
