//! What monitors tell, through `tracing`: target `cenote::topology`, level DEBUG.

use cenote_core::address::ServerAddress;
use cenote_core::monitor::Event;
use tracing::{Level, debug, enabled};

const TARGET: &str = "cenote::topology";

/// Whether `tracing` collects these messages.
pub fn is_wanted() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Says what was learnt of a server, or is being asked.
pub fn event(address: &ServerAddress, event: &Event) {
    let (host, port) = (address.host(), address.port());
    match event {
        Event::ServerHeartbeatStarted { awaited } => debug!(
            target: TARGET,
            message = "Server heartbeat started",
            serverHost = host,
            serverPort = port,
            awaited,
        ),
        Event::ServerHeartbeatSucceeded { awaited, duration, hello } => debug!(
            target: TARGET,
            message = "Server heartbeat succeeded",
            serverHost = host,
            serverPort = port,
            awaited,
            durationMS = duration.as_secs_f64() * 1000.0,
            kind = %hello.kind,
        ),
        Event::ServerHeartbeatFailed { awaited, duration, error } => debug!(
            target: TARGET,
            message = "Server heartbeat failed",
            serverHost = host,
            serverPort = port,
            awaited,
            durationMS = duration.as_secs_f64() * 1000.0,
            failure = %error,
        ),
        Event::ServerDescriptionChanged { previous, new } => debug!(
            target: TARGET,
            message = "Server description changed",
            serverHost = host,
            serverPort = port,
            previousDescription = %previous,
            newDescription = %new,
        ),
    }
}
