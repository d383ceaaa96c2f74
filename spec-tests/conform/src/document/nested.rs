//! For `Deserialize` implementations written by hand: their errors keep their place in the file.
//!
//! A serde error is a text and nothing else. These functions write the place into that text, between
//! two control characters that no file contains; [`Document::parse`](super::Document::parse) takes
//! it out again.

use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::place::child;

const MARK: char = '\u{1}';

/// An error message for something wrong at `place`, relative to the value being read.
#[must_use]
pub fn wrong_at(place: &str, reason: impl Display) -> String {
    format!("{MARK}{place}{MARK}{reason}")
}

/// Reads `value` as a `T`.
///
/// # Errors
///
/// The error, with its place below `place`.
pub fn read<T: DeserializeOwned>(place: &str, value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let place = below(place, error.path(), 0);
        wrong_at(&place, error.inner())
    })
}

/// Reads a name and its content as a variant of the enumeration `T`.
///
/// # Errors
///
/// The error: in the name, or in the content, with its place below `place`.
pub fn read_variant<T: DeserializeOwned>(
    name: &str,
    place: &str,
    content: Option<Value>,
) -> Result<T, String> {
    let has_content = content.is_some();
    let value = match content {
        Some(content) => Value::Object([(name.to_owned(), content)].into_iter().collect()),
        None => Value::String(name.to_owned()),
    };
    serde_path_to_error::deserialize(&value).map_err(|error| {
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

/// Splits a reason into its place, if it has one, and the text.
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
