//! What clients have to have told.

use std::thread;
use std::time::Duration;

use serde_json::{Map, Value};

use super::matching;
use crate::formats::unified::client::Client;
use crate::formats::unified::client::story::Told;
use crate::formats::unified::format::{ExpectEvents, ExpectedEvent, Family};

/// Every event that the format knows and a test may name, with what may be said of it.
const EVENTS: [(&str, Family, &[&str]); 21] = [
    ("poolCreatedEvent", Family::Cmap, &[]),
    ("poolReadyEvent", Family::Cmap, &[]),
    ("poolClearedEvent", Family::Cmap, &["hasServiceId", "interruptInUseConnections"]),
    ("poolClosedEvent", Family::Cmap, &[]),
    ("connectionCreatedEvent", Family::Cmap, &[]),
    ("connectionReadyEvent", Family::Cmap, &[]),
    ("connectionClosedEvent", Family::Cmap, &["reason"]),
    ("connectionCheckOutStartedEvent", Family::Cmap, &[]),
    ("connectionCheckOutFailedEvent", Family::Cmap, &["reason"]),
    ("connectionCheckedOutEvent", Family::Cmap, &[]),
    ("connectionCheckedInEvent", Family::Cmap, &[]),
    (
        "commandStartedEvent",
        Family::Command,
        &["command", "commandName", "databaseName", "hasServiceId"],
    ),
    (
        "commandSucceededEvent",
        Family::Command,
        &["reply", "commandName", "databaseName", "hasServiceId"],
    ),
    ("commandFailedEvent", Family::Command, &["commandName", "databaseName", "hasServiceId"]),
    ("topologyOpeningEvent", Family::Sdam, &[]),
    ("topologyClosedEvent", Family::Sdam, &[]),
    ("topologyDescriptionChangedEvent", Family::Sdam, &["previousDescription", "newDescription"]),
    ("serverHeartbeatStartedEvent", Family::Sdam, &["awaited"]),
    ("serverHeartbeatSucceededEvent", Family::Sdam, &["awaited"]),
    ("serverHeartbeatFailedEvent", Family::Sdam, &["awaited"]),
    ("serverDescriptionChangedEvent", Family::Sdam, &["previousDescription", "newDescription"]),
];

/// How long what is expected may take, and how long nothing more has to come.
const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_millis(50);

/// Whether a file may expect this.
///
/// # Errors
///
/// An event or a field that is not known.
pub(in crate::formats::unified) fn check_event(
    name: &str,
    fields: &Map<String, Value>,
) -> Result<(), String> {
    let Some((_, _, known)) = EVENTS.iter().find(|(known, ..)| *known == name) else {
        return Err(format!("unknown event `{name}`"));
    };
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{name}: unknown field `{key}`, known are {known:?}")),
        None => Ok(()),
    }
}

/// Whether an event of this name can be observed.
///
/// # Errors
///
/// An event that is not known.
pub(in crate::formats::unified) fn check_name(name: &str) -> Result<(), String> {
    check_event(name, &Map::new())
}

impl ExpectedEvent {
    /// Whether this is what was told.
    pub(in crate::formats::unified) fn matches(&self, told: &Told) -> bool {
        self.judge(told).is_ok()
    }

    fn judge(&self, told: &Told) -> Result<(), String> {
        if told.name != self.name {
            return Err(format!("expected {}, saw {}", self.name, told.name));
        }
        self.fields.iter().try_for_each(|(key, expected)| {
            let seen = told.fields.get(key);
            let verdict = match (key.as_str(), expected) {
                ("hasServiceId", Value::Bool(there)) => {
                    let is_there = told.fields.get("serviceId").is_some();
                    if is_there == *there { Ok(()) } else { Err(format!("it is {is_there}")) }
                }
                // These are documents of their own: they may have more.
                _ => matching::root(expected, seen),
            };
            verdict.map_err(|what| format!("{}.{key}: {what}", self.name))
        })
    }
}

impl ExpectEvents {
    /// Compares with what a client told that is observed, once it has told as much, and nothing
    /// more is coming.
    ///
    /// # Errors
    ///
    /// The first difference, and all that was seen.
    pub(in crate::formats::unified) fn judge(
        &self,
        client: &Client,
        observes: impl Fn(&Told) -> bool,
    ) -> Result<(), String> {
        let of_interest =
            |told: &&Told| told.family == self.event_type && observes(told) && !is_for_tests(told);
        let enough = self.events.len();
        let story = client.story();
        story.wait_until(PATIENCE, |told| told.iter().filter(of_interest).count() >= enough);
        thread::sleep(SILENCE);
        client.catch_up();
        let seen = story.all();
        let seen: Vec<&Told> = seen.iter().filter(of_interest).collect();
        let verdict = self.compare(&seen);
        verdict.map_err(|what| {
            let lines = seen.iter().map(|it| format!("\n  {} {}", it.name, it.fields));
            format!("events of {}: {what}; seen:{}", self.client, lines.collect::<String>())
        })
    }

    fn compare(&self, seen: &[&Told]) -> Result<(), String> {
        for (index, expected) in self.events.iter().enumerate() {
            let Some(seen) = seen.get(index) else {
                return Err(format!("event {index}: expected {}, saw no more", expected.name));
            };
            expected.judge(seen).map_err(|what| format!("event {index}: {what}"))?;
        }
        match seen.get(self.events.len()) {
            Some(more) if !self.ignore_extra_events => {
                Err(format!("expected nothing more, saw {}", more.name))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The format never shows tests the command that orders a failure.
fn is_for_tests(told: &Told) -> bool {
    told.fields["commandName"] == "configureFailPoint"
}
