//! What a file can expect of events and errors. Anything that cannot occur is an error in the file: a
//! scenario that expects it would always fail without saying why.

use cenote_core::pool::{CheckOutFailedReason, CloseReason};
use serde_json::{Map, Value};

use super::event_type::EventType;
use crate::document::nested::wrong_at;
use crate::matching::ANY;

/// The type of a value.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// 0, 1, 2, …
    Whole,
    Number,
    Flag,
    Texts,
    /// Options of a pool, as its ConnectionPoolCreated shows them.
    Options,
}

type Keys = &'static [(&'static str, Kind)];

const CONNECTION: (&str, Kind) = ("connectionId", Kind::Whole);
const DURATION: (&str, Kind) = ("duration", Kind::Number);

/// The keys of each event besides its type and the address.
const EVENTS: [(&str, Keys); 11] = [
    ("ConnectionPoolCreated", &[("options", Kind::Options)]),
    ("ConnectionPoolReady", &[]),
    (
        "ConnectionPoolCleared",
        &[("serviceId", Kind::Text), ("interruptInUseConnections", Kind::Flag)],
    ),
    ("ConnectionPoolClosed", &[]),
    ("ConnectionCreated", &[CONNECTION]),
    ("ConnectionReady", &[CONNECTION, DURATION]),
    ("ConnectionClosed", &[CONNECTION, ("reason", Kind::OneOf(&CLOSED))]),
    ("ConnectionCheckOutStarted", &[]),
    ("ConnectionCheckOutFailed", &[("reason", Kind::OneOf(&FAILED)), DURATION]),
    ("ConnectionCheckedOut", &[CONNECTION, DURATION]),
    ("ConnectionCheckedIn", &[CONNECTION]),
];

const CLOSED: [&str; 4] = [
    CloseReason::Stale.as_str(),
    CloseReason::Idle.as_str(),
    CloseReason::Error.as_str(),
    CloseReason::PoolClosed.as_str(),
];

const FAILED: [&str; 3] = [
    CheckOutFailedReason::PoolClosed.as_str(),
    CheckOutFailedReason::Timeout.as_str(),
    CheckOutFailedReason::ConnectionError.as_str(),
];

/// The last three are not part of the official format.
const ERROR: Keys = &[
    ("type", Kind::OneOf(&ERRORS)),
    ("message", Kind::Text),
    ("address", Kind::Text),
    ("labels", Kind::Texts),
    ("retryable", Kind::Flag),
    ("timeout", Kind::Flag),
];

/// As [`PoolError::name`](cenote_core::error::PoolError::name) has them.
const ERRORS: [&str; 7] = [
    "PoolClosedError",
    "PoolClearedError",
    "WaitQueueTimeoutError",
    "WaitQueueFullError",
    "CheckOutShedError",
    "ConnectionError",
    "CheckOutCancelledError",
];

const OPTIONS: [&str; 5] =
    ["maxPoolSize", "minPoolSize", "maxIdleTimeMS", "maxConnecting", "waitQueueTimeoutMS"];

/// # Errors
///
/// The first key that no error has.
pub(super) fn check_error(error: &Map<String, Value>) -> Result<(), String> {
    check(error, ERROR)
}

/// # Errors
///
/// The first key that events of this type do not have.
pub(super) fn check_event(event: &Map<String, Value>) -> Result<(), String> {
    let name = event.get("type").ok_or("missing field `type`")?;
    let name = name.as_str().ok_or_else(|| wrong_at("type", "it is no text"))?;
    let name = EventType::try_from(name.to_owned()).map_err(|reason| wrong_at("type", reason))?;
    let keys = EVENTS.iter().find(|(its, _)| *its == name.as_str()).map_or(&[][..], |it| it.1);
    let all: Vec<_> =
        [("type", Kind::Text), ("address", Kind::Text)].iter().chain(keys).copied().collect();
    check(event, &all)
}

fn check(object: &Map<String, Value>, keys: &[(&str, Kind)]) -> Result<(), String> {
    object.iter().try_for_each(|(key, value)| {
        let Some((_, kind)) = keys.iter().find(|(known, _)| known == key) else {
            let known: Vec<_> = keys.iter().map(|(known, _)| *known).collect();
            return Err(wrong_at(key, format!("unknown key, known are {}", known.join(", "))));
        };
        kind.check(value).map_err(|reason| wrong_at(key, reason))
    })
}

impl Kind {
    fn check(self, value: &Value) -> Result<(), String> {
        let (is_right, what) = match self {
            _ if is_any(value) => (true, ""),
            Self::Text => (value.is_string(), "a text"),
            Self::Whole => (value.is_u64(), "a number without a fraction"),
            Self::Number => (value.is_number(), "a number"),
            Self::Flag => (value.is_boolean(), "true or false"),
            Self::Texts => {
                let texts = value.as_array().is_some_and(|them| them.iter().all(Value::is_string));
                (texts, "a list of texts")
            }
            Self::OneOf(known) => {
                let is_known = value.as_str().is_some_and(|text| known.contains(&text));
                return if is_known {
                    Ok(())
                } else {
                    Err(format!("{value} is unknown, known are {}", known.join(", ")))
                };
            }
            Self::Options => {
                let Some(options) = value.as_object() else {
                    return Err(format!("{value} is no object"));
                };
                return check(options, &OPTIONS.map(|option| (option, Self::Whole)));
            }
        };
        if is_right { Ok(()) } else { Err(format!("{value} is not {what}")) }
    }
}

/// Whether it matches any value.
fn is_any(value: &Value) -> bool {
    value.as_u64() == Some(ANY) || value.as_str() == Some(&ANY.to_string())
}
