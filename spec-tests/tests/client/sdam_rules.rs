//! What a client tells of its servers, and the rules about that, which every client of these tests keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use bson::oid::ObjectId;
use cenote_core::address::ServerAddress;
use cenote_core::client::{HeartbeatEvent, TopologyEvent};
use cenote_core::monitor::Event as Heartbeat;
use cenote_core::topology::{Event, TopologyKind};

/// What a client tells of its servers.
#[derive(Clone, Debug)]
pub(crate) enum SdamEvent {
    Heartbeat(HeartbeatEvent),
    Topology(TopologyEvent),
}

impl SdamEvent {
    pub(crate) const fn topology_id(&self) -> ObjectId {
        match self {
            Self::Heartbeat(told) => told.topology_id,
            Self::Topology(told) => told.topology_id,
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Heartbeat(told) => told.event.name(),
            Self::Topology(told) => told.event.name(),
        }
    }

    /// What the topology has become.
    pub(crate) fn topology_kind(&self) -> Option<TopologyKind> {
        let Self::Topology(told) = self else { return None };
        let Event::TopologyDescriptionChanged { new, .. } = &told.event else {
            return None;
        };
        Some(new.kind)
    }
}

impl fmt::Display for SdamEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heartbeat(told) => told.fmt(f),
            Self::Topology(told) => told.fmt(f),
        }
    }
}

/// Judges the events of one client. Dropped, it panics if a rule was broken.
#[derive(Default)]
pub(crate) struct SdamGuard {
    is_called: AtomicBool,
    story: Mutex<Story>,
}

#[derive(Default)]
struct Story {
    told: usize,
    topology: Option<ObjectId>,
    /// As the last description of the topology was shown.
    description: String,
    /// The open servers, and whether a heartbeat is under way.
    servers: BTreeMap<Arc<ServerAddress>, bool>,
    is_closed: bool,
    broken: BTreeSet<String>,
}

impl SdamGuard {
    /// Events come one at a time.
    pub(crate) fn hear(&self, event: &SdamEvent) {
        let is_called = self.is_called.swap(true, Ordering::AcqRel);
        let mut story = self.story();
        story.demand(!is_called, event, "two are told at the same time");
        story.hear(event);
        drop(story);
        self.is_called.store(false, Ordering::Release);
    }

    fn story(&self) -> MutexGuard<'_, Story> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Story {
    fn hear(&mut self, event: &SdamEvent) {
        self.demand(!self.is_closed, event, "after TopologyClosed");
        let id = event.topology_id();
        let known = *self.topology.get_or_insert(id);
        self.demand(known == id, event, "of another topology");
        match event {
            SdamEvent::Heartbeat(told) => self.heartbeat(event, &told.address, &told.event),
            SdamEvent::Topology(told) => self.topology(event, &told.event),
        }
        self.told += 1;
    }

    fn heartbeat(&mut self, event: &SdamEvent, address: &Arc<ServerAddress>, beat: &Heartbeat) {
        let starts = match beat {
            Heartbeat::ServerHeartbeatStarted { .. } => true,
            Heartbeat::ServerHeartbeatSucceeded { .. }
            | Heartbeat::ServerHeartbeatFailed { .. } => false,
            Heartbeat::ServerDescriptionChanged { .. } | _ => {
                return self.demand(false, event, "no heartbeat");
            }
        };
        let before = self.servers.insert(Arc::clone(address), starts);
        self.demand(before.is_some(), event, "of a server that is not open");
        self.demand(before != Some(starts), event, "twice");
    }

    fn topology(&mut self, event: &SdamEvent, told: &Event) {
        let is_first = self.told == 0;
        let opens = matches!(told, Event::TopologyOpening);
        self.demand(is_first == opens, event, "TopologyOpening is the first");
        match told {
            Event::TopologyDescriptionChanged { previous, new } => {
                if self.told == 1 {
                    // SE-04
                    let is_empty = previous.servers().len() == 0;
                    let is_unknown = previous.kind == TopologyKind::Unknown && is_empty;
                    self.demand(is_unknown, event, "the first previous description is Unknown");
                } else {
                    let follows = self.description == previous.to_string();
                    self.demand(follows, event, "a change was left out");
                }
                self.description = new.to_string();
            }
            Event::ServerOpening { address } => {
                let before = self.servers.insert(Arc::clone(address), false);
                self.demand(before.is_none(), event, "it is open");
            }
            Event::ServerDescriptionChanged { address, .. } => {
                let before = self.servers.get(address).copied();
                self.demand(before.is_some(), event, "of a server that is not open");
            }
            Event::ServerClosed { address } => {
                let before = self.servers.remove(address);
                self.demand(before.is_some(), event, "it is not open");
            }
            Event::TopologyClosed => {
                self.demand(self.servers.is_empty(), event, "servers are open");
                self.is_closed = true;
            }
            Event::TopologyOpening | _ => {}
        }
    }

    fn demand(&mut self, holds: bool, event: &SdamEvent, what: &str) {
        if !holds {
            self.broken.insert(format!("event {}, {event}: {what}", self.told));
        }
    }
}

impl Drop for SdamGuard {
    fn drop(&mut self) {
        if !thread::panicking() {
            let broken = &self.story().broken;
            assert!(broken.is_empty(), "{broken:#?}");
        }
    }
}
