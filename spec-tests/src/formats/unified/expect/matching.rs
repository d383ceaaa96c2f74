//! Values against values. At the root of a document there may be more than is expected, and so in
//! each document of a list of results; below it, nothing else.

use serde_json::{Map, Value};

use cenote_conform::document::nested::wrong_at;

/// Compares two values, of which a document may have more keys than are expected.
///
/// # Errors
///
/// Where they differ first, and how.
pub(in crate::formats::unified) fn root(
    expected: &Value,
    seen: Option<&Value>,
) -> Result<(), String> {
    match (expected, seen) {
        (Value::Array(expected), Some(Value::Array(seen))) if expected.len() == seen.len() => {
            let mut pairs = expected.iter().zip(seen).enumerate();
            pairs.try_for_each(|(index, (expected, seen))| {
                compare(expected, Some(seen), true).map_err(|what| format!("[{index}]: {what}"))
            })
        }
        (expected, seen) => compare(expected, seen, true),
    }
}

/// Whether something can be compared with this.
///
/// # Errors
///
/// An operator that there is not, or an argument that it cannot have, and where.
pub(in crate::formats::unified) fn check(expected: &Value) -> Result<(), String> {
    for nested in [AS_ROOT, AS_DOCUMENT] {
        if let Some(inner) = argument(expected, nested) {
            return check(inner).map_err(|what| wrong_at(nested, what));
        }
    }
    if let Some(verdict) = operator(expected, None) {
        return verdict.map(drop);
    }
    match expected {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            if key.starts_with("$$") {
                return Err(format!("the operator {key} stands alone"));
            }
            check(value).map_err(|what| wrong_at(key, what))
        }),
        Value::Array(values) => values.iter().enumerate().try_for_each(|(index, value)| {
            check(value).map_err(|what| wrong_at(&index.to_string(), what))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn compare(expected: &Value, seen: Option<&Value>, more: bool) -> Result<(), String> {
    if let Some(inner) = argument(expected, AS_ROOT) {
        return compare(inner, seen, true);
    }
    if let Some(inner) = argument(expected, AS_DOCUMENT) {
        let document =
            seen.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
        let document: Value =
            document.ok_or_else(|| format!("expected a document, saw {seen:?}"))?;
        return compare(inner, Some(&document), false);
    }
    let differs = || {
        let seen = seen.map_or_else(|| "nothing".to_owned(), Value::to_string);
        Err(format!("expected {expected}, saw {seen}"))
    };
    if let Some(verdict) = operator(expected, seen) {
        return verdict?.then_some(()).map_or_else(differs, Ok);
    }
    match (expected, seen) {
        (Value::Object(expected), Some(Value::Object(seen))) => documents(expected, seen, more),
        (Value::Array(expected), Some(Value::Array(seen))) if expected.len() == seen.len() => {
            let mut pairs = expected.iter().zip(seen).enumerate();
            pairs.try_for_each(|(index, (expected, seen))| {
                compare(expected, Some(seen), false).map_err(|what| format!("[{index}]: {what}"))
            })
        }
        (Value::Number(expected), Some(Value::Number(seen)))
            if expected.as_f64() == seen.as_f64() =>
        {
            Ok(())
        }
        (expected, Some(seen)) if expected == seen => Ok(()),
        _ => differs(),
    }
}

fn documents(
    expected: &Map<String, Value>,
    seen: &Map<String, Value>,
    more: bool,
) -> Result<(), String> {
    for (key, expected) in expected {
        compare(expected, seen.get(key), false).map_err(|what| format!("{key}: {what}"))?;
    }
    match seen.keys().find(|key| !more && !expected.contains_key(*key)) {
        Some(key) => Err(format!("{key}: expected nothing, saw {}", seen[key])),
        None => Ok(()),
    }
}

/// `{"$$matchAsRoot": …}`: there may be more.
const AS_ROOT: &str = "$$matchAsRoot";
/// `{"$$matchAsDocument": …}`: the text of a document.
const AS_DOCUMENT: &str = "$$matchAsDocument";

/// What this operator is given, if `expected` is that.
fn argument<'v>(expected: &'v Value, operator: &str) -> Option<&'v Value> {
    expected.as_object().filter(|map| map.len() == 1)?.get(operator)
}

/// What `{"$$name": argument}` asks for, if `expected` is that.
fn operator(expected: &Value, seen: Option<&Value>) -> Option<Result<bool, String>> {
    let map = expected.as_object().filter(|map| map.len() == 1)?;
    let (name, argument) = map.iter().next()?;
    let verdict = match name.as_str() {
        "$$exists" => argument.as_bool().map(|there| seen.is_some() == there),
        "$$lte" => argument
            .as_f64()
            .map(|most| seen.and_then(Value::as_f64).is_some_and(|seen| seen <= most)),
        "$$type" => {
            let one = |name: &Value| name.as_str().and_then(|name| is_of_type(seen, name));
            if let Value::Array(names) = argument {
                let verdicts: Option<Vec<bool>> = names.iter().map(one).collect();
                verdicts.map(|verdicts| verdicts.contains(&true))
            } else {
                one(argument)
            }
        }
        name if name.starts_with("$$") => None,
        _ => return None,
    };
    Some(verdict.ok_or_else(|| format!("unknown operator {expected}")))
}

/// `None` for a type that is not known here.
fn is_of_type(seen: Option<&Value>, name: &str) -> Option<bool> {
    let is = |check: fn(&Value) -> bool| Some(seen.is_some_and(check));
    match name {
        "string" => is(Value::is_string),
        "int" | "long" => is(|seen| seen.is_i64() || seen.is_u64()),
        "double" => is(Value::is_f64),
        "bool" => is(Value::is_boolean),
        "object" => is(Value::is_object),
        "array" => is(Value::is_array),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::root;

    #[test]
    fn only_the_root_may_have_more() {
        let seen = json!({ "a": 1, "b": { "c": 2 }, "d": [1, 2.0] });
        let verdict = |expected: Value| root(&expected, Some(&seen)).err().unwrap_or_default();
        for good in [
            json!({}),
            json!({ "a": 1.0, "d": [1, 2] }),
            json!({ "a": { "$$lte": 1 } }),
            json!({ "b": { "c": { "$$type": ["string", "long"] } }, "x": { "$$exists": false } }),
        ] {
            assert_eq!(verdict(good), "");
        }
        let results = json!([{ "_id": 1, "a": { "b": 2 } }]);
        assert_eq!(root(&json!([{ "a": { "b": 2 } }]), Some(&results)), Ok(()));
        let what = root(&json!([{ "a": {} }]), Some(&results)).unwrap_err();
        assert_eq!(what, "[0]: a: b: expected nothing, saw 2");
        for (bad, what) in [
            (json!({ "a": "1" }), "a: expected \"1\", saw 1"),
            (json!({ "b": {} }), "b: c: expected nothing, saw 2"),
            (json!({ "d": [1] }), "d: expected [1], saw [1,2.0]"),
            (json!({ "a": { "$$exists": false } }), "a: expected"),
            (json!({ "x": { "$$type": "int" } }), "x: expected"),
            (json!({ "a": { "$$lte": 0.9 } }), "a: expected"),
            (json!({ "b": { "$$lte": 9 } }), "b: expected"),
            (json!({ "x": { "$$lte": 9 } }), "saw nothing"),
            (json!({ "a": { "$$lte": "9" } }), "unknown operator"),
            (json!({ "x": { "$$exists": true } }), "saw nothing"),
            (json!({ "a": { "$$type": "int64" } }), "unknown operator"),
            (json!({ "a": { "$$matchesEntity": 1 } }), "unknown operator"),
        ] {
            let shown = bad.to_string();
            let verdict = verdict(bad);
            assert!(verdict.contains(what), "{shown}: {verdict}");
        }
    }
}
