//! Inspection of a running process: a Unix domain socket on which `cenote top` looks at its pools.
//!
//! ```text
//!   cenote top ──▶ socket ──▶ thread cenote-inspect      accepts
//!                             thread cenote-inspect-…    one for each inspector: reads a line, looks at the
//!                                                        pool under its lock, and writes a line
//! ```
//!
//! Only these threads wait for an inspector. Without one they block in a system call, and the pools do nothing for
//! them. With one, each check-out notes its place and its time. `docs/run.md` describes the protocol.

mod error;
mod protocol;
mod server;
mod socket;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bson::RawDocumentBuf;

use crate::trace::RecordingError;

pub use self::error::InspectError;
pub(crate) use self::server::Inspector;

/// Is told how a recording has ended.
pub(crate) type RecordingEnded = Box<dyn FnOnce(Result<(), RecordingError>) + Send>;

/// A pool of any type that can be inspected.
pub(crate) trait InspectedPool: Send + Sync {
    /// There is a socket for it from now on.
    fn begin(&self);

    /// While it is watched, places and times of check-outs are remembered.
    fn set_watched(&self, is_watched: bool);

    /// Its counts.
    fn summary(&self) -> RawDocumentBuf;

    /// Its counts, connections and requests.
    fn detail(&self) -> RawDocumentBuf;

    /// Writes what the flight recorder holds into a new file of this folder.
    fn dump_into(&self, folder: &Path) -> Result<PathBuf, RecordingError>;

    /// Records everything from now on in a new file of this folder.
    fn record_into(self: Arc<Self>, folder: &Path) -> Result<PathBuf, RecordingError>;

    /// Ends the recording. `false` without one.
    fn end_recording(&self, reply: RecordingEnded) -> bool;
}
