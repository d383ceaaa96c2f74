use std::io;
use std::sync::Arc;

use cenote_core::error::ConnectionError;
use cenote_core::pool::InvalidOptions;
use cenote_core::uri::UriError;
use thiserror::Error;

#[cfg(unix)]
use crate::inspect::InspectError;
use crate::trace::RecordingError;

/// Why there is no pool.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The connection string is none.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The options contradict each other.
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    /// No connection could ever be made: a file that cannot be read, a credential that cannot be
    /// used.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// What was to be recorded could not be written anywhere.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The pool cannot be inspected where it should be.
    #[cfg(unix)]
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The operating system has no event loop or no thread for it. Not where a runtime has both.
    #[error("no event loop for the pool: {0}")]
    EventLoop(Arc<io::Error>),
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::EventLoop(Arc::new(error))
    }
}
