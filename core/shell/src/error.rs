//! What users are told when something fails.

use cenote_core::error::{ConnectionError, InterruptedError};
use thiserror::Error;

/// Why an operation on a connection failed.
#[derive(Clone, Debug, Error)]
pub enum OperationError {
    /// The connection failed, or the server refused.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The pool was cleared with an interrupt while the operation ran (ER-07).
    #[error(transparent)]
    Interrupted(#[from] InterruptedError),
}

impl OperationError {
    /// Whether an operation that may safely run twice is worth another attempt.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connection(error) => error.is_retryable(),
            Self::Interrupted(error) => error.is_retryable(),
        }
    }
}

/// `Pool::close_before` stopped waiting. The pool is closed; this is how much of it is still out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the pool is closed, but {in_use} of its connections are still checked out: each is closed \
     when it comes back"
)]
pub struct CloseTimeout {
    /// Connections that are checked out: at least 1.
    pub in_use: u32,
}
