//! How far establishments have come.

use crate::error::Stage;
use crate::pool::Instant;

/// The establishment of a connection came to a stage, and was in it until the next one, or until it ended; or a connection
/// failed in a stage, and the client's machine was told. The machine of the pool does not hear of it: a trace has it for
/// its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageRecord {
    /// When.
    pub at: Instant,
    /// CMAP's number of the connection.
    pub connection: u64,
    /// Which one.
    pub stage: Stage,
    /// If the connection failed: the step of the client by which its server became another, a number of the
    /// [topology's trace](super::topology::Step::client_step).
    pub failed: Option<u64>,
}
