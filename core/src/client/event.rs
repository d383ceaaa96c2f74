use std::sync::Arc;

use crate::address::ServerAddress;
use crate::monitor::Event;

/// An event of a monitored server, with its address.
#[derive(Clone, Debug)]
pub struct ServerEvent {
    /// As the connection string has it.
    pub address: Arc<ServerAddress>,
    /// The event.
    pub event: Event,
}

impl Event {
    /// Whether callers that wait for a server should look again: a check has ended, or something
    /// else is known of the server.
    #[must_use]
    pub const fn is_news(&self) -> bool {
        match self {
            Self::ServerHeartbeatStarted { .. } => false,
            Self::ServerHeartbeatSucceeded { .. }
            | Self::ServerHeartbeatFailed { .. }
            | Self::ServerDescriptionChanged { .. } => true,
        }
    }
}
