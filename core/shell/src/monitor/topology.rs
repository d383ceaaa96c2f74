//! The topology of a client: what its monitors learn, put together, and which servers follow from it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

use bson::oid::ObjectId;
use cenote_core::address::ServerAddress;
use cenote_core::client::{HeartbeatEvent, TopologyEvent};
use cenote_core::log::LogSettings;
use cenote_core::monitor::{self, ServerDescription};
use cenote_core::outbox::{self, Outbox};
use cenote_core::pool::Instant;
use cenote_core::sdam::TopologyVersion;
use cenote_core::topology::{
    Action, Event, Input, ServerId, Topology, TopologyDescription, TopologyOptions,
};
use cenote_core::trace::topology::Recorder;

use super::subscribers::{SdamSubscribers, call_each};
use crate::log::{OF_ENVIRONMENT, topology as log};
use crate::notifications::NotificationQueue;
use crate::runtime::Lock;
use crate::runtime::origin::Origin;
use crate::runtime::signal::Signal;
use crate::trace::{self, Recorded, RecordingError, TraceOptions, Traced, Traces};

/// The machine of [`cenote_core::topology`] under its lock. Adds and removes servers. Tells subscribers and the log
/// what is known, and of the heartbeats of all monitors, in one order for the whole client.
pub(crate) struct TopologyDriver {
    id: ObjectId,
    /// As the log has it.
    id_text: String,
    settings: LogSettings,
    subscribers: SdamSubscribers,
    members: OnceLock<Box<dyn Members>>,
    /// Notified when the topology is closed and its last event was told.
    ended: Signal,
    traces: Traces,
    /// Locked after a monitor and before a pool.
    inner: Mutex<TopologyInner>,
}

// SE-07
struct TopologyInner {
    topology: Recorded<Recorder>,
    /// Servers to add and to remove, in the machine's order. No subscriber delays them.
    work: Outbox<Action>,
    notifications: NotificationQueue<SdamEvent>,
    is_closed: bool,
}

/// What subscribers and the log are told.
enum SdamEvent {
    Heartbeat(Arc<ServerAddress>, monitor::Event),
    Topology(Event),
}

/// What one input of a monitor leads to.
#[derive(Default)]
pub(super) struct Observation {
    /// What was told before the description changed.
    pub(super) before: Vec<monitor::Event>,
    /// What is known of the server from now on, if that is something else, and which server of the topology it is.
    pub(super) described: Option<(ServerId, Arc<ServerDescription>)>,
    /// What was told after that.
    pub(super) after: Vec<monitor::Event>,
}

/// Adds and removes the servers of a client.
pub(crate) trait Members: Send + Sync {
    /// Makes the pool of a server and starts its monitor.
    fn add(&self, id: ServerId, address: &ServerAddress);

    /// Closes the monitor of a server and then its pool.
    fn remove(&self, address: &ServerAddress);
}

impl TopologyDriver {
    /// `event_queue` is how many events may wait for subscribers. `program` is what traces say has recorded them, and
    /// `time` when that begins.
    pub(crate) fn new(
        options: TopologyOptions,
        settings: Option<LogSettings>,
        subscribers: SdamSubscribers,
        event_queue: usize,
        tracing: TraceOptions,
        program: &str,
        time: (Instant, Origin),
    ) -> Result<Arc<Self>, RecordingError> {
        let (mut work, mut notifications) =
            (Outbox::default(), NotificationQueue::new(event_queue));
        let topology =
            Topology::new(options, &mut |action| sort(action, &mut work, &mut notifications));
        let (topology, traces) = tracing.begin(Recorder::new(topology), None, program, time)?;
        let id = ObjectId::new();
        let driver = Arc::new(Self {
            id,
            id_text: id.to_hex(),
            settings: settings.unwrap_or_else(|| *OF_ENVIRONMENT),
            subscribers,
            members: OnceLock::new(),
            ended: Signal::default(),
            traces,
            inner: Mutex::new(TopologyInner { topology, work, notifications, is_closed: false }),
        });
        trace::watch(&driver);
        Ok(driver)
    }

    /// What adds and removes servers, of which the first ones wait. To be called once.
    pub(super) fn set_members(&self, members: Box<dyn Members>) {
        let is_first = self.members.set(members).is_ok();
        debug_assert!(is_first, "it is started once");
    }

    /// Feeds one input. What follows from it waits for [`notify`](Self::notify) and
    /// [`change_servers`](Self::change_servers).
    pub(crate) fn feed(&self, now: Instant, input: Input) {
        let mut inner = self.lock();
        inner.is_closed |= matches!(input, Input::Close);
        inner.feed(now, input);
    }

    /// Takes what a monitor has learnt, and changes a pool under the same lock, so that no other thread selects a server
    /// whose pool does not match its description. What follows waits as after [`feed`](Self::feed).
    // SD-04
    pub(super) fn observe<T>(
        &self,
        now: Instant,
        address: &Arc<ServerAddress>,
        Observation { before, described, after }: Observation,
        change_pool: impl FnOnce(&TopologyDescription) -> T,
    ) -> T {
        let mut inner = self.lock();
        inner.tell(address, before);
        if let Some((id, description)) = described {
            inner.feed(now, Input::Described { id, description });
        }
        inner.tell(address, after);
        change_pool(inner.topology.description())
    }

    /// Tells what has happened so far, unless another thread does so already. To be called without a lock.
    pub(super) fn notify(&self) {
        let mut inner = self.lock();
        let has_overflowed = inner.notifications.take_overflow();
        let batch = inner.notifications.claim();
        drop(inner);
        if has_overflowed {
            log::events_dropped(&self.id_text);
        }
        let Some(batch) = batch else { return };
        let is_closed = outbox::drain(|| self.lock(), batch, |event| self.tell(event)).is_closed;
        if is_closed {
            self.ended.notify_all();
        }
    }

    /// Adds and removes servers as the inputs so far say, unless another thread does so already. To be called without a
    /// lock.
    pub(super) fn change_servers(&self) {
        outbox::release(|| self.lock(), self.lock(), |action| self.perform(action));
    }

    pub(crate) fn description(&self) -> Arc<TopologyDescription> {
        Arc::clone(self.lock().topology.description())
    }

    /// How many events were dropped because a subscriber blocks.
    pub(crate) fn dropped_events(&self) -> u64 {
        self.lock().notifications.dropped()
    }

    /// Unique among the clients of the process, and others.
    pub(crate) fn id(&self) -> &str {
        &self.id_text
    }

    /// What the texts of servers are cut by in the log.
    pub(crate) const fn log_settings(&self) -> &LogSettings {
        &self.settings
    }

    /// Notified when it may have [ended](Self::has_ended).
    pub(crate) const fn ended(&self) -> &Signal {
        &self.ended
    }

    /// Whether it is closed and everything was told.
    pub(crate) fn has_ended(&self) -> bool {
        let inner = self.lock();
        inner.is_closed && inner.notifications.is_idle()
    }

    /// A subscriber has not returned since the client was closed.
    pub(crate) fn close_gave_up(&self) {
        log::close_gave_up(&self.id_text);
    }

    /// How much is known of the state of a server.
    pub(super) fn topology_version(&self, address: &ServerAddress) -> Option<TopologyVersion> {
        self.lock().topology.description().server(address)?.topology_version
    }

    fn perform(&self, action: Action) {
        let Some(members) = self.members.get() else { return };
        match action {
            Action::AddServer { id, address } => members.add(id, &address),
            Action::RemoveServer { id: _, address } => members.remove(&address),
            Action::EmitEvent(_) => unreachable!("told, not performed"),
        }
    }

    fn tell(&self, event: SdamEvent) {
        let topology_id = self.id;
        if log::is_wanted() {
            self.log(&event);
        }
        match event {
            SdamEvent::Heartbeat(address, event) if !self.subscribers.heartbeats.is_empty() => {
                let event = HeartbeatEvent { topology_id, address, event };
                call_each(&self.subscribers.heartbeats, &event);
            }
            SdamEvent::Topology(event) if !self.subscribers.topology.is_empty() => {
                call_each(&self.subscribers.topology, &TopologyEvent { topology_id, event });
            }
            SdamEvent::Heartbeat(..) | SdamEvent::Topology(_) => {}
        }
    }

    fn log(&self, event: &SdamEvent) {
        match event {
            SdamEvent::Heartbeat(address, event) => {
                log::heartbeat(event, address, &self.id_text, &self.settings);
            }
            SdamEvent::Topology(event) => log::topology(event, &self.id_text),
        }
    }

    fn lock(&self) -> MutexGuard<'_, TopologyInner> {
        Lock::lock(&self.inner)
    }
}

impl Traced for TopologyDriver {
    type Recorder = Recorder;

    fn locked<T>(&self, act: impl FnOnce(&mut Recorded<Recorder>) -> T) -> T {
        act(&mut self.lock().topology)
    }

    fn try_locked<T>(&self, act: impl FnOnce(&mut Recorded<Recorder>) -> T) -> Option<T> {
        match self.inner.try_lock() {
            Ok(mut inner) => Some(act(&mut inner.topology)),
            Err(TryLockError::Poisoned(poisoned)) => Some(act(&mut poisoned.into_inner().topology)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn traces(&self) -> &Traces {
        &self.traces
    }
}

impl TopologyInner {
    fn feed(&mut self, now: Instant, input: Input) {
        let Self { topology, work, notifications, .. } = self;
        topology.handle(now, input, &mut |action| sort(action, work, notifications));
        topology.call_writer_if_full();
    }

    /// Nothing is told of a server that does not belong to the topology: its monitor is about to end, and the topology has
    /// told that the server is closed.
    fn tell(&mut self, address: &Arc<ServerAddress>, events: Vec<monitor::Event>) {
        if self.topology.description().server(address).is_some() {
            let events = events.into_iter();
            events.for_each(|event| {
                self.notifications.push(SdamEvent::Heartbeat(Arc::clone(address), event));
            });
        }
    }
}

// SE-02
fn sort(
    action: Action,
    work: &mut Outbox<Action>,
    notifications: &mut NotificationQueue<SdamEvent>,
) {
    match action {
        Action::EmitEvent(event) => notifications.push(SdamEvent::Topology(event)),
        Action::AddServer { .. } | Action::RemoveServer { .. } => work.push(action),
    }
}

impl AsMut<Outbox<Action>> for TopologyInner {
    fn as_mut(&mut self) -> &mut Outbox<Action> {
        &mut self.work
    }
}

impl AsMut<Outbox<SdamEvent>> for TopologyInner {
    fn as_mut(&mut self) -> &mut Outbox<SdamEvent> {
        self.notifications.as_mut()
    }
}
