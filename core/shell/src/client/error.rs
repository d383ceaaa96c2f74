use cenote_core::monitor::InvalidMonitorOptions;
use thiserror::Error;

use crate::builder::BuildError;

/// Why a client could not be built.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientBuildError {
    /// The connection string is invalid, or a pool could not be built.
    #[error(transparent)]
    Pool(#[from] BuildError),
    /// The options for monitors contradict each other.
    #[error(transparent)]
    Monitoring(#[from] InvalidMonitorOptions),
}
