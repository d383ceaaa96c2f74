//! Where two descriptions of a topology differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// Each difference in a line that says where it is, and what both know. No line: they agree.
pub(crate) fn differences(names: [&str; 2], left: &Value, right: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect("", names, [Some(left), Some(right)], &mut found);
    found
}

fn collect(place: &str, names: [&str; 2], values: [Option<&Value>; 2], found: &mut Vec<String>) {
    match values {
        [Some(Value::Object(left)), Some(Value::Object(right))]
            if !are_of_other_types(left, right) =>
        {
            let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
            let separator = if place.is_empty() { "" } else { " / " };
            for key in keys {
                let place = format!("{place}{separator}{key}");
                collect(&place, names, [left.get(key), right.get(key)], found);
            }
        }
        [left, right] if left != right => {
            let [first, second] = names;
            let [left, right] = [left, right].map(said);
            found.push(format!("{place}: {first} says {left}, {second} says {right}"));
        }
        _ => {}
    }
}

/// Of a server that is something else, the type says enough.
fn are_of_other_types(left: &Object, right: &Object) -> bool {
    is_server(left) && is_server(right) && left["type"] != right["type"]
}

fn is_server(object: &Object) -> bool {
    object.contains_key("type") && !object.contains_key("servers")
}

type Object = serde_json::Map<String, Value>;

fn said(value: Option<&Value>) -> String {
    match value {
        None => "(absent)".to_owned(),
        Some(Value::Object(server)) if is_server(server) => {
            server["type"].as_str().unwrap_or_default().to_owned()
        }
        Some(value) => value.to_string(),
    }
}
