//! What a file expects, on the target that plays it.

use serde_json::{Map, Value};

use super::format::{EventType, File};
use super::matching;
use super::played::Played;

/// What a file expects.
pub(super) struct Expected {
    error: Option<Map<String, Value>>,
    events: Vec<Map<String, Value>>,
    ignore: Vec<EventType>,
}

impl Expected {
    /// To the letter.
    pub(super) fn of(file: &File) -> Self {
        let File { error, events, ignore, .. } = file;
        Self { error: error.clone(), events: events.clone(), ignore: ignore.clone() }
    }

    /// The error first, because it usually explains the events; nothing is kept back.
    ///
    /// # Errors
    ///
    /// All that is different.
    pub(super) fn judge(&self, played: &Played) -> Result<(), String> {
        let complaints: Vec<String> = [
            matching::compare_error(self.error.as_ref(), played.failure.as_ref()),
            matching::compare_events(&self.events, &self.ignore, &played.events),
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
