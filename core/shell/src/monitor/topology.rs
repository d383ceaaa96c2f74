//! The topology of a client: what its monitors learn, put together, and which servers follow from it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use bson::oid::ObjectId;
use cenote_core::address::ServerAddress;
use cenote_core::log::LogSettings;
use cenote_core::monitor;
use cenote_core::outbox::{self, Outbox};
use cenote_core::topology::{Action, Event, Input, Topology, TopologyDescription, TopologyOptions};

use crate::log::{OF_ENVIRONMENT, topology as log};
use crate::runtime::Lock;

/// The machine of [`cenote_core::topology`] under its lock. Adds and removes servers, and logs what changes.
pub(crate) struct TopologyDriver {
    /// In the log.
    id: String,
    settings: LogSettings,
    members: OnceLock<Box<dyn Members>>,
    /// Locked after a monitor and before a pool.
    inner: Mutex<TopologyInner>,
}

struct TopologyInner {
    topology: Topology,
    outbox: Outbox<Action>,
}

/// Adds and removes the servers of a client.
pub(crate) trait Members: Send + Sync {
    /// Makes the pool of a server and starts its monitor.
    fn add(&self, address: &ServerAddress);

    /// Closes the monitor of a server and then its pool.
    fn remove(&self, address: &ServerAddress);
}

impl TopologyDriver {
    pub(crate) fn new(options: TopologyOptions, settings: Option<LogSettings>) -> Self {
        let mut outbox = Outbox::default();
        let topology = Topology::new(options, &mut |action| outbox.push(action));
        Self {
            id: ObjectId::new().to_hex(),
            settings: settings.unwrap_or_else(|| *OF_ENVIRONMENT),
            members: OnceLock::new(),
            inner: Mutex::new(TopologyInner { topology, outbox }),
        }
    }

    /// Starts the servers of the connection string. To be called once.
    pub(crate) fn start(&self, members: Box<dyn Members>) {
        let is_first = self.members.set(members).is_ok();
        debug_assert!(is_first, "it is started once");
        self.perform_actions();
    }

    /// Feeds one input. What follows from it waits for [`perform_actions`](Self::perform_actions).
    pub(crate) fn feed(&self, input: Input) {
        self.feed_with(Some(input), || {});
    }

    /// As [`feed`](Self::feed), and changes a pool under the same lock, so that no other thread selects a server whose
    /// pool does not match its description. `None` leaves the description as it is.
    pub(super) fn feed_with<T>(&self, input: Option<Input>, change_pool: impl FnOnce() -> T) -> T {
        let mut inner = self.lock();
        let TopologyInner { topology, outbox } = &mut *inner;
        if let Some(input) = input {
            topology.handle(input, &mut |action| outbox.push(action));
        }
        change_pool()
    }

    /// Does what follows from the inputs so far, unless another thread does so already. To be called without a lock.
    pub(crate) fn perform_actions(&self) {
        outbox::release(|| self.lock(), self.lock(), |action| self.perform(action));
    }

    pub(crate) fn description(&self) -> Arc<TopologyDescription> {
        Arc::clone(self.lock().topology.description())
    }

    /// Logs an event of a monitor. To be called without a lock.
    pub(super) fn log_check(&self, address: &ServerAddress, event: &monitor::Event) {
        if log::is_wanted() {
            log::heartbeat(&self.id, address, event, self.settings);
        }
    }

    fn perform(&self, action: Action) {
        match action {
            Action::AddServer { server } => {
                self.members.get().into_iter().for_each(|it| it.add(&server));
            }
            Action::RemoveServer { server } => {
                self.members.get().into_iter().for_each(|it| it.remove(&server));
            }
            Action::EmitEvent(event) if log::is_wanted() => self.log(&event),
            Action::EmitEvent(_) => {}
        }
    }

    fn log(&self, event: &Event) {
        match event {
            Event::TopologyOpening => {
                log::topology_monitoring(&self.id, "Starting topology monitoring");
            }
            Event::TopologyDescriptionChanged { previous, new } => {
                log::description_changed(&self.id, previous, new);
            }
            Event::ServerOpening { address } => {
                log::server_monitoring(&self.id, address, "Starting server monitoring");
            }
            Event::ServerClosed { address } => {
                log::server_monitoring(&self.id, address, "Stopped server monitoring");
            }
            Event::TopologyClosed => {
                log::topology_monitoring(&self.id, "Stopped topology monitoring");
            }
            Event::ServerDescriptionChanged { .. } | _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, TopologyInner> {
        Lock::lock(&self.inner)
    }
}

impl AsMut<Outbox<Action>> for TopologyInner {
    fn as_mut(&mut self) -> &mut Outbox<Action> {
        &mut self.outbox
    }
}
