use std::sync::Arc;
use std::time::Duration;

use super::Trouble;
use super::arguments::Target;
use crate::endpoint::Endpoint;
use crate::soak;

/// Whom the pool talks to.
pub(super) struct Server {
    /// For the pool.
    pub(super) uri: String,
    /// For whoever watches it.
    pub(super) monitor: String,
    /// Between two looks.
    pub(super) pause: Duration,
    /// It itself, if it came along.
    pub(super) endpoint: Option<Arc<Endpoint>>,
}

impl Server {
    pub(super) fn start(target: &Target) -> Result<Self, Trouble> {
        match target {
            Target::Embedded { options } => {
                let endpoint = Arc::new(soak::server(None)?);
                let uri = endpoint.uri();
                Ok(Self {
                    monitor: format!("{uri}&connectTimeoutMS=1000&socketTimeoutMS=300"),
                    uri: format!("{uri}&{options}"),
                    pause: Duration::from_millis(20),
                    endpoint: Some(endpoint),
                })
            }
            // No more often than monitors do, at their busiest (OP-22).
            Target::Elsewhere { uri } => Ok(Self {
                monitor: uri.clone(),
                uri: uri.clone(),
                pause: Duration::from_millis(500),
                endpoint: None,
            }),
        }
    }
}
