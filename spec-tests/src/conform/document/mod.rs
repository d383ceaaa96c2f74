//! A file that was read, JSON or YAML, and where in it everything stands.
//!
//! ```text
//! yaml          text to value, with the line of every key
//! └ scalar      which texts are numbers, booleans and null
//! json          the line of every key of JSON
//! strict        values for serde, without its liberties
//! inner         places of what is read by hand
//! twin          whether a YAML file says what the JSON file beside it says
//! ```

pub(super) mod inner;
mod json;
mod scalar;
mod strict;
pub(super) mod twin;
mod yaml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::strict::Strict;
use super::Unreadable;

/// What a file says, and where it says it.
#[derive(Clone, Debug)]
pub struct Document {
    path: PathBuf,
    value: Value,
    lines: Lines,
}

/// The line of everything that has one: `operations/3/name`, from 1.
pub(super) type Lines = BTreeMap<String, usize>;

impl Document {
    /// Reads a file: YAML if its name ends in `.yml` or `.yaml`, JSON otherwise.
    ///
    /// # Errors
    ///
    /// When it cannot be read, is not what its name says, or has a key twice.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let unreadable = |source| Unreadable::Io { path: path.to_owned(), source };
        // A pipe might never end.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(unreadable(std::io::Error::other("it is no file to read")));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        if is_yaml(path) { Self::from_yaml(path, &text) } else { Self::from_json(path, &text) }
    }

    /// What nobody has written into a file: it has no lines.
    #[must_use]
    pub fn of(path: &Path, value: Value) -> Self {
        Self { path: path.to_owned(), value, lines: Lines::new() }
    }

    fn from_yaml(path: &Path, text: &str) -> Result<Self, Unreadable> {
        let (value, lines) = yaml::parse(text).map_err(|fault| {
            let yaml::Fault { line, reason } = fault;
            Unreadable::Yaml { path: path.to_owned(), line, reason }
        })?;
        Ok(Self { path: path.to_owned(), value, lines })
    }

    fn from_json(path: &Path, text: &str) -> Result<Self, Unreadable> {
        let not_json = |line, reason| Unreadable::Json { path: path.to_owned(), line, reason };
        let value = serde_json::from_str(text).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            not_json(error.line(), format!("{reason} (column {})", error.column()))
        })?;
        let lines = json::lines(text).map_err(|json::Twice { line, key }| {
            not_json(line, format!("the key `{key}` is there twice"))
        })?;
        Ok(Self { path: path.to_owned(), value, lines })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of it.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// All of it, without the lines.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.value
    }

    /// Takes it for a `T`.
    ///
    /// # Errors
    ///
    /// The key that is wrong, missing or unknown, and its line.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, Unreadable> {
        serde_path_to_error::deserialize(Strict(&self.value)).map_err(|error| {
            let mut place = String::new();
            for segment in error.path() {
                push(&mut place, &segment.to_string());
            }
            let reason = error.inner().to_string();
            let (inner, reason) = inner::split(&reason);
            if !inner.is_empty() {
                push(&mut place, &inner);
            }
            if let Some(key) = unknown_field(reason) {
                let below = child(&place, key);
                if self.lines.contains_key(&below) {
                    place = below;
                }
            }
            self.refuse(&place, reason)
        })
    }

    /// As [`refuse`](Self::refuse), with the place of whoever read it by hand.
    pub(super) fn refuse_in(&self, place: &str, reason: &str) -> Unreadable {
        let (inner, reason) = inner::split(reason);
        let place = if inner.is_empty() { place.to_owned() } else { child(place, &inner) };
        self.refuse(&place, reason)
    }

    /// That something is wrong at `place`, as in `operations/3/name`.
    pub(super) fn refuse(&self, place: &str, reason: &str) -> Unreadable {
        let path = self.path.clone();
        let reason = match place {
            "" | "?" => reason.to_owned(),
            place => format!("{}: {reason}", place.replace('/', ".")),
        };
        Unreadable::Format { path, line: self.line(place), reason }
    }

    /// The line of a place, or of what is around it: what stands in an alias has none of its own.
    fn line(&self, place: &str) -> Option<usize> {
        let mut place = place;
        loop {
            if let Some(line) = self.lines.get(place) {
                return Some(*line);
            }
            place = match place.rfind('/') {
                Some(end) => place.get(..end)?,
                None if place.is_empty() => return None,
                None => "",
            };
        }
    }
}

/// Whether the name is that of a YAML file.
pub(super) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yml" || end == "yaml")
}

/// The place of a key below a place.
pub(super) fn child(place: &str, key: &str) -> String {
    let mut place = place.to_owned();
    push(&mut place, key);
    place
}

fn push(place: &mut String, key: &str) {
    // Of a list, serde says `[3]`.
    let key = key.trim_start_matches('[').trim_end_matches(']');
    if !place.is_empty() {
        place.push('/');
    }
    place.push_str(key);
}

/// Serde points at the object that has a field too many, and names the field in its text.
fn unknown_field(reason: &str) -> Option<&str> {
    let (_, rest) = reason.split_once("unknown field `")?;
    Some(rest.split_once('`')?.0)
}

#[cfg(test)]
mod tests;
