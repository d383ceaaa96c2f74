//! Official files exist as JSON and as YAML. The JSON is played; the YAML must say the same.

use std::path::Path;

use serde_json::Value;

use super::place::child;
use super::{Document, is_yaml};
use crate::error::Unreadable;

impl Document {
    /// Reads a file. If it is JSON and a YAML file of the same name exists, their contents must be
    /// equal, apart from keys that begin with an underscore.
    ///
    /// # Errors
    ///
    /// If either cannot be read, or they differ.
    pub fn read_with_twin(path: &Path) -> Result<Self, Unreadable> {
        let document = Self::read(path)?;
        let twins = ["yml", "yaml"].map(|end| path.with_extension(end));
        let Some(twin) = twins.iter().find(|twin| !is_yaml(path) && twin.is_file()) else {
            return Ok(document);
        };
        let twin = Self::read(twin)?;
        match difference(twin.value(), document.value(), String::new()) {
            None => Ok(document),
            Some(place) => {
                let here = document.value().pointer(&format!("/{place}")).unwrap_or(&Value::Null);
                let reason = format!("{} says something else here: {here}", path.display());
                Err(twin.refuse(&place, &reason))
            }
        }
    }
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
