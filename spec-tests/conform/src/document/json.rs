//! The line of every key of a JSON text, and duplicate keys: `serde_json` reports neither.

use std::collections::BTreeSet;

use super::place::{Lines, child};

/// A duplicate key, and the line of its second occurrence.
#[derive(Debug)]
pub(super) struct DuplicateKey {
    pub(super) line: usize,
    pub(super) key: String,
}

/// The line of every key and item of a text that is known to be JSON.
///
/// # Errors
///
/// A duplicate key.
pub(super) fn lines(text: &str) -> Result<Lines, DuplicateKey> {
    let mut scanner = Scanner { text, at: 0, line: 1, lines: Lines::new() };
    scanner.value("")?;
    Ok(scanner.lines)
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    lines: Lines,
}

impl Scanner<'_> {
    /// Recursion is bounded: `serde_json` has accepted the text and limits its depth.
    fn value(&mut self, place: &str) -> Result<(), DuplicateKey> {
        self.skip_white();
        self.lines.entry(place.to_owned()).or_insert(self.line);
        match self.next() {
            Some(b'{') => self.object(place),
            Some(b'[') => self.array(place),
            Some(b'"') => {
                self.string();
                Ok(())
            }
            _ => {
                self.skip(|byte| !b",]} \t\r\n".contains(&byte));
                Ok(())
            }
        }
    }

    fn object(&mut self, place: &str) -> Result<(), DuplicateKey> {
        let mut keys = BTreeSet::new();
        self.at += 1;
        loop {
            self.skip_white();
            if self.next() != Some(b'"') {
                self.at += 1; // The end.
                return Ok(());
            }
            let line = self.line;
            let key = self.string();
            let below = child(place, &key);
            if !keys.insert(key.clone()) {
                return Err(DuplicateKey { line, key });
            }
            self.lines.insert(below.clone(), line);
            self.skip_to(b':');
            self.value(&below)?;
            self.skip_comma();
        }
    }

    fn array(&mut self, place: &str) -> Result<(), DuplicateKey> {
        self.at += 1;
        for index in 0_usize.. {
            self.skip_white();
            if matches!(self.next(), Some(b']') | None) {
                break;
            }
            self.value(&child(place, &index.to_string()))?;
            self.skip_comma();
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string and moves behind it.
    fn string(&mut self) -> String {
        let begins = self.at;
        self.at += 1;
        while let Some(byte) = self.next().filter(|byte| *byte != b'"') {
            self.at += if byte == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let quoted = self.text.get(begins..self.at).unwrap_or_default();
        serde_json::from_str(quoted).unwrap_or_default()
    }

    fn skip_comma(&mut self) {
        self.skip_white();
        if self.next() == Some(b',') {
            self.at += 1;
        }
    }

    fn skip_to(&mut self, wanted: u8) {
        self.skip(|byte| byte != wanted);
        self.at += 1;
    }

    fn skip_white(&mut self) {
        self.skip(|byte| byte.is_ascii_whitespace());
    }

    fn skip(&mut self, while_it_is: impl Fn(u8) -> bool) {
        while let Some(byte) = self.next().filter(|byte| while_it_is(*byte)) {
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
