//! What users are told when something fails.

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
