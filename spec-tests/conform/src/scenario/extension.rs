//! What official files do not have: deadlines of the caller, errors of connections in use, and counts.

use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::Purpose;
use serde::Deserialize;

use crate::counts::Counts;
use crate::request::CheckOutRequest;

/// The operation `checkOut`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct CheckOut {
    pub(crate) label: Option<String>,
    // Not part of the official format. CS-02
    #[serde(rename = "timeoutMS")]
    timeout_ms: Option<u64>,
    // Not part of the official format. LB-06
    #[serde(default)]
    purpose: PurposeName,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PurposeName {
    #[default]
    Other,
    Cursor,
    Transaction,
}

/// The error of a connection in use.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Broken {
    /// The peer closed the connection.
    Network,
    /// The peer did not reply in time.
    Timeout,
}

/// The operation `assertCounts`; what is not named can be anything.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ExpectedCounts {
    total: Option<u64>,
    available: Option<u64>,
    pending: Option<u64>,
    in_use: Option<u64>,
    waiting: Option<u64>,
}

impl CheckOut {
    pub(crate) fn request(&self) -> CheckOutRequest {
        let timeout = self.timeout_ms.map(Duration::from_millis);
        let purpose = match self.purpose {
            PurposeName::Other => Purpose::Other,
            PurposeName::Cursor => Purpose::Cursor,
            PurposeName::Transaction => Purpose::Transaction,
        };
        CheckOutRequest::new(purpose, timeout)
    }
}

impl Broken {
    pub(crate) fn error(self, says: Option<&str>) -> ConnectionError {
        match self {
            Self::Network => {
                let text = says.unwrap_or("broken by the test").to_owned();
                ConnectionError::network(Stage::Operation, text)
            }
            Self::Timeout => ConnectionError::timeout(Stage::Operation, Duration::from_secs(1)),
        }
    }
}

impl ExpectedCounts {
    /// What serde cannot check.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { total, available, pending, in_use, waiting } = self;
        let counts = [total, available, pending, in_use, waiting];
        let counts_something = counts.iter().any(|it| it.is_some());
        counts_something.then_some(()).ok_or_else(|| "there is nothing to count".to_owned())
    }

    /// # Errors
    ///
    /// The first difference.
    pub(crate) fn compare(&self, seen: &Counts) -> Result<(), String> {
        let counts = [
            ("total", self.total, seen.total),
            ("available", self.available, seen.available),
            ("pending", self.pending, seen.pending),
            ("inUse", self.in_use, seen.in_use),
            ("waiting", self.waiting, seen.waiting),
        ];
        let differs =
            |(_, expected, seen): &(_, Option<u64>, u64)| expected.is_some_and(|it| it != *seen);
        match counts.into_iter().find(differs) {
            Some((what, expected, count)) => Err(format!(
                "expected {what} to be {}, but it is {count}: {seen}",
                expected.unwrap_or_default()
            )),
            None => Ok(()),
        }
    }
}
