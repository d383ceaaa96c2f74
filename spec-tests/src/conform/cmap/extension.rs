//! What files may say here that official ones do not: how a caller's own deadline, broken connections
//! and counts are written.

use std::ops::Add;
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{Purpose, Snapshot};
use serde::Deserialize;

use super::played::Failure;

/// How a connection is checked out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CheckOut {
    pub(super) label: Option<String>,
    /// Not of the official format: after how long the whole operation is given up (CS-02).
    #[serde(rename = "timeoutMS")]
    timeout_ms: Option<u64>,
    /// What for (LB-06).
    #[serde(default)]
    purpose: ForWhat,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ForWhat {
    #[default]
    Other,
    Cursor,
    Transaction,
}

/// What broke a connection in use.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Broken {
    /// The peer went away.
    Network,
    /// The peer said nothing for too long.
    Timeout,
}

/// What a pool can be asked to count; what is not named may be anything.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Counts {
    total: Option<u64>,
    available: Option<u64>,
    pending: Option<u64>,
    in_use: Option<u64>,
    waiting: Option<u64>,
}

impl CheckOut {
    /// When the operation began, in whatever time, decides when it ends.
    pub(super) fn deadline<T: Add<Duration, Output = T>>(&self, now: T) -> Option<T> {
        self.timeout_ms.map(|ms| now + Duration::from_millis(ms))
    }

    pub(super) const fn purpose(&self) -> Purpose {
        match self.purpose {
            ForWhat::Other => Purpose::Other,
            ForWhat::Cursor => Purpose::Cursor,
            ForWhat::Transaction => Purpose::Transaction,
        }
    }
}

impl Broken {
    /// As whoever used the connection says it.
    pub(super) fn error(self, says: Option<&str>) -> ConnectionError {
        match self {
            Self::Network => {
                let text = says.unwrap_or("broken by the test").to_owned();
                ConnectionError::network(Stage::Operation, text)
            }
            Self::Timeout => ConnectionError::timeout(Stage::Operation, Duration::from_secs(1)),
        }
    }
}

impl Counts {
    /// What serde cannot see.
    ///
    /// # Errors
    ///
    /// That nothing is counted.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { total, available, pending, in_use, waiting } = self;
        let counts = [total, available, pending, in_use, waiting];
        let counts_something = counts.iter().any(|it| it.is_some());
        counts_something.then_some(()).ok_or_else(|| "there is nothing to count".to_owned())
    }

    /// # Errors
    ///
    /// The first that is different.
    pub(super) fn judge(&self, seen: &Snapshot) -> Result<(), Failure> {
        let counts = [
            ("total", self.total, u64::from(seen.total)),
            ("available", self.available, u64::from(seen.available)),
            ("pending", self.pending, u64::from(seen.pending)),
            ("inUse", self.in_use, u64::from(seen.in_use)),
            ("waiting", self.waiting, seen.waiting),
        ];
        let differs =
            |(_, expected, seen): &(_, Option<u64>, u64)| expected.is_some_and(|it| it != *seen);
        match counts.into_iter().find(differs) {
            Some((what, expected, count)) => Err(Failure::Script(format!(
                "expected {what} to be {}, but it is {count}: {seen}",
                expected.unwrap_or_default()
            ))),
            None => Ok(()),
        }
    }
}
