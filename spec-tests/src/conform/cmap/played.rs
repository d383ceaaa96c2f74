//! What became of a file on a target, whichever it was.

use cenote_core::error::{ConnectionError, PoolError, Stage};
use serde_json::Value;

/// A file that was played to its end.
pub(super) struct Played {
    /// With what the main thread ended, if it failed.
    pub(super) failure: Option<Failure>,
    /// What the pool had told by then.
    pub(super) events: Vec<Value>,
    /// What did not add up once the pool was closed and everything had come home.
    pub(super) settled: Result<(), String>,
}

/// With what a thread ended.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// An error of the pool, which the file may expect.
    Pool(PoolError),
    /// The script could not go on, which no file expects.
    Script(String),
}

/// Why a file's `clear` clears: as if an operation of somebody else had failed.
pub(super) fn cleared_by_file() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "clear was called by the test")
}

/// Nothing was checked out under that name, or it has come back already.
pub(super) fn nothing_held(label: &str) -> Failure {
    Failure::Script(format!("nothing is checked out as {label} at present"))
}
