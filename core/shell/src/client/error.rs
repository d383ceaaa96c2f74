use cenote_core::monitor::InvalidMonitorOptions;
use thiserror::Error;

use crate::builder::BuildError;

/// Why there is no client.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientBuildError {
    /// The connection string is none, or there can be no pool.
    #[error(transparent)]
    Pool(#[from] BuildError),
    /// The servers cannot be watched like that.
    #[error(transparent)]
    Monitoring(#[from] InvalidMonitorOptions),
}
