//! The part of traces that needs no lock.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cenote_core::trace::TraceInfo;

use super::error::RecordingError;
use super::log;
use super::reason::Reason;
use super::recordable::ChunkWriter;
use crate::runtime::origin::milliseconds_since_1970;

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

    /// A file that does not exist yet; `None` without a folder.
    pub(super) fn path(&self, reason: Reason) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| self.path_in(folder, reason))
    }

    /// A file of this folder that does not exist yet.
    pub(super) fn path_in(&self, folder: &Path, reason: Reason) -> PathBuf {
        let process = process::id();
        let path = |time| {
            let (time, reason) = (utc(time), reason.as_str());
            folder.join(format!("cenote-{time}-{process}-{}-{reason}.bson", self.name))
        };
        // Dumps of the same millisecond get different names.
        let mut paths = (milliseconds_since_1970()..).map(path);
        paths
            .find(|path| !path.exists())
            .unwrap_or_else(|| unreachable!("there are always later times"))
    }

    /// Whether this is the first panic, which is to be dumped.
    pub(super) fn is_first_panic(&self) -> bool {
        self.dumps_by_itself() && !self.has_panicked.swap(true, Ordering::Relaxed)
    }
}

/// Writes a dump into a file, over what was there.
pub(super) fn write<W: ChunkWriter>(
    recording: &W::Flight,
    info: &TraceInfo,
    path: &Path,
) -> Result<(), RecordingError> {
    let written = File::create(path).and_then(|file| W::write_flight(recording, info, file));
    written.map(drop).map_err(|error| RecordingError::file(path, error))
}

/// The same, and reports it.
pub(super) fn dump<W: ChunkWriter>(
    recording: &W::Flight,
    info: &TraceInfo,
    path: &Path,
    reason: Reason,
) {
    match write::<W>(recording, info, path) {
        Ok(()) => log::trace_dumped(reason, path),
        Err(error) => log::recording_failed(&error),
    }
}

/// `20260101T030712.286Z`: a time of the wall clock in a file name that sorts by it.
fn utc(milliseconds: i64) -> String {
    let text = bson::DateTime::from_millis(milliseconds).try_to_rfc3339_string();
    let text = text.unwrap_or_else(|_| milliseconds.to_string()).replace(['-', ':'], "");
    // bson omits a fraction of zero, and zeros at its end.
    let (seconds, fraction) = text.trim_end_matches('Z').split_once('.').unwrap_or((&text, ""));
    format!("{}.{fraction:0<3}Z", seconds.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_have_the_time_of_the_wall_clock() {
        for (milliseconds, name) in [
            (1_767_236_832_286, "20260101T030712.286Z"),
            (1_767_236_832_280, "20260101T030712.280Z"),
            (1_767_236_832_000, "20260101T030712.000Z"),
            (0, "19700101T000000.000Z"),
        ] {
            assert_eq!(utc(milliseconds), name);
        }
    }
}
