//! Errors of the shell, and faults that connectors report.

use cenote_core::error::{ConnectionError, Stage};
use thiserror::Error;

use crate::runtime::contain;

/// `close_before` stopped waiting. The pool is closed; some of its connections are still checked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the pool is closed, but {in_use} of its connections are still checked out: each is closed \
     when it comes back"
)]
pub struct CloseTimeout {
    /// Connections that are checked out: at least 1.
    pub in_use: u32,
}

/// Asks a connector what is wrong with a connection that is checked in. After a panic the connection counts as
/// broken.
pub fn fault<E: Into<ConnectionError>>(ask: impl FnOnce() -> Option<E>) -> Option<ConnectionError> {
    contain(|| ask().map(Into::into)).unwrap_or_else(|| {
        let reason = "the connector panicked when it was asked what is wrong with it";
        Some(ConnectionError::protocol(Stage::Operation, reason))
    })
}
