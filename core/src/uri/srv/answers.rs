use core::time::Duration;

use thiserror::Error;

use crate::error::rounded;
use crate::one_line::OneLine;

/// What a name server answered to both questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrvAnswers {
    /// The SRV records of [`SrvOptions::srv_name`](super::SrvOptions::srv_name).
    pub srv: Result<Vec<SrvRecord>, LookupError>,
    /// The TXT records of [`SrvOptions::txt_name`](super::SrvOptions::txt_name). To have none is no error.
    pub txt: Result<Vec<TxtRecord>, LookupError>,
}

impl SrvAnswers {
    /// The lowest TTL of the SRV records.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        lowest_ttl(&self.srv)
    }
}

pub(crate) fn lowest_ttl(records: &Result<Vec<SrvRecord>, LookupError>) -> Duration {
    records.iter().flatten().map(|record| record.ttl).min().unwrap_or_default()
}

/// An SRV record. Its priority and its weight have no meaning here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SrvRecord {
    /// The name of a server, with or without a dot at its end.
    pub target: String,
    /// Its port.
    pub port: u16,
    /// How long the answer is valid.
    pub ttl: Duration,
}

impl SrvRecord {
    /// A record with a TTL of zero.
    #[must_use]
    pub fn new(target: impl Into<String>, port: u16) -> Self {
        Self { target: target.into(), port, ttl: Duration::ZERO }
    }

    /// Sets how long the answer is valid.
    #[must_use]
    pub const fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }
}

/// A TXT record: strings of at most 255 bytes, which are one text together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxtRecord {
    /// In the order of the record.
    pub strings: Vec<Vec<u8>>,
}

impl From<&str> for TxtRecord {
    fn from(text: &str) -> Self {
        Self { strings: vec![text.as_bytes().to_vec()] }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The name does not exist.
    #[error("the name does not exist")]
    NotFound,
    /// The name exists, but has no records of this type.
    #[error("the name has no such records")]
    NoRecords,
    /// No name server answered in time.
    #[error("no name server answered within {:?}", rounded(*after))]
    TimedOut {
        /// How long they were waited for.
        after: Duration,
    },
    /// The embedder's check rejected every host.
    #[error("none of the hosts is accepted")]
    NoneAccepted,
    /// The look-up failed for another reason.
    #[error("{}", OneLine::text(.0))]
    Failed(String),
}

impl LookupError {
    /// What to do about it.
    pub(super) const fn advice(&self) -> &'static str {
        match self {
            Self::NotFound | Self::NoRecords => {
                "check the host and srvServiceName, or write `mongodb://` if it is a server itself"
            }
            Self::NoneAccepted => "correct the records, or the check of hosts",
            Self::TimedOut { .. } | Self::Failed(_) => "check the name servers and the way to them",
        }
    }
}
