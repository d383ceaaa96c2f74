//! Matches values against expected values.
// TF-10 … TF-12

use serde_json::Value;

/// Stands for any value but null, as a number or a string.
// TF-12
pub(crate) const ANY: u64 = 42;

/// The address of the server in scenario files.
pub(crate) const ADDRESS: &str = "localhost:27017";

/// The first difference, if there is one. The seen value can have more keys than the expected one; 42,
/// as a number or a string, matches anything but null; everything else must be equal.
pub(crate) fn difference(expected: &Value, seen: Option<&Value>) -> Option<String> {
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

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}
