//! The words of one command: `verb word "several words" key=value`.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use cenote_core::pool::{Purpose, ServiceId};

/// The words after the verb. Each is taken once; remaining words are an error.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) plain: VecDeque<String>,
    keyed: BTreeMap<String, String>,
}

impl Words {
    /// Splits a command at spaces outside quotation marks.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let mut words = Self { plain: VecDeque::new(), keyed: BTreeMap::new() };
        for word in split(text)? {
            let before_quotes = word.split('"').next().unwrap_or_default();
            match before_quotes.split_once('=') {
                Some((key, _)) => {
                    let value = word[key.len() + 1..].replace('"', "");
                    if words.keyed.insert(key.to_owned(), value).is_some() {
                        return Err(format!("{key}= comes twice"));
                    }
                }
                None => words.plain.push_back(word.replace('"', "")),
            }
        }
        Ok(words)
    }

    /// The next plain word.
    pub(super) fn next(&mut self, what: &str) -> Result<String, String> {
        self.plain.pop_front().ok_or_else(|| format!("{what} is missing"))
    }

    /// The next plain word as a number.
    pub(super) fn number(&mut self, what: &str) -> Result<u64, String> {
        number(&self.next(what)?)
    }

    /// All remaining plain words; at least one.
    pub(super) fn rest(&mut self, what: &str) -> Result<Vec<String>, String> {
        if self.plain.is_empty() {
            return Err(format!("{what} is missing"));
        }
        Ok(self.plain.drain(..).collect())
    }

    /// The same, as numbers.
    pub(super) fn numbers(&mut self, what: &str) -> Result<Vec<u64>, String> {
        self.rest(what)?.iter().map(|word| number(word)).collect()
    }

    /// Whether this plain word is present.
    pub(super) fn flag(&mut self, flag: &str) -> bool {
        let found = self.plain.iter().position(|word| word == flag);
        found.is_some_and(|index| self.plain.remove(index).is_some())
    }

    /// The value of a key, if it is present.
    pub(super) fn key<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        self.keyed.remove(key).map(|value| read(&value)).transpose()
    }

    /// Fails if a word remains.
    pub(super) fn end(&self) -> Result<(), String> {
        let keys = self.keyed.keys().map(|key| format!("{key}="));
        let rest: Vec<String> = self.plain.iter().cloned().chain(keys).collect();
        if rest.is_empty() { Ok(()) } else { Err(format!("not understood: {}", rest.join(" "))) }
    }
}

fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for char in text.chars() {
        quoted ^= char == '"';
        match words.last_mut() {
            Some(word) if quoted || char != ' ' => word.push(char),
            Some(_) | None => words.push(String::new()),
        }
    }
    if quoted {
        return Err("a quotation mark is not closed".to_owned());
    }
    words.retain(|word| !word.is_empty());
    Ok(words)
}

pub(super) fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

pub(super) fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("not a valid number: {text}"))
}

/// Parses a whole number with its unit: `50ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let nanos = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("not a duration such as 50ms: {text}")),
    };
    let nanos = number::<u64>(count)?.checked_mul(nanos);
    nanos.map(Duration::from_nanos).ok_or_else(|| format!("too long: {text}"))
}

pub(super) fn purpose(text: &str) -> Result<Purpose, String> {
    match text {
        "other" => Ok(Purpose::Other),
        "cursor" => Ok(Purpose::Cursor),
        "transaction" => Ok(Purpose::Transaction),
        _ => Err(format!("not other, cursor or transaction: {text}")),
    }
}

/// `S7` is the service id that ends in 7 and is zero otherwise.
pub(super) fn service(text: &str) -> Result<ServiceId, String> {
    let number =
        text.strip_prefix('S').ok_or_else(|| format!("not a service such as S1: {text}"))?;
    let mut id = [0; 12];
    id[11] = self::number(number)?;
    Ok(ServiceId(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        let mut words = Words::new(r#"1 "two words" error="a = b""#).unwrap();
        assert_eq!(words.number("id"), Ok(1));
        assert_eq!(words.next("text").as_deref(), Ok("two words"));
        assert_eq!(words.key("error", text), Ok(Some("a = b".to_owned())));
        assert_eq!(words.end(), Ok(()));
    }

    #[test]
    fn remaining_words_are_refused() {
        let words = Words::new("up idle=3ms").unwrap();
        assert_eq!(words.end(), Err("not understood: up idle=".to_owned()));
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("1500us"), Ok(Duration::from_micros(1500)));
        assert!(duration("5").is_err());
    }
}
