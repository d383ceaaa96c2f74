//! What a file expects, on the target that plays it.

use cenote_core::address::ServerAddress;
use serde_json::{Map, Value, json};

use super::format::{EventType, File};
use super::log::Log;
use super::matching;
use super::played::Played;

/// What a file expects.
pub(super) struct Expected {
    error: Option<Map<String, Value>>,
    events: Vec<Map<String, Value>>,
    ignore: Vec<EventType>,
    log: Option<Log>,
    /// Where it is played.
    address: String,
}

impl Expected {
    /// To the letter.
    pub(super) fn of(file: &File) -> Self {
        let File { error, events, ignore, log, .. } = file.clone();
        Self { error, events, ignore, log, address: Self::ADDRESS.to_owned() }
    }

    /// What virtual time knows exactly and no real socket does: how long things take, and the
    /// address. A duration has to be there, and the address is that of the endpoint. The official
    /// files say no more than that themselves.
    #[must_use]
    pub(super) fn on_sockets(mut self, address: &ServerAddress) -> Self {
        let address = address.to_string();
        let objects = self.error.iter_mut().chain(&mut self.events);
        for (key, value) in objects.flat_map(Map::iter_mut) {
            if key == "duration" {
                *value = json!(matching::ANY);
            }
            if let Value::String(text) = value {
                *text = text.replace(Self::ADDRESS, &address);
            }
        }
        self.address = address;
        self
    }

    /// The error first, because it usually explains the events; nothing is kept back.
    ///
    /// # Errors
    ///
    /// All that is different.
    pub(super) fn judge(&self, played: &Played) -> Result<(), String> {
        let logged = self.log.as_ref().map(|log| log.compare(&self.address, &played.messages));
        let complaints: Vec<String> = [
            matching::compare_error(self.error.as_ref(), played.failure.as_ref()),
            matching::compare_events(&self.events, &self.ignore, &played.events),
            logged.unwrap_or(Ok(())),
            played.settled.clone(),
        ]
        .into_iter()
        .filter_map(Result::err)
        .collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
    }

    /// What files are told that the endpoint is called.
    pub(super) const ADDRESS: &str = "localhost:27017";
}
