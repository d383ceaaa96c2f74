//! What a client told: events of its pool, its commands and its server.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::connect::ServerKind;
use cenote_core::error::ConnectionError;
use cenote_core::monitor::{self, ServerDescription};
use cenote_core::pool::Event;
use cenote_core::topology;
use serde_json::{Value, json};

use crate::event_json;
use crate::formats::lock::lock;
use crate::formats::unified::format::Family;
use cenote_check::{Checker, Line};

/// In the order in which it was told.
pub(in crate::formats::unified) struct Story {
    begun: Instant,
    told: Mutex<Vec<Told>>,
    goes_on: Condvar,
    /// Judges the pool's events, whatever the test makes of them.
    checker: Mutex<Checker>,
}

/// One event.
#[derive(Clone, Debug)]
pub(in crate::formats::unified) struct Told {
    pub(in crate::formats::unified) family: Family,
    /// As the unified format calls it.
    pub(in crate::formats::unified) name: String,
    pub(in crate::formats::unified) fields: Value,
}

impl Story {
    pub(super) fn begin() -> Self {
        let (told, checker) = (Mutex::default(), Mutex::default());
        Self { begun: Instant::now(), told, goes_on: Condvar::new(), checker }
    }

    /// Something happened.
    pub(super) fn tell(&self, family: Family, name: &str, fields: Value) {
        lock(&self.told).push(Told { family, name: name.to_owned(), fields });
        self.goes_on.notify_all();
    }

    /// The pool tells something.
    pub(super) fn cmap(&self, event: &Event<ConnectionError>, address: &ServerAddress) {
        let json = serde_json::to_value(event_json::official(event, address));
        let json = json.expect("an event is plain data");
        lock(&self.checker).tell(&Line::of(event, address, self.begun.elapsed()));
        let name = unified_name(event.name());
        self.tell(Family::Cmap, &name, json);
    }

    /// A monitor tells something.
    pub(super) fn heartbeat(&self, event: &monitor::Event) {
        let fields = match event {
            monitor::Event::ServerHeartbeatStarted { awaited, .. }
            | monitor::Event::ServerHeartbeatSucceeded { awaited, .. }
            | monitor::Event::ServerHeartbeatFailed { awaited, .. } => {
                json!({ "awaited": awaited })
            }
            monitor::Event::ServerDescriptionChanged { .. } | _ => return, // Never told.
        };
        self.tell(Family::Sdam, &unified_name(event.name()), fields);
    }

    /// The topology tells something.
    pub(super) fn topology(&self, event: &topology::Event) {
        let types = |previous: &str, new: &str| json!({ "previousDescription": { "type": previous }, "newDescription": { "type": new } });
        let fields = match event {
            topology::Event::ServerDescriptionChanged { previous, new, .. } => {
                types(kind(previous), kind(new))
            }
            topology::Event::TopologyDescriptionChanged { previous, new } => {
                types(previous.kind.name(), new.kind.name())
            }
            topology::Event::TopologyOpening
            | topology::Event::TopologyClosed
            | topology::Event::ServerOpening { .. }
            | topology::Event::ServerClosed { .. }
            | _ => json!({}),
        };
        self.tell(Family::Sdam, &unified_name(event.name()), fields);
    }

    /// Everything so far.
    pub(in crate::formats::unified) fn all(&self) -> Vec<Told> {
        lock(&self.told).clone()
    }

    /// Which rules the pool has broken, now that it is closed.
    pub(in crate::formats::unified) fn broken_rules(&self) -> Vec<String> {
        let report = std::mem::take(&mut *lock(&self.checker)).finish();
        report.findings.iter().map(ToString::to_string).collect()
    }

    /// Waits until this holds of what was told, for so long at most, and says whether it does.
    pub(in crate::formats::unified) fn wait_until(
        &self,
        limit: Duration,
        mut it_is_so: impl FnMut(&[Told]) -> bool,
    ) -> bool {
        let told = lock(&self.told);
        let waited = self.goes_on.wait_timeout_while(told, limit, |told| !it_is_so(told));
        !waited.unwrap_or_else(std::sync::PoisonError::into_inner).1.timed_out()
    }
}

/// As the files call it.
fn kind(description: &ServerDescription) -> &'static str {
    description.kind().map_or("Unknown", ServerKind::name)
}

/// `ConnectionPoolCleared` is `poolClearedEvent` there, and `ConnectionClosed` is
/// `connectionClosedEvent`.
fn unified_name(name: &str) -> String {
    let name = match name.strip_prefix("Connection") {
        Some(pool) if pool.starts_with("Pool") => pool,
        Some(_) | None => name,
    };
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).chain("Event".chars()).collect()
}
