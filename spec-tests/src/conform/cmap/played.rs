//! What became of a file on a target, whichever it was.

use cenote_core::error::{ConnectionError, PoolError, Stage};
use serde_json::Value;

use crate::conform::logs::Message;

/// A file that was played to its end.
pub(super) struct Played {
    /// With what the main thread ended, if it failed.
    pub(super) failure: Option<Failure>,
    /// What the pool had told by then.
    pub(super) events: Vec<Value>,
    /// What had been logged by then, if the file asks.
    pub(super) messages: Vec<Message>,
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

/// The file does not say that it is not for shells, but it is not.
pub(super) fn for_core_alone() -> Failure {
    Failure::Script(
        "no shell can be told to do that: see notOn in docs/audit/scenarios.md".to_owned(),
    )
}

/// What was to be cleared has no service.
pub(super) fn no_service() -> Failure {
    Failure::Script("the connection has no service: poolOptions.loadBalanced is not set".to_owned())
}

/// The thread does not wait for a connection.
pub(super) fn nothing_to_abandon(thread: &str) -> Failure {
    Failure::Script(format!("{thread} waits for no connection at present"))
}

/// Nothing was checked out under that name, or it has come back already.
pub(super) fn nothing_held(label: &str) -> Failure {
    Failure::Script(format!("nothing is checked out as {label} at present"))
}
