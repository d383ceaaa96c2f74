use core::fmt;
use core::time::Duration;
use std::borrow::Cow;

use crate::pool::ServiceId;

/// The value of a field. `Display` is its form in the text of a record, without quotes.
// LG-06
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LogValue<'a> {
    /// A whole number: a port, an id, a size.
    Int(i64),
    /// Milliseconds that need not be whole.
    Double(f64),
    /// A host, a service, a reason, an error.
    Text(Cow<'a, str>),
    /// Whether something is so.
    Bool(bool),
}

impl<'a> LogValue<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// An id or a size. A value that is too large is shown as the largest that fits.
    pub(super) fn whole(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// `durationMS`: a double even if it is whole, so that a consumer sees one type only.
    // LG-09, DU-08
    pub(super) fn milliseconds(duration: Duration) -> Self {
        Self::Double(duration.as_nanos() as f64 / NANOS_PER_MS)
    }

    /// An option in milliseconds: an integer as the specification has it, unless a part of a
    /// millisecond was set, which must not look like 0.
    pub(super) fn option_in_ms(duration: Duration) -> Self {
        if duration.subsec_nanos().is_multiple_of(1_000_000) {
            Self::whole(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
        } else {
            Self::milliseconds(duration)
        }
    }

    /// Twenty-four hexadecimal digits.
    pub(super) fn service(id: ServiceId) -> Self {
        Self::Text(Cow::Owned(id.to_string()))
    }
}

impl fmt::Display for LogValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Double(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Bool(is_so) => is_so.fmt(f),
        }
    }
}

const NANOS_PER_MS: f64 = 1e6;
