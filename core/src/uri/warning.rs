use std::fmt;

use crate::one_line::OneLine;

/// Something in a connection string that did not make it invalid, but was not done either.
///
/// The parser prints nothing; the caller decides where warnings go. They name the
/// option, the problem and its consequence, and never repeat a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriWarning {
    option: String,
    problem: Problem,
}

/// What is wrong with an option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No option has this name. It is ignored.
    Unknown {
        /// The option that may have been meant.
        similar: Option<&'static str>,
    },
    /// The value is not one that the option can have. The option is ignored.
    Invalid(Expected),
    /// One entry of a list is not known. The entry is left out.
    UnknownEntry {
        /// Which one, counted from 1.
        position: usize,
        /// Those that are.
        known: &'static [&'static str],
    },
    /// A compressor is not part of this build. It is not offered to servers.
    NotBuilt {
        /// The feature that adds it.
        feature: &'static str,
    },
    /// The option is given more than once. The first one counts.
    Repeated,
    /// An old name of another option. It is applied as that one.
    Renamed(&'static str),
    /// An old name of another option that is given too. It is ignored.
    Superseded(&'static str),
    /// A spelling of a boolean other than `true` and `false`. It is read as this.
    LegacyBoolean(bool),
    /// An empty option between two `&`. It is skipped.
    EmptyPair,
    /// The option does nothing without another one. It is ignored.
    Useless(&'static str),
}

/// The expected value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// `true` or `false`.
    Boolean,
    /// A whole number in decimal digits.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A text of at least one and at most this many bytes.
    Text {
        /// `usize::MAX` is no limit.
        max_bytes: usize,
    },
    /// The path of a file.
    Path,
    /// `name:value` pairs, separated by commas; no value holds a comma.
    Pairs,
    /// A number of members, or the name of a write concern.
    WriteConcern,
}

impl UriWarning {
    pub(super) fn new(option: impl Into<String>, problem: Problem) -> Self {
        Self { option: option.into(), problem }
    }

    /// The same of an option in the TXT record.
    pub(super) fn of_txt(self) -> Self {
        Self { option: format!("TXT record: {}", self.option), ..self }
    }

    /// The name of the option; its position in the options when the name might be part of a
    /// secret that was not percent-encoded.
    #[must_use]
    pub fn option(&self) -> &str {
        &self.option
    }

    /// The problem, and its consequence.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for UriWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", OneLine::name(&self.option), self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { similar: None } => f.write_str("no such option; it is ignored"),
            Self::Unknown { similar: Some(name) } => {
                write!(f, "no such option, did you mean {name}? It is ignored")
            }
            Self::Invalid(expected) => write!(f, "the value is not {expected}; it is ignored"),
            Self::UnknownEntry { position, known } => {
                write!(f, "entry {position} is none of {}; it is left out", known.join(", "))
            }
            Self::NotBuilt { feature } => {
                write!(f, "{feature} is not offered, because the feature `{feature}` is off")
            }
            Self::Repeated => f.write_str("given more than once; the first one counts"),
            Self::Renamed(name) => write!(f, "an old name; it is applied as {name}"),
            Self::Superseded(name) => {
                write!(f, "an old name of {name}, which is given too; it is ignored")
            }
            Self::LegacyBoolean(value) => {
                write!(f, "not written `true` or `false`; it is read as `{value}`")
            }
            Self::EmptyPair => f.write_str("nothing between two `&`; it is skipped"),
            Self::Useless(name) => write!(f, "does nothing without {name}; it is ignored"),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("`true` or `false`"),
            Self::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::OneOf(words) => write!(f, "one of {}", words.join(", ")),
            Self::Text { max_bytes: usize::MAX } => f.write_str("a text of at least one byte"),
            Self::Text { max_bytes } => write!(f, "a text of 1 to {max_bytes} bytes"),
            Self::Path => f.write_str("the path of a file, not what is in it"),
            Self::Pairs => f.write_str("a list of `name:value` pairs separated by commas"),
            Self::WriteConcern => f.write_str("a number of members or a write concern's name"),
        }
    }
}
