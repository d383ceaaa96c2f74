//! What the thread that writes knows of a pool or a topology.

use std::path::PathBuf;

use super::new_file::NewFile;
use super::reason::Reason;
use super::recordable::ChunkWriter;

/// What is recorded, whatever it is of.
pub(super) trait Journaled<W: ChunkWriter>: Send + Sync {
    /// The oldest full chunk, if there is one; with `flush`, all that there is counts as full.
    /// Memory of a chunk that was written is used again.
    fn next_chunk(&self, flush: bool, written: Option<W::Chunk>) -> Option<W::Chunk>;

    /// Ends the recording: nothing is written any more.
    fn stop(&self);

    /// What the flight recorder holds, and the file for a dump of it.
    fn last(&self, reason: Reason) -> Option<(W::Flight, NewFile)>;
}

/// What is dumped when something goes wrong elsewhere.
pub(crate) trait DumpedBeside: Send + Sync {
    /// Writes what the flight recorder holds into the folder for dumps, if there are both. Returns the file.
    fn dump(&self, reason: Reason) -> Option<PathBuf>;
}
