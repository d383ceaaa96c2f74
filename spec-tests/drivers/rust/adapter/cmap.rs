//! The driver's connection pool. `cenote_core::pool` takes every decision; sockets, TLS, handshakes,
//! SDAM, pinning and the public events are the driver's own.

pub(crate) mod conn;
pub(crate) mod establish;
#[cfg(test)]
mod mock;
pub(crate) mod options;
#[cfg(test)]
pub(crate) mod test;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant as StdInstant};

use cenote_core::outbox::{release, Outbox};
use cenote_core::pool::{
    Action, CheckOutError, CheckOutFailedReason, CloseReason, ConnId, Event, Health, Input,
    Instant, Maintenance, PoolOptions, PoolState, PoolTypes, Purpose, ServiceId, Status, WaiterId,
};
use derive_where::derive_where;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, oneshot};
use tokio::task::AbortHandle;

pub use self::conn::ConnectionInfo;
use self::conn::{pooled::PooledConnection, LoadBalancedGeneration, PendingConnection};
pub(crate) use self::conn::{Command, Connection, RawCommandResponse, StreamDescription};
use self::establish::ConnectionEstablisher;
use self::options::{BackgroundThreadInterval, ConnectionPoolOptions};
use crate::bson::oid::ObjectId;
use crate::error::{Error, Result};
use crate::event::cmap::*;
use crate::options::ServerAddress;
use crate::runtime::{AcknowledgedMessage, AcknowledgmentReceiver, AcknowledgmentSender};
use crate::sdam::{topology::TopologyShutdown, BroadcastMessage, TopologyUpdater};

pub(crate) const DEFAULT_MAX_POOL_SIZE: u32 = 10;

type Outcome = Result<PooledConnection>;

enum Driver {}

impl PoolTypes for Driver {
    type Conn = Box<PooledConnection>;
    type Waiter = oneshot::Sender<Outcome>;
    /// `None`: the operation was dropped before its reply was read.
    type Cause = Option<Error>;
}

/// A handle to a pool, which is closed when the last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPool {
    pool: Arc<Pool>,
    _is_open: Arc<oneshot::Sender<()>>,
}

#[derive_where(Debug)]
#[derive_where(skip_inner)]
pub(crate) struct Pool {
    address: ServerAddress,
    options: ConnectionPoolOptions,
    emitter: CmapEventEmitter,
    establisher: ConnectionEstablisher,
    updater: TopologyUpdater,
    runtime: Handle,
    origin: StdInstant,
    /// To all connections in use; not behind a load balancer.
    interrupt: Option<broadcast::Sender<()>>,
    inner: Mutex<Inner>,
}

struct Inner {
    state: PoolState<Driver>,
    outbox: Outbox<Action<Driver>>,
    last_waiter: u64,
    /// When the timer fires.
    armed: Option<Instant>,
    /// The tasks that establish.
    aborts: HashMap<ConnId, AbortHandle>,
    filling: Vec<AcknowledgmentSender<()>>,
}

impl AsMut<Outbox<Action<Driver>>> for Inner {
    fn as_mut(&mut self) -> &mut Outbox<Action<Driver>> {
        &mut self.outbox
    }
}

impl ConnectionPool {
    pub(crate) fn new(
        address: ServerAddress,
        establisher: ConnectionEstablisher,
        updater: TopologyUpdater,
        options: Option<ConnectionPoolOptions>,
        shutdown: TopologyShutdown,
    ) -> Self {
        let options = options.unwrap_or_default();
        let is_balanced = options.load_balanced == Some(true);
        let is_ready = is_balanced || options.ready == Some(true);
        let max = options.max_pool_size.unwrap_or(DEFAULT_MAX_POOL_SIZE);
        let mut machine = PoolOptions::default().with_max_pool_size(max);
        machine.min_pool_size = options.min_pool_size.map(|min| min.min(max));
        machine.load_balanced = options.load_balanced;
        machine.max_idle_time = options.max_idle_time;
        machine.max_connecting = options.max_connecting;
        machine.wait_queue_timeout = options.wait_queue_timeout;
        machine.maintenance = options.background_thread_interval.map(|interval| match interval {
            BackgroundThreadInterval::Never => Maintenance::Never,
            BackgroundThreadInterval::Every(pause) => Maintenance::PauseAfterFailure(pause),
        });
        let mut outbox = Outbox::default();
        let new = if is_ready { PoolState::new_ready } else { PoolState::new };
        let state = new(Instant::ORIGIN, machine, &mut outbox).expect("options are validated");
        let (last_waiter, armed, aborts, filling) = (0, None, HashMap::new(), Vec::new());
        let pool = Arc::new(Pool {
            address,
            emitter: CmapEventEmitter::new(options.cmap_event_handler.clone()),
            options,
            establisher,
            updater,
            runtime: Handle::current(),
            origin: StdInstant::now(),
            interrupt: (!is_balanced).then(|| broadcast::channel(1).0),
            inner: Inner { state, outbox, last_waiter, armed, aborts, filling }.into(),
        });
        pool.feed(|_| Input::Timer); // Performs what the new pool wants.
        let (is_open, end) = oneshot::channel();
        let this = Self { pool: pool.clone(), _is_open: is_open.into() };
        // A client that shuts down waits for this.
        tokio::spawn(shutdown.tasks.track_future(async move {
            drop(end.await);
            pool.feed(|_| Input::Close);
        }));
        this
    }
}

impl Deref for ConnectionPool {
    type Target = Arc<Pool>;

    fn deref(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Pool {
    pub(crate) async fn check_out(self: &Arc<Self>) -> Outcome {
        let (waiter, outcome) = oneshot::channel();
        let mut id = WaiterId(0);
        self.feed(|inner| {
            inner.last_waiter += 1;
            id = WaiterId(inner.last_waiter);
            Input::CheckOutRequested { id, waiter, deadline: None, purpose: Purpose::Other }
        });
        let cancel = OnDrop(|| self.feed(|_| Input::CheckOutCancelled { id }));
        let outcome = outcome.await.expect("each request has an outcome");
        std::mem::forget(cancel);
        outcome
    }

    pub(crate) async fn clear(self: &Arc<Self>, cause: Error, service_id: Option<ObjectId>) {
        self.feed(|_| {
            let interrupt = service_id.is_none() && cause.is_network_timeout();
            let service = service_id.map(|id| ServiceId(id.bytes()));
            Input::Clear { cause: Some(cause), interrupt, service }
        });
    }

    pub(crate) async fn mark_as_ready(self: &Arc<Self>) {
        self.feed(|_| Input::Ready);
    }

    pub(crate) fn broadcast(self: &Arc<Self>, msg: BroadcastMessage) -> AcknowledgmentReceiver<()> {
        let (message, receiver) = AcknowledgedMessage::package(msg);
        match message.into_parts() {
            (BroadcastMessage::FillPool, sender) => self.feed(|inner| {
                inner.filling.push(sender);
                Input::Timer
            }),
            #[cfg(test)]
            (BroadcastMessage::SyncWorkers, sender) => sender.acknowledge(()),
        }
        receiver
    }

    /// Feeds one input, and performs the actions unless another thread does already.
    fn feed(self: &Arc<Self>, input: impl FnOnce(&mut Inner) -> Input<Driver>) {
        let mut inner = self.lock();
        let input = input(&mut inner);
        let now = Instant::ORIGIN + self.origin.elapsed();
        let Inner { state, outbox, filling, armed, .. } = &mut *inner;
        let fed = state.handle(now, input, outbox);
        debug_assert!(fed.is_ok(), "the machine refuses an input");
        if !filling.is_empty() && (state.is_filled() || state.snapshot().status != Status::Ready) {
            filling.drain(..).for_each(|sender| sender.acknowledge(()));
        }
        let deadline = state.next_deadline().map(|deadline| deadline.at);
        if let Some(at) = deadline.filter(|at| armed.is_none_or(|armed| *at < armed)) {
            *armed = Some(at);
            let wait = at.saturating_since(state.now());
            self.runtime.spawn(Self::timer(Arc::downgrade(self), at, wait));
        }
        release(|| self.lock(), inner, |action| self.perform(action));
    }

    async fn timer(pool: Weak<Self>, at: Instant, wait: Duration) {
        tokio::time::sleep(wait).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.feed(|inner| {
            inner.armed = inner.armed.filter(|armed| *armed != at);
            Input::Timer
        });
    }

    fn perform(self: &Arc<Self>, action: Action<Driver>) {
        match action {
            Action::StartEstablish { id, generation, .. } => self.start(id, generation as u32),
            Action::AbortEstablish { id } => {
                self.lock().aborts.remove(&id).map(|task| task.abort());
            }
            Action::Deliver { waiter, outcome } => {
                let outcome = outcome.map(|(id, mut connection)| {
                    let manager = PoolManager(self.clone(), id);
                    let interrupts = self.interrupt.as_ref().map(broadcast::Sender::subscribe);
                    connection.mark_checked_out(manager, interrupts);
                    *connection
                });
                // A connection whose caller is gone checks itself in when it is dropped.
                drop(waiter.send(outcome.map_err(|error| self.error_of(error))));
            }
            Action::Interrupt { .. } => drop(self.interrupt.as_ref().map(|it| it.send(()))),
            Action::EmitEvent(event) => {
                let _entered = self.runtime.enter();
                self.emitter.emit_event(|| self.public_event(event));
            }
            Action::CloseSocket { conn, .. } => drop(conn),
            // The options that lead to these are not set.
            Action::ReportLeak { .. } | Action::ReportUnanswered { .. } => {}
            Action::StartDrain { .. } | Action::AbortDrain { .. } => {}
        }
    }

    fn start(self: &Arc<Self>, id: ConnId, generation: u32) {
        let pending = PendingConnection {
            id: id.number() as u32,
            address: self.address.clone(),
            generation: match self.interrupt {
                Some(_) => PoolGeneration::Normal(generation),
                None => self.generation(),
            },
            event_emitter: self.emitter.clone(),
            time_created: StdInstant::now(),
            cancellation_receiver: None, // The task is aborted instead.
        };
        let made = self.runtime.spawn(self.clone().establish(id, pending));
        self.lock().aborts.insert(id, made.abort_handle());
        let pool = self.clone();
        // Answers after a panic, too. When the runtime ends, all of the driver ends.
        self.runtime.spawn(async move {
            let outcome = made.await.unwrap_or_else(|lost| Err(Error::internal(lost.to_string())));
            pool.feed(|inner| {
                inner.aborts.remove(&id);
                match outcome {
                    Ok(connection) => Input::EstablishSucceeded { id, conn: connection.into() },
                    Err(error) => {
                        let overloaded = error.contains_label("SystemOverloadedError");
                        Input::EstablishFailed { id, cause: Some(error), overloaded }
                    }
                }
            });
        });
    }

    async fn establish(self: Arc<Self>, id: ConnId, pending: PendingConnection) -> Outcome {
        // The driver names the service after authentication: what is cleared from now on counts.
        let clears = self.lock().state.service_clears();
        let credential = self.options.credential.as_ref();
        let made = self.establisher.establish_connection(pending, credential).await;
        if let Err(error) = made.as_ref().map_err(Clone::clone) {
            let (address, phase) = (self.address.clone(), error.handshake_phase);
            self.updater.handle_application_error(address, error.cause, phase).await;
        }
        let mut connection = made.map_err(|error| error.cause)?;
        if let Some(service_id) = connection.generation.service_id() {
            let (service, clears_at_hello) = (Some(ServiceId(service_id.bytes())), Some(clears));
            self.feed(|_| Input::Handshaken { id, service, clears_at_hello });
            let generation = self.lock().state.generation_of(id).unwrap_or_default() as u32;
            connection.generation = LoadBalancedGeneration { generation, service_id }.into();
        }
        Ok(connection)
    }

    pub(crate) fn generation(&self) -> PoolGeneration {
        let state = &self.lock().state;
        let of = |(id, number, _): (ServiceId, _, _)| (ObjectId::from_bytes(id.0), number as u32);
        match self.interrupt {
            Some(_) => PoolGeneration::Normal(state.generation() as u32),
            None => PoolGeneration::LoadBalanced(state.services().map(of).collect()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error_of(&self, error: CheckOutError<Option<Error>>) -> Error {
        match error {
            CheckOutError::EstablishFailed { cause: Some(cause) } => cause,
            CheckOutError::PoolCleared { cause: Some(Some(cause)) } => {
                Error::pool_cleared_error(&self.address, &cause)
            }
            error => Error::internal(format!("check-out failed: {}", error.reason().as_str())),
        }
    }

    fn public_event(&self, event: Event<Option<Error>>) -> CmapEvent {
        let address = self.address.clone();
        match event {
            Event::ConnectionPoolCreated { .. } => {
                PoolCreatedEvent { address, options: Some(self.options.to_event_options()) }.into()
            }
            Event::ConnectionPoolReady => PoolReadyEvent { address }.into(),
            Event::ConnectionPoolCleared { service_id, interrupt_in_use_connections } => {
                let service_id = service_id.map(|id| ObjectId::from_bytes(id.0));
                PoolClearedEvent { address, service_id, interrupt_in_use_connections }.into()
            }
            Event::ConnectionPoolClosed => PoolClosedEvent { address }.into(),
            Event::ConnectionCreated { connection_id: id } => {
                ConnectionCreatedEvent { address, connection_id: id as u32 }.into()
            }
            Event::ConnectionReady { connection_id: id, duration } => {
                ConnectionReadyEvent { address, connection_id: id as u32, duration }.into()
            }
            Event::ConnectionClosed { connection_id: id, reason, error } => {
                let reason = match (reason, error) {
                    (CloseReason::Stale, _) => ConnectionClosedReason::Stale,
                    (CloseReason::Idle, _) => ConnectionClosedReason::Idle,
                    (CloseReason::PoolClosed, _) => ConnectionClosedReason::PoolClosed,
                    (_, Some(None)) => ConnectionClosedReason::Dropped,
                    _ => ConnectionClosedReason::Error,
                };
                let (connection_id, service_id) = (id as u32, None);
                ConnectionClosedEvent { address, connection_id, reason, service_id }.into()
            }
            Event::ConnectionCheckOutStarted { .. } => ConnectionCheckoutStartedEvent { address }.into(),
            Event::ConnectionCheckOutFailed { error, duration, .. } => {
                let reason = match error.reason() {
                    CheckOutFailedReason::PoolClosed => ConnectionCheckoutFailedReason::PoolClosed,
                    CheckOutFailedReason::Timeout => ConnectionCheckoutFailedReason::Timeout,
                    _ => ConnectionCheckoutFailedReason::ConnectionError,
                };
                let duration = duration.get();
                ConnectionCheckoutFailedEvent { address, reason, duration }.into()
            }
            Event::ConnectionCheckedOut { connection_id: id, duration, .. } => {
                let duration = duration.get();
                ConnectionCheckedOutEvent { address, connection_id: id as u32, duration }.into()
            }
            Event::ConnectionCheckedIn { connection_id: id } => {
                ConnectionCheckedInEvent { address, connection_id: id as u32 }.into()
            }
            event => unreachable!("the option for {} is not set", event.name()),
        }
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// Checks one connection in.
#[derive(Clone, Debug)]
pub(crate) struct PoolManager(Arc<Pool>, ConnId);

impl PoolManager {
    /// Never an error: even a closed pool takes the connection.
    fn check_in(&self, mut conn: PooledConnection) -> std::result::Result<(), PooledConnection> {
        conn.mark_checked_in();
        let health = match (&conn.error, conn.is_executing()) {
            (None, false) => Health::Healthy,
            (error, _) => Health::Errored(error.clone()),
        };
        self.0.feed(|_| Input::CheckedIn { id: self.1, conn: conn.into(), health });
        Ok(())
    }
}

/// The numbers that SDAM compares.
#[derive(Clone, Debug)]
pub(crate) enum PoolGeneration {
    Normal(u32),
    LoadBalanced(HashMap<ObjectId, u32>),
}

pub(crate) fn is_faas() -> bool {
    establish::handshake::FaasEnvironmentName::new().is_some()
}
