//! What a recording goes into.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cenote_core::trace::JournalOptions;

use super::error::RecordingError;
use super::new_file;
use super::sink::{OpenSink, Sink};

/// Where `Builder::record` writes to, and what. A path is a recording with
/// the default options, too.
///
/// ```
/// use cenote_core::trace::JournalOptions;
/// use cenote_shell::trace::Recording;
///
/// let journal = JournalOptions::default().with_actions(true);
/// let recording = Recording::to_file("incident.bson").with_journal(journal);
/// # drop(recording);
/// ```
pub struct Recording {
    destination: Destination,
    pub(super) journal: JournalOptions,
}

enum Destination {
    File(PathBuf),
    /// One that the library has named.
    NewFile(PathBuf),
    /// The lock is never waited for: it makes a builder shareable whatever the writer is.
    Writer(Mutex<Sink>),
}

impl Recording {
    /// Into a file, which is made when the pool is built; what was there before is overwritten.
    #[must_use]
    pub fn to_file(path: impl Into<PathBuf>) -> Self {
        Self { destination: Destination::File(path.into()), journal: JournalOptions::default() }
    }

    /// Into a file that the library has named.
    pub(super) fn to_new_file(path: PathBuf) -> Self {
        Self { destination: Destination::NewFile(path), journal: JournalOptions::default() }
    }

    /// Into whatever `writer` is. It is called by one thread that does nothing else, with 64 KiB at
    /// a time or what came in a second: it need not buffer and may block. Calls that fail or panic
    /// end the recording.
    #[must_use]
    pub fn to_writer(writer: impl Write + Send + 'static) -> Self {
        let destination = Destination::Writer(Mutex::new(Box::new(writer)));
        Self { destination, journal: JournalOptions::default() }
    }

    /// How much is kept in memory until it is written, how often there is a fingerprint, and whether
    /// actions are recorded, too.
    #[must_use]
    pub fn with_journal(mut self, journal: JournalOptions) -> Self {
        self.journal = journal;
        self
    }

    /// Makes the file, if it is one, whose path is given back.
    pub(super) fn open(self) -> Result<OpenSink, RecordingError> {
        match self.destination {
            Destination::Writer(writer) => {
                Ok((writer.into_inner().unwrap_or_else(PoisonError::into_inner), None))
            }
            Destination::File(path) => opened(File::create(&path), path),
            Destination::NewFile(path) => opened(new_file::replace(&path), path),
        }
    }
}

fn opened(file: io::Result<File>, path: PathBuf) -> Result<OpenSink, RecordingError> {
    match file {
        Ok(file) => Ok((Box::new(file), Some(path))),
        Err(error) => Err(RecordingError::file(&path, error)),
    }
}

impl From<PathBuf> for Recording {
    fn from(path: PathBuf) -> Self {
        Self::to_file(path)
    }
}

impl From<&Path> for Recording {
    fn from(path: &Path) -> Self {
        Self::to_file(path)
    }
}

impl From<&str> for Recording {
    fn from(path: &str) -> Self {
        Self::to_file(path)
    }
}

impl From<String> for Recording {
    fn from(path: String) -> Self {
        Self::to_file(path)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Recording");
        if let Destination::File(path) | Destination::NewFile(path) = &self.destination {
            debug.field("path", path);
        }
        debug.field("journal", &self.journal).finish_non_exhaustive()
    }
}
