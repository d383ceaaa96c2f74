//! Monitors: one for each server of a client, on sockets of its own.
//!
//! [`MonitorDriver`] runs the machine of [`cenote_core::monitor`] on a runtime: its sockets and its timer are
//! tasks, and what it learns goes to the server's pool, to subscribers, and to callers that wait for a server.
//!
//! | file | contents |
//! |---|---|
//! | `inner` | what is under the monitor's lock |
//! | `sockets` | the monitoring sockets, each a task |
//! | `timer` | the timer, a task |
//! | `subscribers` | callbacks for events of servers |
//! | `topology` | what all monitors of a client learn, put together; what subscribers are told |

mod inner;
mod sockets;
mod subscribers;
mod timer;
mod topology;

use std::fmt;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Waker;
use std::time::Instant;

use cenote_core::address::ServerAddress;
#[cfg(feature = "srv")]
use cenote_core::client::SrvPolling;
use cenote_core::connect::EstablishOptions;
#[cfg(feature = "srv")]
use cenote_core::connect::ServerKind;
use cenote_core::monitor::{
    Action, Input, InvalidMonitorOptions, MonitorOptions, ServerDescription,
};
use cenote_core::outbox;
use cenote_core::pool;
use cenote_core::sdam::{self, Verdict};
use cenote_core::topology::ServerId;

use self::inner::{Events, MonitorInner, Outcome};
use self::sockets::MonitorSockets;
use self::topology::Observation;
use crate::connection::MongoConnector;
use crate::failure::{DeferredEffects, Failure};
use crate::pool::{CLOSE_GRACE, PoolDriver};
use crate::runtime::origin::Origin;
use crate::runtime::reentrancy::ReentrancyGuard;
use crate::runtime::signal::{Signal, Wakers};
use crate::runtime::{Lock, Network, timeout_at};

pub(crate) use self::subscribers::SdamSubscribers;
pub(crate) use self::topology::{Members, TopologyDriver};

/// Monitors one server: keeps its description, and marks its pool ready or clears it.
pub struct MonitorDriver<R: Network> {
    shared: Arc<MonitorShared<R>>,
    pool: Arc<PoolDriver<R, MongoConnector<R>>>,
    sockets: MonitorSockets<R>,
    /// Which server of the topology it is. Known from [`start`](Self::start) on.
    id: OnceLock<ServerId>,
    /// The process in which the tasks run. A monitor does not go on in a child process.
    process: u32,
    /// Runs from [`start`](Self::start) to [`close`](Self::close).
    timer: Mutex<Option<R::Task>>,
    /// Locked before the topology and the pool, never after them.
    inner: Mutex<MonitorInner>,
}

/// What all monitors of a client share.
pub(crate) struct MonitorShared<R: Network> {
    pub(crate) runtime: R,
    pub(crate) connector: MongoConnector<R>,
    pub(crate) options: MonitorOptions,
    pub(crate) establish: Arc<EstablishOptions>,
    pub(crate) topology: Arc<TopologyDriver>,
    /// Notified when a check has ended or a description has changed: callers that wait for a server look again.
    pub(crate) news: Signal<R::Mutex<Wakers>>,
    /// When the SRV records are looked up again, if they are.
    #[cfg(feature = "srv")]
    pub(crate) srv: Mutex<Option<SrvPolling>>,
    /// The zero of all machines, so that their times can be compared.
    pub(crate) origin: Origin,
}

/// What is left to do for an input when the monitor's lock is released.
#[derive(Default)]
struct Effects {
    pool: Vec<DeferredEffects>,
    outcome: Outcome,
    /// What the server is now, if that is something else.
    #[cfg(feature = "srv")]
    kind: Option<ServerKind>,
}

impl<R: Network> MonitorDriver<R> {
    /// A monitor that does nothing before its [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// Options that contradict each other.
    pub(crate) fn new(
        shared: &Arc<MonitorShared<R>>,
        pool: &Arc<PoolDriver<R, MongoConnector<R>>>,
    ) -> Result<Arc<Self>, InvalidMonitorOptions> {
        let establish = Arc::clone(&shared.establish);
        let inner = MonitorInner::new(shared.now(), shared.options.clone(), establish)?;
        Ok(Arc::new(Self {
            shared: Arc::clone(shared),
            pool: Arc::clone(pool),
            sockets: MonitorSockets::default(),
            id: OnceLock::new(),
            process: process::id(),
            timer: Mutex::new(None),
            inner: Mutex::new(inner),
        }))
    }

    /// Starts the timer and the first check, if that was not done before.
    pub(crate) fn start(self: &Arc<Self>, id: ServerId) {
        if self.id.set(id).is_err() {
            return; // Of a client that was closed before the server was removed.
        }
        // Not under a lock: a runtime that has shut down drops the task at once.
        let task = self.shared.runtime.spawn(timer::run(Arc::clone(self)));
        *Lock::lock(&self.timer) = Some(task);
        let mut inner = self.lock();
        let observation = Observation { before: inner.take_first(), ..Observation::default() };
        self.shared.topology.observe(self.shared.now(), self.address(), observation, |_| {});
        self.release_and_run(inner, Effects::default());
    }

    /// Ends the monitor. Its sockets close as soon as their tasks are stopped: [`ended`](Self::ended). Does nothing
    /// in a child process, where tasks and sockets are the parent's.
    pub(crate) fn close(self: &Arc<Self>) {
        if self.is_inherited() {
            return;
        }
        self.feed(Input::Close);
        let timer = Lock::lock(&self.timer).take();
        timer.into_iter().for_each(R::abort);
    }

    /// Waits until no socket is left, after [`close`](Self::close). Does not wait in a child process.
    pub(crate) async fn ended(&self) {
        if !self.is_inherited() {
            self.sockets.ended().await;
        }
    }

    /// Whether this is a child of the process in which the tasks run.
    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// Applies SDAM's error handling to an error of a pooled connection: description, monitor and pool
    /// change at once.
    // CLR-15, SD-54
    pub(crate) fn application_failed(self: &Arc<Self>, failure: &Failure<'_>) {
        let mut effects = Effects::default(); // Outlives the lock also in a panic.
        let mut inner = self.lock();
        // Not the monitor's, which also has that of a primary that is not believed.
        let version = self.shared.topology.topology_version(self.address());
        let verdict = sdam::verdict(&failure.context(version), failure.error());
        if verdict == Verdict::default() {
            return;
        }
        let input = Input::ApplicationFailed { error: failure.error().clone(), verdict };
        self.handle_with(&mut inner, input, &mut effects, || failure.clear_within(verdict.pool));
        self.release_and_run(inner, effects);
    }

    /// Has the server checked as soon as the minimum of 500 ms between two checks allows.
    pub fn request_check(self: &Arc<Self>) {
        self.feed(Input::RequestCheck);
    }

    /// The server's address.
    #[must_use]
    pub fn address(&self) -> &Arc<ServerAddress> {
        self.pool.address()
    }

    /// What is known of the server.
    #[must_use]
    pub fn description(&self) -> Arc<ServerDescription> {
        Arc::clone(self.lock().description())
    }
}

impl<R: Network> MonitorDriver<R> {
    /// Feeds one input, and does what follows from it.
    fn feed(self: &Arc<Self>, input: Input) {
        let mut effects = Effects::default(); // Outlives the lock also in a panic.
        let mut inner = self.lock();
        self.handle(&mut inner, input, &mut effects);
        self.release_and_run(inner, effects);
    }

    /// The topology and the pool are fed under this lock, too, so that the descriptions and the pool change at once.
    // CLR-15
    fn handle(&self, inner: &mut MonitorInner, input: Input, effects: &mut Effects) {
        self.handle_with(inner, input, effects, || None);
    }

    /// The same, after which the pool is cleared.
    fn handle_with(
        &self,
        inner: &mut MonitorInner,
        input: Input,
        effects: &mut Effects,
        clear: impl FnOnce() -> Option<DeferredEffects>,
    ) {
        let previous = Arc::clone(inner.description());
        let (mut events, mut inputs) = (Events::default(), Vec::new());
        let now = self.shared.now();
        effects.outcome = inner.handle(now, input, &mut events, |input| inputs.push(input));
        let is_changed = !Arc::ptr_eq(&previous, inner.description());
        let described = is_changed.then(|| Arc::clone(inner.description()));
        #[cfg(feature = "srv")]
        {
            effects.kind = described.as_ref().and_then(|description| description.kind());
        }
        let described = self.id.get().copied().zip(described);
        let Events { before, after, .. } = events;
        let observation = Observation { before, described, after };
        // SD-03, SD-04, SD-05.
        self.shared.topology.observe(now, self.address(), observation, |topology| {
            let is_usable = topology.is_usable(self.address());
            inputs.retain(|input| is_usable || !matches!(input, pool::Input::Ready));
            effects.pool.extend(inputs.into_iter().map(|input| self.pool.feed_within(input)));
            effects.pool.extend(clear());
        });
        // A server that becomes Unknown keeps its time: an operation may have been sent its way.
        if let Some(time) = inner.min_round_trip() {
            self.pool.set_min_round_trip(time);
        }
    }

    /// Releases the lock. Only this thread waits for subscribers, and with it what this input does to the monitor's own
    /// sockets: the start of a check is told before its socket is opened. Subscribers of the pool come last, so that a
    /// check is told before what it does to the pool.
    // SD-09, SM-12
    fn release_and_run(self: &Arc<Self>, inner: MutexGuard<'_, MonitorInner>, effects: Effects) {
        drop(inner);
        let Effects { mut pool, outcome: Outcome { timer, is_news }, .. } = effects;
        timer.into_iter().for_each(Waker::wake);
        pool.iter_mut().for_each(DeferredEffects::run_work);
        if is_news {
            self.shared.news.notify_all();
        }
        #[cfg(feature = "srv")]
        effects.kind.into_iter().for_each(|kind| self.shared.observe_kind(kind));
        self.shared.perform_actions();
        outbox::release(|| self.lock(), self.lock(), |action| self.perform(action));
        drop(pool);
    }

    fn perform(self: &Arc<Self>, action: Action) {
        match action {
            Action::Open { socket, .. } => self.sockets.open(self, socket),
            Action::Send { socket, command, flags } => self.sockets.send(socket, command, flags),
            Action::Close { socket } => self.sockets.close(socket),
            Action::MarkReady | Action::ClearPool { .. } | Action::EmitEvent(_) => {
                unreachable!("done under the lock")
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, MonitorInner> {
        Lock::lock(&self.inner)
    }
}

impl<R: Network> MonitorShared<R> {
    /// Starts the servers of the connection string. To be called once.
    pub(crate) fn start(self: &Arc<Self>, members: Box<dyn Members>) {
        self.topology.set_members(members);
        self.perform_actions();
    }

    /// Tells what has happened, and adds and removes servers. To be called without a lock.
    pub(crate) fn perform_actions(self: &Arc<Self>) {
        {
            let _here = R::CALLERS_BLOCK.then(|| ReentrancyGuard::enter(self));
            self.topology.notify();
        }
        self.topology.change_servers();
    }

    /// Waits until the subscribers were told everything, once the topology is closed, for [`CLOSE_GRACE`] at most.
    pub(crate) async fn told(&self) {
        let told = async {
            loop {
                // Before it is looked at, so that the last event is not missed.
                let ended = self.topology.ended().listen();
                if self.topology.has_ended() {
                    return;
                }
                ended.await;
            }
        };
        if timeout_at(&self.runtime, R::now() + CLOSE_GRACE, told).await.is_none() {
            self.topology.close_gave_up();
        }
    }

    /// Whether this thread runs a subscriber of the servers. Known only where callers block.
    pub(crate) fn is_performing_here(self: &Arc<Self>) -> bool {
        ReentrancyGuard::is_here(self)
    }

    /// The time as the machines count it.
    pub(crate) fn now(&self) -> pool::Instant {
        self.origin.instant(R::now())
    }

    /// A time of the machines as the runtime counts it; `None` is out of the clock's range, which means never.
    pub(crate) fn time_of(&self, instant: pool::Instant) -> Option<Instant> {
        instant.into_std(self.origin.at)
    }
}

#[cfg(feature = "srv")]
impl<R: Network> MonitorShared<R> {
    /// Servers that are no routers end the polling of SRV records.
    fn observe_kind(&self, kind: ServerKind) {
        if let Some(polling) = &mut *Lock::lock(&self.srv) {
            polling.observe(kind);
        }
    }
}

impl<R: Network> fmt::Debug for MonitorDriver<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorDriver").field("address", self.address()).finish_non_exhaustive()
    }
}
