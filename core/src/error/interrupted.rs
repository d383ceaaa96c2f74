use std::sync::Arc;

use thiserror::Error;

use crate::address::ServerAddress;

/// The error of an operation whose connection was interrupted by a clear of its pool. The shell
/// makes it when it carries out [`Action::Interrupt`](crate::pool::Action::Interrupt).
///
/// To the specification it is a PoolClearedError. It is a type of its own because the operation had
/// its connection: the command may have reached the server. Like [`PoolError`](super::PoolError) it
/// must not be fed to SDAM, which ordered the clear, and cannot be.
///
/// ```
/// use std::sync::Arc;
/// use cenote_core::error::InterruptedError;
///
/// let error = InterruptedError::new(Arc::new("db1.example.com".parse()?));
/// assert_eq!(
///     error.to_string(),
///     "Connection to db1.example.com:27017 interrupted due to server monitor timeout"
/// );
/// # Ok::<(), cenote_core::address::AddressError>(())
/// ```
// INT-07, ER-07
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("Connection to {address} interrupted due to server monitor timeout")]
pub struct InterruptedError {
    address: Arc<ServerAddress>,
}

impl InterruptedError {
    /// The type's name in the specification.
    pub const NAME: &'static str = "PoolClearedError";

    /// A connection to `address` was broken while an operation used it.
    #[must_use]
    pub const fn new(address: Arc<ServerAddress>) -> Self {
        Self { address }
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Whether an operation that may safely run twice is worth another attempt: always.
    ///
    /// There is no such function for labels. `RetryableWriteError` belongs on the operation if it
    /// was a retryable write and `TransientTransactionError` if it was part of a transaction; only
    /// the driver knows.
    // INT-06
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        true
    }
}
