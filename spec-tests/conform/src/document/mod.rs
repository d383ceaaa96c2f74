//! A JSON or YAML file, and the line of everything in it.
//!
//! ```text
//! yaml          text to value, with the line of every key
//! json          the line of every value of JSON
//! nested        places of what hand-written deserializers read
//! ```

mod json;
pub mod nested;
mod place;
mod yaml;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::place::{Lines, child, push};
use crate::error::Unreadable;

/// The content of a file, and the line of each key.
#[derive(Clone, Debug)]
pub struct Document {
    path: PathBuf,
    value: Value,
    lines: Lines,
}

impl Document {
    /// Reads a file: YAML if its name ends in `.yml` or `.yaml`, JSON otherwise.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is malformed, or has a duplicate key.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let unreadable = |reason| Unreadable::Io { path: path.to_owned(), reason };
        // A pipe might never end.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(unreadable(std::io::Error::other("not a regular file")));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        if is_yaml(path) { Self::from_yaml(path, &text) } else { Self::from_json(path, &text) }
    }

    /// A document that is not in a file: errors in it have no line.
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
        let lines = json::lines(text).map_err(|json::DuplicateKey { line, key }| {
            not_json(line, format!("the key `{key}` is there twice"))
        })?;
        Ok(Self { path: path.to_owned(), value, lines })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The content.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.value
    }

    /// Reads the content as a `T`.
    ///
    /// # Errors
    ///
    /// The key that is wrong, missing or unknown, and its line.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Unreadable> {
        // To serde, a list is as good as the struct that has these fields in this order.
        if !self.value.is_object() {
            return Err(self.refuse("", "it is no object"));
        }
        serde_path_to_error::deserialize(&self.value).map_err(|error| {
            let mut place = String::new();
            for segment in error.path() {
                push(&mut place, &segment.to_string());
            }
            let reason = error.inner().to_string();
            let (inner, reason) = nested::split(&reason);
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

    /// As [`refuse`](Self::refuse), with the place that [`nested::wrong_at`] has put into `reason`.
    #[must_use]
    pub fn refuse_in(&self, place: &str, reason: &str) -> Unreadable {
        let (inner, reason) = nested::split(reason);
        let place = if inner.is_empty() { place.to_owned() } else { child(place, &inner) };
        self.refuse(&place, reason)
    }

    /// An error at `place`, such as `operations/3/name`.
    #[must_use]
    pub fn refuse(&self, place: &str, reason: &str) -> Unreadable {
        let path = self.path.clone();
        let reason = match place {
            "" | "?" => reason.to_owned(),
            place => format!("{}: {reason}", place.replace('/', ".")),
        };
        Unreadable::Format { path, line: self.line(place), reason }
    }

    /// The line of a place, or of the closest key around it: the content of a YAML alias has no line.
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
pub(crate) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yml" || end == "yaml")
}

/// For an unknown field serde reports the place of the object, and the field in its text.
fn unknown_field(reason: &str) -> Option<&str> {
    let (_, rest) = reason.split_once("unknown field `")?;
    Some(rest.split_once('`')?.0)
}
