//! What can be wrong with a file, and with an operation.

use std::path::PathBuf;

/// Why a file cannot be played at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The operating system reports an error.
    #[error("{path}: {reason}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: std::io::Error,
    },
    /// The file is not JSON.
    #[error("{path}:{line}: not a JSON document: {reason}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The line of the syntax error, from 1.
        line: usize,
        /// The syntax error.
        reason: String,
    },
    /// The file is not YAML.
    #[error("{path}:{line}: not a YAML document: {reason}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The line of the syntax error, from 1.
        line: usize,
        /// The syntax error.
        reason: String,
    },
    /// The file is a document, but not of the expected format; or no format is known for its folder.
    #[error("{path}{}: not a test file: {reason}", colon(*line))]
    Format {
        /// The file.
        path: PathBuf,
        /// The line of the error, from 1, if it has one.
        line: Option<usize>,
        /// The key that is wrong, and how.
        reason: String,
    },
}

fn colon(line: Option<usize>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

/// Why an operation of a scenario did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The pool, or the server, has no such operation. The scenario is reported as
    /// [not applicable](crate::Verdict::NotApplicable), with this reason.
    #[error("{0}")]
    Unsupported(String),
    /// The operation failed. The scenario fails, with this reason.
    #[error("{0}")]
    Failed(String),
}

impl OperationError {
    /// The pool has no operation of this name.
    pub(crate) fn unsupported(operation: &str) -> Self {
        Self::Unsupported(format!("the pool does not implement {operation}"))
    }
}
