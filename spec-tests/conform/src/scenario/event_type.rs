use cenote_check::event_json::TYPES;
use serde::Deserialize;

/// The name of one of the types of events: CMAP's eleven, and three about pending responses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct EventType(String);

impl EventType {
    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EventType {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if TYPES.contains(&name.as_str()) {
            return Ok(Self(name));
        }
        Err(format!("unknown event `{name}`, known are {}", TYPES.join(", ")))
    }
}
