//! What a scenario expects, compared with what happened.

use cenote_core::address::ServerAddress;
use cenote_core::error::{PoolError, RetryWrites};
use serde_json::{Map, Value, json};

use crate::matching::{ADDRESS, ANY, difference};
use crate::scenario::{EventType, Log, LogMessage, Scenario};
use crate::target::Failure;

/// What happened when a scenario was played.
#[derive(Debug)]
pub(crate) struct Played {
    /// The error that ended the main thread.
    pub(crate) failure: Option<Failure>,
    /// The events until the main thread ended.
    pub(crate) events: Vec<Value>,
    /// The messages until the main thread ended, if the scenario is about logging.
    pub(crate) messages: Vec<LogMessage>,
    /// What was left open after the pool was closed, or which rules the events break.
    pub(crate) cleanup: Result<(), String>,
    /// Whether the time was virtual.
    pub(crate) is_virtual: bool,
    /// The address of the server.
    pub(crate) address: ServerAddress,
}

/// What a scenario expects.
pub(crate) struct Expected<'s> {
    error: Option<Map<String, Value>>,
    events: Vec<Map<String, Value>>,
    ignore: &'s [EventType],
    log: Option<&'s Log>,
}

impl<'s> Expected<'s> {
    /// The expectations of a scenario for this server. Under virtual time durations are exact; in
    /// real time they only have to be present. Official files expect no more than that.
    pub(crate) fn new(scenario: &'s Scenario, is_virtual: bool, address: &ServerAddress) -> Self {
        let (error, events) = (scenario.error.clone(), scenario.events.clone());
        let mut expected = Self { error, events, ignore: &scenario.ignore, log: scenario.log() };
        let address = address.to_string();
        let objects = expected.error.iter_mut().chain(&mut expected.events);
        for (key, value) in objects.flat_map(Map::iter_mut) {
            if key == "duration" && !is_virtual {
                *value = json!(ANY);
            }
            if let Value::String(text) = value {
                *text = text.replace(ADDRESS, &address);
            }
        }
        expected
    }

    /// Compares the error first, because it usually explains the events.
    ///
    /// # Errors
    ///
    /// All differences, a line each.
    pub(crate) fn compare(&self, played: &Played) -> Result<(), String> {
        let address = played.address.to_string();
        let logged = self.log.map(|log| log.compare(&address, &played.messages));
        let complaints: Vec<String> = [
            compare_error(self.error.as_ref(), played.failure.as_ref()),
            compare_events(&self.events, self.ignore, &played.events),
            logged.unwrap_or(Ok(())),
            played.cleanup.clone(),
        ]
        .into_iter()
        .filter_map(Result::err)
        .collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
    }
}

/// Compares the events one by one. Surplus events are a difference: the format leaves that to the
/// drivers, and the strictest do it.
fn compare_events(
    expected: &[Map<String, Value>],
    ignore: &[EventType],
    seen: &[Value],
) -> Result<(), String> {
    let ignored = |event: &Value| ignore.iter().any(|name| event["type"] == name.as_str());
    let seen: Vec<&Value> = seen.iter().filter(|event| !ignored(event)).collect();
    let expected: Vec<Value> = expected.iter().cloned().map(Value::Object).collect();
    let count = expected.len().max(seen.len());
    match (0..count).find_map(|index| event_differs(index, expected.get(index), seen.get(index))) {
        Some(what) => Err(format!("{what}\n{}", all(&seen))),
        None => Ok(()),
    }
}

fn event_differs(index: usize, expected: Option<&Value>, seen: Option<&&Value>) -> Option<String> {
    let what = match (expected, seen) {
        (Some(expected), Some(seen)) => {
            // If the type differs, other differences do not matter.
            let of_type = difference(&expected["type"], seen.get("type"));
            let of_type = of_type.map(|what| format!("type: {what}"));
            let what = of_type.or_else(|| difference(expected, Some(seen)))?;
            format!("{what}; expected {expected}, saw {seen}")
        }
        (Some(expected), None) => format!("expected {expected}, but nothing more came"),
        (None, Some(seen)) => format!("expected nothing more, saw {seen}"),
        (None, None) => return None,
    };
    Some(format!("event {index}: {what}"))
}

fn all(seen: &[&Value]) -> String {
    let lines = seen.iter().enumerate().map(|(index, event)| format!("  {index}: {event}"));
    format!("seen, without what is ignored:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Compares the error of the main thread.
fn compare_error(
    expected: Option<&Map<String, Value>>,
    failure: Option<&Failure>,
) -> Result<(), String> {
    match (expected, failure) {
        (_, Some(Failure::Script(what) | Failure::Unsupported(what))) => Err(what.clone()),
        (None, None) => Ok(()),
        (None, Some(Failure::Pool(error))) => {
            Err(format!("expected no error, saw {}: {error}", error.name()))
        }
        (Some(expected), None) => {
            Err(format!("expected an error {}, saw none", Value::Object(expected.clone())))
        }
        (Some(expected), Some(Failure::Pool(error))) => {
            let seen = described(error);
            let expected = Value::Object(expected.clone());
            match difference(&expected, Some(&seen)).or_else(|| labels_differ(&expected, &seen)) {
                Some(what) => Err(format!("error: {what}; expected {expected}, saw {seen}")),
                None => Ok(()),
            }
        }
    }
}

fn described(error: &PoolError) -> Value {
    // As a client with retryWrites=true sees them.
    let labels: Vec<_> = error.labels(RetryWrites::Enabled).collect();
    json!({
        "type": error.name(),
        "message": error.message().to_string(),
        "address": error.address().to_string(),
        "labels": labels,
        "retryable": error.is_retryable(),
        "timeout": error.is_timeout(),
    })
}

/// Surplus labels are a difference, too.
fn labels_differ(expected: &Value, seen: &Value) -> Option<String> {
    let count = |value: &Value| value["labels"].as_array().map(Vec::len);
    count(expected)
        .filter(|it| Some(*it) != count(seen))
        .map(|_| "labels: there are more".to_owned())
}
