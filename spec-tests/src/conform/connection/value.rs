//! Documents as JSON, and what of them has to be so.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawDocument, RawDocumentBuf};
use serde_json::{Map, Value, json};

use cenote_conform::document::nested::wrong_at;

/// Extended JSON, but for bytes that are a text: `{"$text": "…"}`.
pub(super) fn seen(document: &RawDocument) -> Result<Map<String, Value>, String> {
    let document = Document::try_from(document).map_err(|error| error.to_string())?;
    Ok(document.into_iter().map(|(key, value)| (key, shown(value))).collect())
}

fn shown(value: Bson) -> Value {
    if let Bson::Document(document) = value {
        return document.into_iter().map(|(key, value)| (key, shown(value))).collect();
    }
    if let Bson::Array(values) = value {
        return values.into_iter().map(shown).collect();
    }
    if let Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes }) = &value {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return json!({ "$text": text });
        }
    }
    value.into_relaxed_extjson()
}

/// The document that a file writes so.
///
/// # Errors
///
/// It is no extended JSON.
pub(super) fn written(document: &Map<String, Value>) -> Result<RawDocumentBuf, String> {
    let value = as_extended(&Value::Object(document.clone()));
    let bson = Bson::try_from(value).map_err(|error| error.to_string())?;
    let Bson::Document(document) = bson else { return Err("it is no document".to_owned()) };
    RawDocumentBuf::try_from(&document).map_err(|error| error.to_string())
}

/// The command that a file writes so: the order of keys is none of JSON's, but its name comes first.
///
/// # Errors
///
/// It has several keys, and none of this name.
pub(super) fn command(
    name: Option<&str>,
    document: &Map<String, Value>,
) -> Result<RawDocumentBuf, String> {
    let only = (document.len() == 1).then(|| document.keys().next()).flatten();
    let name = name.or(only.map(String::as_str)).ok_or("which of its keys is its name?")?;
    let mut rest = document.clone();
    let value = rest.remove(name).ok_or_else(|| format!("it has no `{name}`"))?;
    let mut command = RawDocumentBuf::new();
    for part in [Map::from_iter([(name.to_owned(), value)]), rest] {
        for element in &written(&part)? {
            let (key, value) = element.map_err(|error| error.to_string())?;
            command.append(key, value);
        }
    }
    Ok(command)
}

fn as_extended(value: &Value) -> Value {
    match value {
        Value::Object(map) => match map.get("$text").and_then(Value::as_str) {
            Some(text) if map.len() == 1 => {
                json!({ "$binary": { "base64": STANDARD.encode(text), "subType": "00" } })
            }
            Some(_) | None => {
                map.iter().map(|(key, value)| (key.clone(), as_extended(value))).collect()
            }
        },
        Value::Array(values) => values.iter().map(as_extended).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What can be compared with.
const OPERATORS: [&str; 3] = ["$$exists", "$$begins", "$$includes"];

/// # Errors
///
/// An operator in what is expected that there is not, with its place.
pub(super) fn check(expected: &Value) -> Result<(), String> {
    let below = |place: &str, value: &Value| check(value).map_err(|what| wrong_at(place, what));
    match expected {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            if key.starts_with("$$") && !OPERATORS.contains(&key.as_str()) {
                return Err(format!(
                    "unknown operator `{key}`, known are {}",
                    OPERATORS.join(", ")
                ));
            }
            below(key, value)
        }),
        Value::Array(values) => {
            let mut places = values.iter().enumerate();
            places.try_for_each(|(index, value)| below(&index.to_string(), value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Where a document differs first from what is expected, and how. With `more` it may have other keys,
/// too; a document in it never may.
///
/// `{"$$exists": …}` asks whether there is anything, `{"$$begins": "…"}` how a text begins, and
/// `{"$$includes": …}` for a part of a document, or an item of a list.
pub(super) fn difference(
    expected: &Map<String, Value>,
    seen: &Map<String, Value>,
    more: bool,
) -> Option<String> {
    let differs = expected.iter().find_map(|(key, expected)| {
        compare(expected, seen.get(key)).map(|what| format!("{key}: {what}"))
    });
    let surplus = || seen.keys().find(|key| !more && !expected.contains_key(*key));
    differs.or_else(|| surplus().map(|key| format!("{key}: expected nothing, saw {}", seen[key])))
}

fn compare(expected: &Value, seen: Option<&Value>) -> Option<String> {
    let shown = || seen.map_or_else(|| "nothing".to_owned(), Value::to_string);
    let unless = |good: bool| (!good).then(|| format!("expected {expected}, saw {}", shown()));
    if let Some((operator, argument)) = operator(expected) {
        return match (operator, argument, seen) {
            ("$$exists", Value::Bool(there), _) => unless(seen.is_some() == *there),
            ("$$begins", Value::String(with), _) => {
                unless(seen.and_then(text).is_some_and(|text| text.starts_with(with.as_str())))
            }
            ("$$includes", Value::Object(part), Some(Value::Object(seen))) => {
                difference(part, seen, true)
            }
            ("$$includes", item, Some(Value::Array(items))) => unless(items.contains(item)),
            ("$$includes", _, _) => unless(false),
            _ => Some(format!("unknown operator {expected}")),
        };
    }
    match (expected, seen) {
        (Value::Object(expected), Some(Value::Object(seen))) => difference(expected, seen, false),
        (Value::Array(expected), Some(Value::Array(seen))) if expected.len() == seen.len() => {
            let mut pairs = expected.iter().zip(seen).enumerate();
            pairs.find_map(|(index, (expected, seen))| {
                compare(expected, Some(seen)).map(|what| format!("[{index}]: {what}"))
            })
        }
        (Value::Number(expected), Some(Value::Number(seen))) => {
            unless(expected.as_f64() == seen.as_f64())
        }
        (Value::Null, seen) => unless(seen.is_none_or(Value::is_null)),
        (expected, seen) => unless(Some(expected) == seen),
    }
}

/// A text, or bytes that are one.
fn text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("$text")?.as_str())
}

fn operator(expected: &Value) -> Option<(&str, &Value)> {
    let map = expected.as_object().filter(|map| map.len() == 1)?;
    let (name, argument) = map.iter().next()?;
    name.starts_with("$$").then_some((name, argument))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{check, difference, seen, written};

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().expect("a document").clone()
    }

    #[test]
    fn what_is_written_is_seen_again() {
        let document = map(&json!({ "a": 1, "b": { "$text": "n,," }, "c": [{ "d": true }, "e"] }));
        assert_eq!(seen(&written(&document).unwrap()), Ok(document));
    }

    #[test]
    fn differences_say_where() {
        let seen =
            map(&json!({ "a": 1.0, "b": { "$text": "n,,x" }, "c": [{ "d": true }], "e": "2" }));
        for good in [
            json!({ "a": 1, "b": { "$$begins": "n,," }, "c": { "$$exists": true }, "e": "2" }),
            json!({ "a": 1, "c": { "$$includes": { "d": true } }, "b": { "$$exists": true }, "e": "2" }),
        ] {
            assert_eq!(difference(&map(&good), &seen, false), None);
        }
        for (bad, what) in [
            (json!({ "e": 2 }), "e: expected 2, saw \"2\""),
            (json!({ "f": { "$$exists": true } }), "f: expected"),
            (json!({ "a": { "$$exists": false } }), "a: expected"),
            (json!({ "b": { "$$begins": "c=" } }), "b: expected"),
            (json!({ "c": [{}] }), "c: [0]: d: expected nothing, saw true"),
        ] {
            let found = difference(&map(&bad), &seen, true).expect("a difference");
            assert!(found.starts_with(what), "{found}");
        }
        assert!(difference(&map(&json!({ "a": 1 })), &seen, false).is_some());
        assert!(check(&json!({ "a": [{ "$$exists": true }] })).is_ok());
        assert!(check(&json!({ "a": [{ "$$type": "int" }] })).is_err());
    }
}
