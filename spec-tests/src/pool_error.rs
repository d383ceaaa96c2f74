//! The names and messages that the specification gives to the errors of a pool.

use std::fmt::Display;

use cenote_core::pool::CheckOutError;

/// An error of a pool, as drivers raise it (ER-02 … ER-05).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolError {
    /// `PoolClosedError`, `PoolClearedError`, `WaitQueueTimeoutError`; otherwise
    /// `ConnectionError`, which is the error of whoever failed to connect.
    pub kind: &'static str,
    /// What it says.
    pub message: String,
    /// The address of the pool.
    pub address: String,
}

impl PoolError {
    /// Names the error of a check-out from the pool of `address`.
    pub fn new<C: Display>(error: &CheckOutError<C>, address: &str) -> Self {
        let (kind, message) = match error {
            CheckOutError::PoolClosed => (
                "PoolClosedError",
                "Attempted to check out a connection from closed connection pool".to_owned(),
            ),
            CheckOutError::PoolCleared { cause: Some(cause) } => (
                "PoolClearedError",
                format!(
                    "Connection pool for {address} was cleared because another operation failed \
                     with: {cause}"
                ),
            ),
            // No pool is paused without a cause but one that was never ready (ER-08).
            CheckOutError::PoolCleared { cause: None } => (
                "PoolClearedError",
                format!("Connection pool for {address} has not been marked ready yet"),
            ),
            CheckOutError::WaitQueueTimeout { .. } => (
                "WaitQueueTimeoutError",
                "Timed out while checking out a connection from connection pool".to_owned(),
            ),
            CheckOutError::EstablishFailed { cause } => ("ConnectionError", cause.to_string()),
            CheckOutError::Cancelled => {
                ("ConnectionError", "The check-out was given up by its caller".to_owned())
            }
        };
        Self { kind, message, address: address.to_owned() }
    }
}

impl Display for PoolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for PoolError {}
