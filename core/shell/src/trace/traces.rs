//! The part of traces that needs no lock.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cenote_core::trace::TraceInfo;

use super::error::RecordingError;
use super::log;
use super::new_file::NewFile;
use super::reason::Reason;
use super::recordable::ChunkWriter;

/// Where traces of a pool or of a topology go, and what their headers say.
#[derive(Debug)]
pub struct Traces {
    info: TraceInfo,
    /// Where automatic dumps go.
    folder: Option<PathBuf>,
    /// Its number in this process, and that it is a topology.
    name: String,
    /// The first panic was dumped.
    has_panicked: AtomicBool,
}

impl Traces {
    pub(super) fn new(info: TraceInfo, folder: Option<PathBuf>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        let is_topology = info.address.is_empty();
        let name = format!("{number}{}", if is_topology { "-topology" } else { "" });
        Self { info, folder, name, has_panicked: AtomicBool::new(false) }
    }

    /// What the header of a trace says.
    pub(super) const fn info(&self) -> &TraceInfo {
        &self.info
    }

    pub(super) const fn dumps_by_itself(&self) -> bool {
        self.folder.is_some()
    }

    /// The file of an automatic dump; `None` without a folder.
    pub(super) fn file(&self, reason: Reason) -> Option<NewFile> {
        self.folder.as_ref().map(|folder| self.file_in(folder, reason))
    }

    /// A new file of this folder.
    pub(super) fn file_in(&self, folder: &Path, reason: Reason) -> NewFile {
        NewFile::new(folder, &self.name, reason)
    }

    /// Whether this is the first panic, which is to be dumped.
    pub(super) fn is_first_panic(&self) -> bool {
        self.dumps_by_itself() && !self.has_panicked.swap(true, Ordering::Relaxed)
    }
}

/// Writes a dump into a new file.
pub(super) fn write<W: ChunkWriter>(
    recording: &W::Flight,
    info: &TraceInfo,
    new: &NewFile,
) -> Result<PathBuf, RecordingError> {
    let (file, path) = new.create()?;
    match W::write_flight(recording, info, file) {
        Ok(_) => Ok(path),
        Err(error) => Err(RecordingError::file(&path, error)),
    }
}

/// The same, and reports it. Returns the file.
pub(super) fn dump<W: ChunkWriter>(
    recording: &W::Flight,
    info: &TraceInfo,
    new: &NewFile,
    reason: Reason,
) -> Option<PathBuf> {
    match write::<W>(recording, info, new) {
        Ok(path) => {
            log::trace_dumped(reason, &path);
            Some(path)
        }
        Err(error) => {
            log::recording_failed(&error);
            None
        }
    }
}
