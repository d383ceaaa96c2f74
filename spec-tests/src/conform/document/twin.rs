//! Each official file is there twice. What is played is the JSON; that the YAML beside it says the
//! same is not taken on trust.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Document, child};
use crate::conform::Unreadable;

/// The YAML file of the same name, if there is one.
pub(in crate::conform) fn of(path: &Path) -> Option<PathBuf> {
    let twins = ["yml", "yaml"].map(|end| path.with_extension(end));
    twins.into_iter().find(|twin| twin.is_file())
}

/// Reads a JSON file, and its twin, if it has one.
///
/// # Errors
///
/// When either cannot be read, or they differ.
pub(in crate::conform) fn read(path: &Path) -> Result<Document, Unreadable> {
    let document = Document::read(path)?;
    if super::is_yaml(path) {
        return Ok(document);
    }
    if let Some(twin) = of(path) {
        let twin = Document::read(&twin)?;
        if let Some(place) = difference(twin.value(), document.value(), String::new()) {
            let here = document.value().pointer(&format!("/{place}")).unwrap_or(&Value::Null);
            let reason = format!("{} says something else here: {here}", path.display());
            return Err(twin.refuse(&place, &reason));
        }
    }
    Ok(document)
}

/// Where two values differ. Keys that begin with an underscore exist for anchors.
fn difference(one: &Value, other: &Value, place: String) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let counts = |key: &&String| !key.starts_with('_');
            let keys = one.keys().chain(other.keys()).filter(counts);
            keys.into_iter().find_map(|key| match (one.get(key), other.get(key)) {
                (Some(one), Some(other)) => difference(one, other, child(&place, key)),
                (None, _) | (_, None) => Some(child(&place, key)),
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(index, (one, other))| {
                difference(one, other, child(&place, &index.to_string()))
            })
        }
        // 1.0 and 1 are one number.
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => None,
        (one, other) => (one != other).then_some(place),
    }
}
