//! What is read by hand inside of what serde reads: its errors keep their place in the file.
//!
//! Serde lets whoever reads by hand say why in a text, and in nothing else. So the place is written
//! into that text, between two marks that no file has, and taken out of it again where the refusal
//! is told.

use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::{Strict, child};

const MARK: char = '\u{1}';

/// That something is wrong at this place, as seen from whoever reads by hand.
pub(in crate::conform) fn wrong_at(place: &str, reason: impl Display) -> String {
    format!("{MARK}{place}{MARK}{reason}")
}

/// Takes a value for a `T`.
///
/// # Errors
///
/// What is wrong, with its place below `place`.
pub(in crate::conform) fn read<T: DeserializeOwned>(
    place: &str,
    value: &Value,
) -> Result<T, String> {
    serde_path_to_error::deserialize(Strict(value)).map_err(|error| {
        let place = below(place, error.path(), 0);
        wrong_at(&place, error.inner())
    })
}

/// Takes a name and what belongs to it for a variant of an enumeration.
///
/// # Errors
///
/// What is wrong: with the name, or at its place below `place`.
pub(in crate::conform) fn read_variant<T: DeserializeOwned>(
    name: &str,
    place: &str,
    content: Option<Value>,
) -> Result<T, String> {
    let has_content = content.is_some();
    let value = match content {
        Some(content) => Value::Object([(name.to_owned(), content)].into_iter().collect()),
        None => Value::String(name.to_owned()),
    };
    serde_path_to_error::deserialize(Strict(&value)).map_err(|error| {
        let reason = error.inner().to_string();
        if reason.starts_with(&format!("unknown variant `{name}`")) {
            return wrong_at("name", reason);
        }
        if !has_content {
            return wrong_at("", format!("missing field `{place}`"));
        }
        // The first segment is the name.
        wrong_at(&below(place, error.path(), 1), reason)
    })
}

fn below(place: &str, path: &Path, skipped: usize) -> String {
    path.iter().skip(skipped).fold(place.to_owned(), |place, segment| match segment {
        Segment::Seq { index } => child(&place, &index.to_string()),
        Segment::Map { key } => child(&place, key),
        Segment::Enum { variant } => child(&place, variant),
        Segment::Unknown => place,
    })
}

/// The place in a reason, if it has one, and the rest.
pub(super) fn split(reason: &str) -> (String, &str) {
    let (mut place, mut rest) = (String::new(), reason);
    while let Some((here, reason)) =
        rest.strip_prefix(MARK).and_then(|marked| marked.split_once(MARK))
    {
        if !here.is_empty() {
            place = child(&place, here);
        }
        rest = reason;
    }
    (place, rest)
}
