//! What users are told when something fails, and what is made of other people's failures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote_core::error::{ConnectionError, Stage};
use thiserror::Error;

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

/// What a connector finds fault with in a connection that comes back. If it panics, the connection is
/// not to be trusted, and comes back all the same.
pub fn fault(ask: impl FnOnce() -> Option<ConnectionError>) -> Option<ConnectionError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| {
        let reason = "the connector panicked when it was asked what is wrong with it";
        Some(ConnectionError::protocol(Stage::Operation, reason))
    })
}
