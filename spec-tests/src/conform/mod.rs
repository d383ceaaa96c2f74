//! Plays the official test files of MongoDB's specifications.
//!
//! The files are not part of this project; every function here takes a path to them. A file is
//! told by its folder (`cmap-format`, `uri-options`, …), as in the repository of the
//! specifications, and handed to the module that knows its format.

pub mod cmap;

use std::path::{Path, PathBuf};

/// What became of one test of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The file, as it was found.
    pub file: PathBuf,
    /// The test's own description.
    pub description: String,
    /// `Ok` when it passed, otherwise what was expected and what was seen instead.
    pub verdict: Result<(), String>,
}

/// Why a path could not be played at all.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not JSON.
    #[error("{path}: not a JSON document: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where it stops being JSON.
        source: serde_json::Error,
    },
    /// JSON, but not of the format that its folder promises.
    #[error("{path}: not a test file: {reason}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads one JSON file.
///
/// # Errors
///
/// When it cannot be read or is not JSON.
pub fn read_json(path: &Path) -> Result<serde_json::Value, Unreadable> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Unreadable::Io { path: path.to_owned(), source })?;
    serde_json::from_str(&text).map_err(|source| Unreadable::Json { path: path.to_owned(), source })
}
