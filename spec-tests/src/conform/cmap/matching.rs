//! How what was seen is compared with what a file expects (TF-10 … TF-12).

use cenote_core::error::PoolError;
use serde_json::{Map, Value};

use super::format::EventType;
use super::played::Failure;

/// Stands for any value but null, as a number or a text (TF-12).
pub(super) const ANY: u64 = 42;

/// Where the first difference is, if there is one. What is expected may be less than what was seen;
/// 42, as a number or a text, stands for anything but null; all else must be of the same type and,
/// in the end, equal.
pub(super) fn difference(expected: &Value, seen: Option<&Value>) -> Option<String> {
    let differs = |what: &str| Some(format!("expected {what}, saw {}", shown(seen)));
    let present = seen.filter(|seen| !seen.is_null());
    match (expected, present) {
        (Value::Number(any), _) if any.as_u64() == Some(ANY) => {
            if present.is_some() {
                None
            } else {
                differs("any value")
            }
        }
        (Value::String(any), _) if *any == ANY.to_string() => {
            if present.is_some() {
                None
            } else {
                differs("any value")
            }
        }
        (Value::Object(expected), Some(Value::Object(seen))) => {
            expected.iter().find_map(|(key, expected)| {
                difference(expected, seen.get(key)).map(|what| format!("{key}: {what}"))
            })
        }
        (Value::Array(expected), Some(Value::Array(seen))) => {
            expected.iter().enumerate().find_map(|(index, expected)| {
                difference(expected, seen.get(index)).map(|what| format!("[{index}]: {what}"))
            })
        }
        (expected, seen) if seen.unwrap_or(&Value::Null) == expected => None,
        (expected, _) => differs(&expected.to_string()),
    }
}

/// Compares the events one by one, and wants none to be left over: what the text of the format
/// leaves to the drivers here, the strictest of them do.
pub(super) fn compare_events(
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
            // Another type explains all the rest.
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
pub(super) fn compare_error(
    expected: Option<&Map<String, Value>>,
    failure: Option<&Failure>,
) -> Result<(), String> {
    match (expected, failure) {
        (_, Some(Failure::Script(what))) => Err(what.clone()),
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
    let labels: Vec<_> = error.labels(true).collect();
    serde_json::json!({
        "type": error.name(),
        "message": error.message().to_string(),
        "address": error.address().to_string(),
        "labels": labels,
        "retryable": error.is_retryable(),
        "timeout": error.is_timeout(),
    })
}

/// Of labels, one that is missing says as much as one that is there.
fn labels_differ(expected: &Value, seen: &Value) -> Option<String> {
    let count = |value: &Value| value["labels"].as_array().map(Vec::len);
    count(expected)
        .filter(|it| Some(*it) != count(seen))
        .map(|_| "labels: there are more".to_owned())
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}
