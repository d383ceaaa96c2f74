use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::monitor::Event;

/// What happened to a watched server, and which one it is.
#[derive(Clone, Debug)]
pub struct ServerEvent {
    /// As the connection string has it.
    pub address: Arc<ServerAddress>,
    /// What happened.
    pub event: Event,
}

/// Somebody who is told everything.
pub(super) type ServerSubscriber = Box<dyn Fn(&ServerEvent) + Send + Sync>;
