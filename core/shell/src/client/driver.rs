//! Runs the machine of [`cenote_core::client::machine`] on a runtime.

use std::collections::BTreeMap;
#[cfg(unix)]
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Instant;

use cenote_core::address::ServerAddress;
use cenote_core::client::ClientSettings;
use cenote_core::client::machine::{Action, ClientOptions, ClientState, Input, SelectionId};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::SocketId;
use cenote_core::outbox::drain_some;
use cenote_core::pool;
use cenote_core::topology::{ServerId, TopologyOptions};

use super::locked::{Effects, Locked};
use super::request::Waiter;
use super::sockets::MonitorSockets;
#[cfg(feature = "srv")]
use super::srv::NameService;
use super::told::Teller;
use super::{ClientBuildError, ClientPlan, DEFAULT_SERVER_EVENT_QUEUE, Server, timer};
use crate::builder::{BuildError, Builder, BuiltPool};
use crate::connection::MongoConnector;
use crate::failure::{ConnectionStatus, Failure};
#[cfg(unix)]
use crate::inspect::Inspector;
use crate::log;
use crate::pool::{CLOSE_GRACE, Pool, PoolDriver};
use crate::runtime::origin::Origin;
#[cfg(feature = "srv")]
use crate::runtime::platform::random;
use crate::runtime::process::Process;
use crate::runtime::reentrancy::ReentrancyGuard;
use crate::runtime::signal::Signal;
use crate::runtime::{Lock, Network, timeout_at, yield_once};
use crate::trace::{self, Recorded, Traced, Traces};

/// The machine of a client under its lock, and what performs its actions: pools, monitoring sockets, a timer, and
/// look-ups of SRV records.
pub(super) struct ClientDriver<R: Network> {
    pub(super) runtime: R,
    pub(super) connector: MongoConnector<R>,
    pub(super) sockets: MonitorSockets<R>,
    pub(super) teller: Teller,
    /// Notified when the client is closed and its last event was told.
    ended: Signal,
    make_pool: MakePool<R>,
    is_load_balanced: bool,
    #[cfg(feature = "srv")]
    name_service: NameService,
    tasks: Mutex<Tasks<R>>,
    #[cfg(unix)]
    inspector: OnceLock<Inspector>,
    traces: Traces,
    /// The zero of all machines, so that their times can be compared.
    origin: Origin,
    /// The process in which the tasks run. A client does not go on in a child process.
    process: Process,
    /// Locked before a pool, never after it.
    inner: Mutex<Locked<R>>,
}

/// The tasks of a client, besides monitoring sockets. The timer and a look-up end when it is closed.
struct Tasks<R: Network> {
    timer: Option<R::Task>,
    /// The last look-up of SRV records.
    look_up: Option<R::Task>,
    /// What follows from inputs, by a number: the task, as soon as it is known.
    following: BTreeMap<u64, Option<R::Task>>,
    /// The last of these numbers.
    last: u64,
}

/// How many actions a task performs before it yields, and a caller before it leaves the rest to a task.
const TURN: usize = 64;

/// How many events it tells: an action may bring about several.
const TOLD: usize = 512;

/// The task that does what follows from an input. Dropped before its end, as by a runtime that has shut down, it does all
/// of it.
struct Following<R: Network> {
    driver: Arc<ClientDriver<R>>,
    number: u64,
    effects: Effects<R>,
    left: Left,
    has_ended: bool,
}

/// What a turn has left to a task.
#[derive(Clone, Copy, Default)]
struct Left {
    work: bool,
    events: bool,
}

impl Left {
    const fn is_any(self) -> bool {
        self.work || self.events
    }
}

impl<R: Network> Following<R> {
    async fn run(mut self) {
        while self.follow_some() {
            yield_once().await;
        }
        self.has_ended = true;
    }

    fn follow_some(&mut self) -> bool {
        self.left = self.driver.follow_some(&mut self.effects, self.left);
        self.left.is_any()
    }
}

impl<R: Network> Drop for Following<R> {
    fn drop(&mut self) {
        if self.driver.is_inherited() {
            // It is the parent's.
            return std::mem::forget(std::mem::take(&mut self.effects));
        }
        while !self.has_ended {
            self.has_ended = !self.follow_some();
        }
        drop(std::mem::take(&mut self.effects));
        let ended = Lock::lock(&self.driver.tasks).following.remove(&self.number);
        drop(ended);
    }
}

/// Makes the pool of a server, as the builder was told.
type MakePool<R> = Box<
    dyn Fn(
            &Arc<ClientDriver<R>>,
            ServerId,
            &ServerAddress,
        ) -> Result<Pool<R, MongoConnector<R>>, BuildError>
        + Send
        + Sync,
>;

impl<R: Network> ClientDriver<R> {
    /// Makes a pool for each host of the connection string, and then starts the machine.
    // OP-12, PCR-01, ND-01, ST-02
    pub(super) fn start<P>(
        mut plan: ClientPlan<P>,
        settings: &ClientSettings,
        runtime: R,
    ) -> Result<Arc<Self>, ClientBuildError>
    where
        P: BuiltPool<Connector = MongoConnector<R>> + 'static,
    {
        let (now, origin) = (pool::Instant::ORIGIN, Origin::new(R::now()));
        let options = ClientOptions {
            topology: TopologyOptions::new(&plan.uri),
            settings: settings.clone(),
            monitoring: plan.monitoring.clone(),
            establish: plan.connector.monitor_options(),
            polling: plan.polling(now),
        };
        let mut first = Vec::new();
        let state = ClientState::new(now, options, &mut first)?;
        let tracing = plan.tracing.of_topology().map_err(BuildError::from)?;
        let recorded = tracing.begin(state, None, R::PROGRAM, (now, origin));
        let (state, traces) = recorded.map_err(BuildError::from)?;
        let event_queue = plan.event_queue.unwrap_or(DEFAULT_SERVER_EVENT_QUEUE);
        let teller = Teller::new(plan.log, std::mem::take(&mut plan.sdam_subscribers));
        #[cfg(unix)]
        let inspect = plan.inspect.take();
        let driver = Arc::new(Self {
            runtime,
            connector: plan.connector.clone(),
            sockets: MonitorSockets::default(),
            teller,
            ended: Signal::default(),
            is_load_balanced: !settings.is_watched,
            #[cfg(feature = "srv")]
            name_service: plan.name_service(),
            make_pool: Box::new(move |driver, id, address| {
                driver.build_pool(id, plan.pool(address, trace::beside(driver))?)
            }),
            tasks: Mutex::new(Tasks {
                timer: None,
                look_up: None,
                following: BTreeMap::new(),
                last: 0,
            }),
            #[cfg(unix)]
            inspector: OnceLock::new(),
            traces,
            origin,
            process: Process::current(),
            inner: Mutex::new(Locked::new(state, first, event_queue)),
        });
        trace::watch(&driver);
        driver.open_first_pools()?;
        #[cfg(unix)]
        driver.inspect(inspect)?;
        // Only now, so that nothing runs when the pool of a later host cannot be built.
        let timer = driver.runtime.spawn(timer::run(Arc::clone(&driver)));
        Lock::lock(&driver.tasks).timer = Some(timer);
        driver.follow(Effects::default());
        Ok(driver)
    }

    /// Feeds one input, and does what follows from it.
    pub(super) fn feed(self: &Arc<Self>, input: Input<Arc<Waiter>>) {
        self.feed_with(|_| input);
    }

    /// The same, for an input that depends on what is known under the lock.
    pub(super) fn feed_with(
        self: &Arc<Self>,
        input: impl FnOnce(&mut Locked<R>) -> Input<Arc<Waiter>>,
    ) {
        let mut effects = Effects::default(); // Outlives the lock also in a panic.
        let mut locked = self.lock();
        let input = input(&mut locked);
        locked.handle(self.now(), input, &mut effects);
        drop(locked);
        self.follow(effects);
    }

    /// As [`feed`](Self::feed), but another task tells subscribers and performs actions, so that no subscriber delays the
    /// task that feeds, or one that is woken here: a runtime may keep that for the thread that woke it.
    pub(super) fn feed_apart(self: &Arc<Self>, input: Input<Arc<Waiter>>) {
        let mut effects = Effects::default(); // Outlives the lock also in a panic.
        self.lock().handle(self.now(), input, &mut effects);
        effects.run();
        self.follow_apart(effects, Left::default());
    }

    fn follow_apart(self: &Arc<Self>, effects: Effects<R>, left: Left) {
        let number = {
            let mut tasks = Lock::lock(&self.tasks);
            tasks.last += 1;
            let number = tasks.last;
            tasks.following.insert(number, None);
            number
        };
        let driver = Arc::clone(self);
        let following = Following { driver, number, effects, left, has_ended: false };
        // Not under a lock: a runtime that has shut down drops the task at once, which does the same.
        let task = self.runtime.spawn(following.run());
        if let Some(place) = Lock::lock(&self.tasks).following.get_mut(&number) {
            *place = Some(task);
        }
    }

    /// A caller that waits for a server goes away. Nothing follows from it: callers may do so under locks of theirs.
    pub(super) fn cancel(&self, id: SelectionId) {
        if !self.is_inherited() {
            let mut effects = Effects::default(); // Outlives the lock.
            self.lock().handle(self.now(), Input::CancelSelection { id }, &mut effects);
        }
    }

    /// Applies SDAM's error handling to an error of a pooled connection, before the pool and the caller get it:
    /// description, monitor and pool change at once.
    // CLR-15, ES-05, SD-24, SD-25, SD-26, SD-31, SD-54
    fn connection_failed(self: &Arc<Self>, server: ServerId, failure: &Failure<'_>) {
        // Monitors are the parent's: nothing would mark a pool ready again.
        if self.is_inherited() {
            return;
        }
        let mut effects = Effects::default(); // Outlives the lock also in a panic.
        let mut locked = self.lock();
        let ConnectionStatus { is_stale, service, load_balanced: _ } = failure.status();
        let (error, is_current) = (failure.error().clone(), !is_stale);
        let step = locked.state.recorder().steps() + 1;
        let input = Input::ConnectionFailed { server, error, is_current, service };
        locked.handle(self.now(), input, &mut effects);
        let is_told = locked.state.recorder().steps() >= step;
        drop(locked);
        if is_told {
            failure.record(step);
        }
        self.follow(effects);
    }

    /// Does what follows from an input, without the lock. The start of a check is told before its socket is opened.
    /// Subscribers of pools come last, so that a check is told before what it does to a pool.
    // SD-09, SM-12
    fn follow(self: &Arc<Self>, mut effects: Effects<R>) {
        let left = self.follow_some(&mut effects, Left::default());
        if left.is_any() {
            self.follow_apart(effects, left);
        }
    }

    /// One turn of it, and of what an earlier one has left, unless another thread does so already.
    fn follow_some(self: &Arc<Self>, effects: &mut Effects<R>, left: Left) -> Left {
        effects.run();
        let events = self.tell_some(left.events);
        let work = self.perform_some(effects, left.work);
        effects.run();
        effects.tell();
        self.tell_closed();
        Left { work, events }
    }

    fn tell_closed(&self) {
        let closed = self.lock().take_closed();
        closed.iter().for_each(PoolDriver::tell_pending);
    }

    /// How many turns the actions take that are left to be performed.
    pub(super) fn turns_left(&self) -> u32 {
        (self.lock().work.queued() / TURN).try_into().unwrap_or(u32::MAX)
    }

    /// Returns whether something is left.
    fn perform_some(self: &Arc<Self>, effects: &mut Effects<R>, is_rest: bool) -> bool {
        let batch = {
            let work = &mut self.lock().work;
            if is_rest { Some(work.claim_rest(TURN)) } else { work.claim() }
        };
        let Some(batch) = batch else { return false };
        let perform = |action| self.perform(action, effects);
        drain_some(TURN, || self.lock(), batch, perform).work.queued() > 0
    }

    /// Returns whether something is left.
    fn tell_some(self: &Arc<Self>, is_rest: bool) -> bool {
        let _here = R::CALLERS_BLOCK.then(|| ReentrancyGuard::enter(self));
        let mut locked = self.lock();
        let has_overflowed = locked.notifications.take_overflow();
        let events = &mut locked.notifications;
        let batch = if is_rest { Some(events.claim_rest(TOLD)) } else { events.claim() };
        drop(locked);
        if has_overflowed {
            log::topology::events_dropped(self.teller.topology_id());
        }
        let Some(batch) = batch else { return false };
        let locked = drain_some(TOLD, || self.lock(), batch, |event| self.teller.tell(event));
        let (is_left, is_closed) = (locked.notifications.queued() > 0, locked.is_closed);
        drop(locked);
        if is_closed {
            self.ended.notify_all();
        }
        is_left
    }

    fn perform(self: &Arc<Self>, action: Action<Arc<Waiter>>, effects: &mut Effects<R>) {
        match action {
            Action::OpenPool { server, address, is_ready } => {
                self.open_pool(server, &address, is_ready, effects);
            }
            Action::ClosePool { server, .. } => {
                let removed = self.lock().remove_server(server);
                if let Some(server) = removed {
                    let pool = server.pool().driver();
                    pool.close_untold();
                    self.lock().closed(pool);
                    effects.keep(server);
                }
            }
            Action::OpenSocket { server, socket, .. } => self.open_socket(server, socket),
            Action::Send { server, socket, command, flags } => {
                self.sockets.send((server, socket), command, flags);
            }
            Action::CloseSocket { server, socket } => self.sockets.close((server, socket)),
            #[cfg(feature = "srv")]
            Action::LookUp { name } => self.look_up(name),
            #[cfg(not(feature = "srv"))]
            Action::LookUp { .. } => unreachable!("no records are followed without the feature"),
            Action::ReportRecords(problem) => log::srv_records(&problem),
            Action::FeedPool { .. } | Action::Deliver { .. } | Action::EmitEvent(_) => {
                unreachable!("done under the lock")
            }
        }
    }

    fn open_socket(self: &Arc<Self>, server: ServerId, socket: SocketId) {
        let known = self.lock().server(server).map(|it| Arc::clone(it.pool().driver().address()));
        match known {
            Some(address) => self.sockets.open(self, (server, socket), address),
            None => {
                let error =
                    ConnectionError::local(Stage::Tcp, "the server has no pool: see the log");
                self.feed_apart(Input::SocketFailed { server, socket, error });
            }
        }
    }

    #[cfg(feature = "srv")]
    fn look_up(self: &Arc<Self>, name: String) {
        let driver = Arc::clone(self);
        // Not under a lock: a runtime that has shut down drops the task at once.
        let task = self.runtime.spawn(async move {
            let records = driver.name_service.records(name).await;
            driver.feed_apart(Input::LookedUp { records, draw: random() });
        });
        let ended = Lock::lock(&self.tasks).look_up.replace(task);
        drop(ended);
        // It may have been closed since this was to be done.
        if self.lock().is_closed {
            let task = Lock::lock(&self.tasks).look_up.take();
            task.into_iter().for_each(R::abort);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Locked<R>> {
        Lock::lock(&self.inner)
    }
}

/// Pools.
impl<R: Network> ClientDriver<R> {
    /// Those of the connection string, in its order.
    fn open_first_pools(self: &Arc<Self>) -> Result<(), ClientBuildError> {
        let servers: Vec<_> =
            self.lock().state.servers().map(|(id, it)| (id, Arc::clone(it))).collect();
        for (id, address) in servers {
            self.add_server(id, (self.make_pool)(self, id, &address)?);
        }
        Ok(())
    }

    fn open_pool(
        self: &Arc<Self>,
        id: ServerId,
        address: &ServerAddress,
        is_ready: bool,
        effects: &mut Effects<R>,
    ) {
        // Those of the connection string are there already.
        let is_done = {
            let locked = self.lock();
            locked.is_closed || locked.server(id).is_some()
        };
        if !is_done {
            // It may have one that was closed just now.
            self.tell_closed();
            match (self.make_pool)(self, id, address) {
                Ok(pool) => self.add_server(id, pool),
                Err(error) => return log::server_not_added(address, &error),
            }
        }
        let Some(server) = self.lock().server(id).cloned() else { return };
        let pool = server.pool().driver();
        // LB-08
        if is_ready {
            pool.feed_within(pool::Input::Ready, None);
            pool.run_pending_work();
        }
        effects.tell_later(pool);
    }

    fn build_pool<P>(
        self: &Arc<Self>,
        id: ServerId,
        builder: Builder<P>,
    ) -> Result<Pool<R, MongoConnector<R>>, BuildError>
    where
        P: BuiltPool<Connector = MongoConnector<R>>,
    {
        let driver = Arc::downgrade(self);
        let mut plan = builder
            .on_failure(move |failure| {
                if let Some(driver) = driver.upgrade() {
                    driver.connection_failed(id, failure);
                }
            })
            .into_plan();
        plan.origin = Some(self.origin);
        Pool::start_untold(plan, self.runtime.clone())
    }

    fn add_server(&self, id: ServerId, pool: Pool<R, MongoConnector<R>>) {
        #[cfg(unix)]
        if let Some(inspector) = self.inspector.get() {
            inspector.show(pool.driver().inspected());
        }
        let server = Arc::new(Server::new(pool, self.is_load_balanced));
        let is_closed = {
            let mut locked = self.lock();
            locked.add_server(id, Arc::clone(&server));
            locked.is_closed
        };
        // Meanwhile.
        if is_closed {
            server.pool().driver().close_untold();
        }
    }

    #[cfg(unix)]
    fn inspect(&self, path: Option<PathBuf>) -> Result<(), BuildError> {
        let Some(path) = path else { return Ok(()) };
        let servers = self.lock().servers();
        let pools = servers.iter().map(|server| server.pool().driver().inspected());
        let _ = self.inspector.set(Inspector::start(&path, R::PROGRAM, pools)?);
        Ok(())
    }

    pub(super) fn end_inspection(&self) {
        #[cfg(unix)]
        self.inspector.get().into_iter().for_each(Inspector::close);
    }
}

/// The end.
impl<R: Network> ClientDriver<R> {
    /// First callers that wait for a server hear of it, then the monitors end, then the pools close. In a child process
    /// only the pools that were reset there.
    // SD-10, ND-09
    pub(super) fn close(self: &Arc<Self>) {
        if self.is_inherited() {
            return self.close_in_child();
        }
        let mut effects = Effects::default(); // Outlives the lock also in a panic.
        self.lock().handle(self.now(), Input::Close, &mut effects);
        effects.run();
        let (timer, look_up) = {
            let mut tasks = Lock::lock(&self.tasks);
            (tasks.timer.take(), tasks.look_up.take())
        };
        timer.into_iter().chain(look_up).for_each(R::abort);
        let mut is_left = self.perform_some(&mut effects, false);
        while is_left {
            is_left = self.perform_some(&mut effects, true);
        }
        // Another thread may be about to do so.
        let servers = self.lock().all_servers();
        servers.into_iter().for_each(|server| effects.close_pool(server));
        let mut is_left = self.tell_some(false);
        while is_left {
            is_left = self.tell_some(true);
        }
        self.tell_closed();
    }

    /// Another thread of the parent may have had the lock when the process was forked: it has it for ever.
    fn close_in_child(&self) {
        let servers = self.inner.try_lock().map(|locked| locked.all_servers());
        for server in servers.iter().flatten() {
            let pool = server.pool().driver();
            if !pool.is_inherited() {
                pool.close();
            }
        }
    }

    /// The runtime has shut down: nothing is checked any more, and callers that wait hear of it.
    pub(super) fn runtime_ended(self: &Arc<Self>) {
        let is_closed = self.is_inherited() || self.lock().is_closed;
        if !is_closed {
            self.close();
        }
    }

    /// Waits until no monitoring socket is left, once the client is closed, for [`CLOSE_GRACE`] at most.
    pub(super) async fn sockets_ended(&self) {
        timeout_at(&self.runtime, R::now() + CLOSE_GRACE, pin!(self.sockets.ended())).await;
    }

    /// Waits until the subscribers were told everything, once the client is closed, for [`CLOSE_GRACE`] at most.
    pub(super) async fn told(&self) {
        let told = async {
            loop {
                // Before it is looked at, so that the last event is not missed.
                let ended = self.ended.listen();
                if self.has_ended() {
                    return;
                }
                ended.await;
            }
        };
        if timeout_at(&self.runtime, R::now() + CLOSE_GRACE, pin!(told)).await.is_none() {
            log::topology::close_gave_up(self.teller.topology_id());
        }
    }

    /// Blocks until the subscribers were told everything, once the client is closed, until `deadline` at most.
    pub(super) fn told_blocking(&self, deadline: Option<Instant>) {
        loop {
            let ended = self.ended.listen();
            if self.has_ended() {
                return;
            }
            if !ended.wait(deadline) {
                return log::topology::close_gave_up(self.teller.topology_id());
            }
        }
    }

    /// Whether it is closed and everything was told.
    fn has_ended(&self) -> bool {
        let locked = self.lock();
        locked.is_closed && locked.notifications.is_idle()
    }

    /// Whether this is a child of the process in which the tasks run.
    pub(super) fn is_inherited(&self) -> bool {
        !self.process.is_current()
    }

    /// Whether this thread runs a subscriber of the servers. Known only where callers block.
    pub(super) fn is_performing_here(self: &Arc<Self>) -> bool {
        ReentrancyGuard::is_here(self)
    }
}

/// Time.
impl<R: Network> ClientDriver<R> {
    /// The time as the machines count it.
    fn now(&self) -> pool::Instant {
        self.instant(R::now())
    }

    pub(super) fn instant(&self, time: Instant) -> pool::Instant {
        self.origin.instant(time)
    }

    /// A time of the machines as the runtime counts it; `None` is out of the clock's range, which means never.
    pub(super) fn time_of(&self, instant: pool::Instant) -> Option<Instant> {
        instant.into_std(self.origin.at)
    }
}

impl<R: Network> Traced for ClientDriver<R> {
    type Recorder = ClientState<Arc<Waiter>>;

    fn locked<T>(&self, act: impl FnOnce(&mut Recorded<Self::Recorder>) -> T) -> T {
        act(&mut self.lock().state)
    }

    fn try_locked<T>(&self, act: impl FnOnce(&mut Recorded<Self::Recorder>) -> T) -> Option<T> {
        match self.inner.try_lock() {
            Ok(mut locked) => Some(act(&mut locked.state)),
            Err(TryLockError::Poisoned(poisoned)) => Some(act(&mut poisoned.into_inner().state)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn traces(&self) -> &Traces {
        &self.traces
    }
}
