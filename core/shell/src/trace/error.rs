//! Why there is no trace.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

/// Why a trace is not there, or not whole. The pool goes on all the same.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Nothing is there to be dumped.
    #[error("the pool has no flight recorder: Builder::flight_recorder gives it one")]
    NoFlightRecorder,
    /// One recording at a time.
    #[error("the pool is being recorded already")]
    IsRecording,
    /// A file or a folder that cannot be made, or written to any further.
    #[error("no trace can be written to {}: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the operating system says.
        error: Arc<io::Error>,
    },
    /// A writer that failed.
    #[error("no trace can be written: {0}")]
    Writer(Arc<io::Error>),
    /// What is to be dumped by itself has nowhere to go.
    #[error("a dump on a signal needs a folder: Builder::dump_traces_into names one")]
    NoFolder,
    /// A signal that cannot be handled.
    #[error("no dump on signal {number}: {error}")]
    Signal {
        /// Which one.
        number: i32,
        /// Why not.
        error: Arc<io::Error>,
    },
    /// There is no thread that could write traces.
    #[error("no thread for writing traces can be started: {0}")]
    Thread(Arc<io::Error>),
}

impl RecordingError {
    /// The thread that writes has ended.
    #[must_use]
    pub fn ended() -> Self {
        Self::Writer(Arc::new(io::Error::other("the thread that writes has ended")))
    }

    /// About a file or a folder.
    #[must_use]
    pub fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error: Arc::new(error) }
    }

    /// About the file, or the writer if there is no path.
    pub(super) fn sink(path: Option<&Path>, error: io::Error) -> Self {
        match path {
            Some(path) => Self::file(path, error),
            None => Self::Writer(Arc::new(error)),
        }
    }
}
