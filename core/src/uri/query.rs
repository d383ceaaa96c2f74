//! The options behind the `?`: named once, read by type, and what is wrong with them noted.

use std::{ops::RangeInclusive, time::Duration};

use super::{
    Expected, Problem, Secret, UriError, UriPart, UriWarning, similar_name,
    split::{Parts, decode},
};

/// The options that have not been read yet, and the warnings so far.
///
/// Each group of options takes its own by name; what is left in the end is unknown. The first of
/// several equal names counts.
pub(super) struct Query {
    pairs: Vec<Pair>,
    /// With the position of the option, so that they can be put in the order of the text.
    warnings: Vec<(usize, UriWarning)>,
    /// The names that were asked for.
    known: Vec<&'static str>,
    /// Positions behind which the rest of a secret may stand.
    secrets: Vec<usize>,
    /// Whether all of it may be part of a password.
    doubtful: bool,
}

pub(super) struct Pair {
    pub(super) position: usize,
    name: String,
    pub(super) value: Secret,
}

impl Pair {
    /// Names are compared without regard to the case of ASCII letters.
    // OP-39
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    pub(super) fn text(&self) -> &str {
        self.value.expose()
    }
}

impl Query {
    // OP-50
    pub(super) fn of(parts: &Parts<'_>) -> Result<Self, UriError> {
        let mut query = Self::of_text(parts.options)?;
        query.doubtful = parts.options.contains('@');
        Ok(query)
    }

    /// The options of a TXT record, which are no secrets.
    pub(super) fn of_text(options: &str) -> Result<Self, UriError> {
        let mut query = Self {
            pairs: Vec::new(),
            warnings: Vec::new(),
            known: Vec::new(),
            secrets: Vec::new(),
            doubtful: false,
        };
        if options.is_empty() {
            return Ok(query);
        }
        for (text, position) in options.split('&').zip(1..) {
            if text.is_empty() {
                query.warn_at(position, UriWarning::new(nth(position), Problem::EmptyPair));
                continue;
            }
            query.pairs.push(pair(text, position)?);
        }
        Ok(query)
    }

    /// Takes the option out; the others of the same name too, with a warning.
    // OP-42
    pub(super) fn take(&mut self, name: &'static str) -> Option<Pair> {
        let mut all = self.take_all(name).into_iter();
        let first = all.next();
        for repeated in all {
            self.warn_at(repeated.position, UriWarning::new(name, Problem::Repeated));
        }
        first
    }

    /// Takes all options of this name out, in their order.
    pub(super) fn take_all(&mut self, name: &'static str) -> Vec<Pair> {
        self.known.push(name);
        let pairs = std::mem::take(&mut self.pairs);
        let (taken, left) = pairs.into_iter().partition(|pair| pair.is(name));
        self.pairs = left;
        taken
    }

    /// How often the option is given.
    pub(super) fn count(&self, name: &'static str) -> usize {
        self.pairs.iter().filter(|pair| pair.is(name)).count()
    }

    /// Lets an old name stand for a new one, unless the new one is given too.
    // OP-43
    pub(super) fn rename(&mut self, old: &'static str, new: &'static str) {
        let superseded = self.count(new) > 0;
        for mut pair in self.take_all(old) {
            let position = pair.position;
            let problem = if superseded { Problem::Superseded(new) } else { Problem::Renamed(new) };
            self.warn_at(position, UriWarning::new(old, problem));
            if !superseded {
                new.clone_into(&mut pair.name);
                self.pairs.push(pair);
            }
        }
    }

    /// A boolean.
    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let pair = self.take(name)?;
        self.boolean_of(name, &pair)
    }

    /// Reads one option as a boolean. Other spellings than `true` and `false` are old ones.
    // OP-41
    pub(super) fn boolean_of(&mut self, name: &'static str, pair: &Pair) -> Option<bool> {
        let value = match pair.text().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "y" | "t" => true,
            "false" | "0" | "-1" | "no" | "n" | "f" => false,
            _ => {
                self.invalid(name, pair, Expected::Boolean);
                return None;
            }
        };
        if pair.text() != "true" && pair.text() != "false" {
            self.warn(name, pair, Problem::LegacyBoolean(value));
        }
        Some(value)
    }

    /// A whole number.
    // OP-55
    pub(super) fn integer<T>(&mut self, name: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + Into<i64> + TryFrom<i64>,
    {
        let (min, max): (i64, i64) = ((*range.start()).into(), (*range.end()).into());
        let pair = self.take(name)?;
        let value = whole_number(pair.text()).filter(|value| (min..=max).contains(value));
        if value.is_none() {
            self.invalid(name, &pair, Expected::Integer { min, max });
        }
        value.and_then(|value| T::try_from(value).ok())
    }

    /// A number of milliseconds of at least `min`; 32 bits, as all numbers but one.
    pub(super) fn millis(&mut self, name: &'static str, min: u32) -> Option<Duration> {
        let millis = self.integer(name, min..=INTEGER_MAX)?;
        Some(Duration::from_millis(millis.into()))
    }

    /// A text that is not empty.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.text_of_at_most(name, usize::MAX)
    }

    /// A text that is neither empty nor longer than `max_bytes`.
    pub(super) fn text_of_at_most(
        &mut self,
        name: &'static str,
        max_bytes: usize,
    ) -> Option<String> {
        let pair = self.take(name)?;
        if pair.text().is_empty() || pair.text().len() > max_bytes {
            self.invalid(name, &pair, Expected::Text { max_bytes });
            return None;
        }
        Some(pair.text().to_owned())
    }

    /// A secret text; it may be empty.
    pub(super) fn secret(&mut self, name: &'static str) -> Option<Pair> {
        let secrets = self.pairs.iter().filter(|pair| pair.is(name));
        self.secrets.extend(secrets.map(|pair| pair.position));
        self.take(name)
    }

    /// One of several words, each of which stands for the value at its place.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &'static [&'static str],
        values: &[T],
    ) -> Option<T> {
        let pair = self.take(name)?;
        let found = words.iter().zip(values).find(|(word, _)| **word == pair.text());
        if found.is_none() {
            self.invalid(name, &pair, Expected::OneOf(words));
        }
        found.map(|(_, value)| *value)
    }

    // OP-36, OP-38
    pub(super) fn invalid(&mut self, name: &'static str, pair: &Pair, expected: Expected) {
        self.warn(name, pair, Problem::Invalid(expected));
    }

    pub(super) fn warn(&mut self, name: &'static str, pair: &Pair, problem: Problem) {
        self.warn_at(pair.position, UriWarning::new(name, problem));
    }

    fn warn_at(&mut self, position: usize, warning: UriWarning) {
        self.warnings.push((position, warning));
    }

    /// The name of the first option that was not read.
    pub(super) fn unread(&self) -> Option<&str> {
        self.pairs.first().map(|pair| &*pair.name)
    }

    /// All warnings in the order of the text; options that were not read are unknown.
    // OP-14, OP-17, OP-32, OP-35
    pub(super) fn finish(mut self) -> Vec<UriWarning> {
        for pair in std::mem::take(&mut self.pairs) {
            let shown = self.shown(&pair);
            // A name that is not shown may be part of a secret.
            let known = self.known.iter().copied().filter(|_| shown == pair.name);
            let similar = similar_name(&pair.name, known);
            self.warn_at(pair.position, UriWarning::new(shown, Problem::Unknown { similar }));
        }
        self.warnings.sort_by_key(|(position, _)| *position);
        self.warnings.into_iter().map(|(_, warning)| warning).collect()
    }

    /// A name to tell a typing error by, unless it may be the rest of a secret in which an `&`, `?`
    /// or `=` was not encoded.
    fn shown(&mut self, pair: &Pair) -> String {
        let behind_a_secret = self.secrets.contains(&(pair.position - 1));
        if behind_a_secret {
            self.secrets.push(pair.position);
        }
        let plausible = pair.name.len() <= LONGEST_NAME
            && pair.name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if self.doubtful || behind_a_secret || !plausible {
            return nth(pair.position);
        }
        pair.name.clone()
    }
}

/// The largest value of an integer option.
// OP-33
pub(super) const INTEGER_MAX: u32 = i32::MAX.unsigned_abs();

/// No option's name is longer than 40 characters.
const LONGEST_NAME: usize = 64;

// OP-40
fn pair(text: &str, position: usize) -> Result<Pair, UriError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            let value = Secret::from(decode(value, UriPart::Option(position))?);
            Ok(Pair { position, name: name.to_owned(), value })
        }
        Some(_) | None => Err(UriError::NotAPair { position }),
    }
}

fn nth(position: usize) -> String {
    format!("option {position}")
}

/// `i64` itself would also read `+5`.
pub(super) fn whole_number(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}
