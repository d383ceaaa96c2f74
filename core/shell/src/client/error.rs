use cenote_core::monitor::InvalidMonitorOptions;
use cenote_core::uri::srv::SrvError;
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
    /// The host of `mongodb+srv://` leads to no servers.
    #[error(transparent)]
    Srv(#[from] SrvError),
    /// The servers of `mongodb+srv://` are not known yet.
    #[error(
        "the servers of {host} are not looked up yet: `ClientBuilder::resolve`, `Client::connect_to` and all clients \
         of cenote-mio do that, with the feature `srv`"
    )]
    Unresolved {
        /// The host.
        host: String,
    },
    /// Servers were looked up before a rule for their hosts was given.
    #[error(
        "{option} was given after the servers had been looked up: give it before `ClientBuilder::resolve`"
    )]
    LateHostRule {
        /// The rule.
        option: &'static str,
    },
}
