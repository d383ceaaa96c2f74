//! What subscribers of a client and the log are told.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bson::oid::ObjectId;
use cenote_core::client::machine::Event;
use cenote_core::client::{HeartbeatEvent, TopologyEvent};
use cenote_core::log::LogSettings;

use crate::log::{OF_ENVIRONMENT, topology as log};

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
}

impl Teller {
    pub(super) fn new(settings: Option<LogSettings>, subscribers: SdamSubscribers) -> Self {
        let id = ObjectId::new();
        let settings = settings.unwrap_or_else(|| *OF_ENVIRONMENT);
        Self { id, id_text: id.to_hex(), settings, subscribers }
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
        let _ = catch_unwind(AssertUnwindSafe(|| subscriber(event)));
    }
}
