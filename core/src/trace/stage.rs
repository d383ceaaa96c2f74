//! How far establishments have come.

use crate::error::Stage;
use crate::pool::Instant;

/// The establishment of a connection came to a stage, and was in it until the next one, or until it ended. The machine does
/// not hear of it: a trace has it for those who read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageRecord {
    /// When.
    pub at: Instant,
    /// CMAP's number of the connection.
    pub connection: u64,
    /// Which one.
    pub stage: Stage,
}
