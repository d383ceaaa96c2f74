use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

/// Why pools cannot be inspected.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// A process listens there.
    #[error("inspection: a process already listens on {}: each needs a path of its own", .0.display())]
    InUse(PathBuf),
    /// A file that is not a socket. It is left alone.
    #[error("inspection: {} exists and is not a socket: choose another path", .0.display())]
    NotASocket(PathBuf),
    /// The socket cannot be created, or its thread not be started.
    #[error("inspection: no socket at {}: {error}", path.display())]
    Socket {
        /// Where it was to be.
        path: PathBuf,
        /// What the operating system says.
        error: Arc<io::Error>,
    },
}

impl InspectError {
    pub(super) fn socket(path: &std::path::Path, error: io::Error) -> Self {
        Self::Socket { path: path.to_owned(), error: Arc::new(error) }
    }
}
