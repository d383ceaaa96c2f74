use thiserror::Error;

use super::{ConnectionError, InterruptedError};

/// Why an operation on a connection failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The connection failed, or the server refused.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The pool was cleared with an interrupt while the operation ran.
    #[error(transparent)]
    Interrupted(#[from] InterruptedError),
}

impl OperationError {
    /// Whether a limit of time ran out: `timeoutMS`, `socketTimeoutMS`, or that of the call.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Connection(error) => error.is_timeout(),
            Self::Interrupted(_) => false,
        }
    }

    /// Whether an operation that may safely run twice is worth another attempt.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connection(error) => error.is_retryable(),
            Self::Interrupted(error) => error.is_retryable(),
        }
    }
}
