//! The line of every value of a JSON text, and duplicate keys: `serde_json` reports neither.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::place::{Lines, child};

/// A duplicate key, and the line of its second value.
#[derive(Debug)]
pub(super) struct DuplicateKey {
    pub(super) line: usize,
    pub(super) key: String,
}

/// The line of every value of a text that is known to be JSON.
///
/// # Errors
///
/// A duplicate key.
pub(super) fn lines(text: &str) -> Result<Lines, DuplicateKey> {
    let mut reader = Reader { text, at: 0, line: 1, lines: Lines::new() };
    if let Ok(value) = serde_json::from_str(text) {
        reader.value(value, "")?;
    }
    Ok(reader.lines)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// That of the place `at`.
    line: usize,
    lines: Lines,
}

impl<'t> Reader<'t> {
    /// Values are read in the order of the text. `serde_json` has limited their depth.
    fn value(&mut self, value: &'t RawValue, place: &str) -> Result<(), DuplicateKey> {
        let text = value.get();
        let begin = text.as_ptr().addr() - self.text.as_ptr().addr();
        self.line += self.text[self.at..begin].matches('\n').count();
        self.at = begin;
        self.lines.insert(place.to_owned(), self.line);
        if let Ok(Entries(entries)) = serde_json::from_str(text) {
            let mut keys = BTreeSet::new();
            for (key, value) in entries {
                self.value(value, &child(place, &key))?;
                if !keys.insert(key.clone()) {
                    return Err(DuplicateKey { line: self.line, key });
                }
            }
        } else if let Ok(items) = serde_json::from_str::<Vec<_>>(text) {
            for (index, value) in items.into_iter().enumerate() {
                self.value(value, &child(place, &index.to_string()))?;
            }
        }
        Ok(())
    }
}

/// The keys and values of an object, as they are written.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Entries<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReadEntries)
    }
}

struct ReadEntries;

impl<'t> Visitor<'t> for ReadEntries {
    type Value = Entries<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Entries<'t>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}
