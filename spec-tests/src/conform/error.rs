//! Why files cannot be played.

use std::path::PathBuf;

use cenote_conform::Unreadable;

use super::target::Target;

/// A message for files without a test, which would pass whatever the pool does.
pub(super) const NO_TEST: &str = "a file without a test shows nothing";

/// Why a path cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A file cannot be read, or is not of its format.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The file has the endpoint do what no other server can be told to do.
    #[error("{path}: such files are played against the endpoint alone")]
    NoServer {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be played on any target that was asked for.
    #[error("{path}: such files are played on {} alone", Target::names(played_on))]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// Where it can be played.
        played_on: &'static [Target],
    },
}
