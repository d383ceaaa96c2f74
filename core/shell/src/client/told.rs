//! What subscribers of a client and the log are told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bson::oid::ObjectId;
use cenote_core::address::ServerAddress;
use cenote_core::client::machine::Event;
use cenote_core::client::{HeartbeatEvent, TopologyEvent};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::log::LogSettings;
use cenote_core::topology;

use crate::log::{OF_ENVIRONMENT, topology as log};
use crate::runtime::{Lock, contain};

type Subscriber<T> = Box<dyn Fn(&T) + Send + Sync>;

/// The subscribers of a client.
#[derive(Default)]
pub(super) struct SdamSubscribers {
    pub(super) heartbeats: Vec<Subscriber<HeartbeatEvent>>,
    pub(super) topology: Vec<Subscriber<TopologyEvent>>,
}

/// Tells subscribers and the log what is known, and of the heartbeats of all monitors.
pub(super) struct Teller {
    id: ObjectId,
    /// As the log has it.
    id_text: String,
    settings: LogSettings,
    subscribers: SdamSubscribers,
    /// Which servers were refused, and at which stage, as the log was told.
    refused: Mutex<BTreeSet<(Arc<ServerAddress>, Stage)>>,
}

/// So many refusals of a client are told: a member may name others each time.
const REFUSALS_MAX: usize = 1_000;

impl Teller {
    pub(super) fn new(settings: Option<LogSettings>, subscribers: SdamSubscribers) -> Self {
        let id = ObjectId::new();
        let settings = settings.unwrap_or_else(|| *OF_ENVIRONMENT);
        Self { id, id_text: id.to_hex(), settings, subscribers, refused: Mutex::default() }
    }

    /// Unique among the clients of the process, and others.
    pub(super) fn topology_id(&self) -> &str {
        &self.id_text
    }

    /// What the texts of servers are cut by in the log.
    pub(super) const fn log_settings(&self) -> &LogSettings {
        &self.settings
    }

    /// To be called without a lock: subscribers may take long, and may panic.
    pub(super) fn tell(&self, event: Event) {
        let topology_id = self.id;
        if let Event::Topology(event) = &event {
            self.warn(event);
        }
        if log::is_wanted() {
            self.log(&event);
        }
        match event {
            Event::Heartbeat { address, event, .. } if !self.subscribers.heartbeats.is_empty() => {
                let event = HeartbeatEvent { topology_id, address, event };
                call_each(&self.subscribers.heartbeats, &event);
            }
            Event::Topology(event) if !self.subscribers.topology.is_empty() => {
                call_each(&self.subscribers.topology, &TopologyEvent { topology_id, event });
            }
            Event::Heartbeat { .. } | Event::Topology(_) | Event::ToTopology(_) => {}
        }
    }

    /// The first time that a server is refused at a stage: it may be why an application does not start, long before
    /// callers have waited for `serverSelectionTimeoutMS`.
    fn warn(&self, event: &topology::Event) {
        if let topology::Event::ServerDescriptionChanged { address, new, .. } = event {
            let refused = new.error.iter().filter(|error| error.is_refusal());
            refused.for_each(|error| self.warn_of(address, error));
        }
        if let topology::Event::TopologyDescriptionChanged { new, .. } = event {
            new.excluded().for_each(|(address, error)| self.warn_of(address, error));
        }
    }

    fn warn_of(&self, address: &Arc<ServerAddress>, error: &ConnectionError) {
        let is_new = {
            let mut refused = Lock::lock(&self.refused);
            refused.len() < REFUSALS_MAX && refused.insert((Arc::clone(address), error.stage()))
        };
        if is_new {
            log::server_refused(address, &self.id_text, error);
        }
    }

    fn log(&self, event: &Event) {
        match event {
            Event::Heartbeat { address, event, .. } => {
                log::heartbeat(event, address, &self.id_text, &self.settings);
            }
            Event::Topology(event) => log::topology(event, &self.id_text),
            Event::ToTopology(_) => {}
        }
    }
}

fn call_each<T>(subscribers: &[Subscriber<T>], event: &T) {
    for subscriber in subscribers {
        // The panic hook has reported it; the other subscribers, and later events, are not affected.
        contain(|| subscriber(event));
    }
}
