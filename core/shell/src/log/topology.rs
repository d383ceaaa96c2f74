//! What a client and its monitors tell, through `tracing`: target `cenote::topology`, level DEBUG.
//!
//! These are the messages of the specification, with its keys. It has none about the description of one server.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote_core::address::ServerAddress;
use cenote_core::log::LogSettings;
use cenote_core::monitor::Event;
use cenote_core::topology::TopologyDescription;
use tracing::{Level, debug, enabled};

const TARGET: &str = "cenote::topology";

/// Whether `tracing` collects these messages.
pub fn is_wanted() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Says what is being asked of a server, and what came of it.
pub fn heartbeat(topology: &str, address: &ServerAddress, event: &Event, settings: LogSettings) {
    contained(|| heartbeat_at(topology, address, event, settings));
}

fn heartbeat_at(topology: &str, address: &ServerAddress, event: &Event, settings: LogSettings) {
    let (host, port) = (address.host(), address.port());
    match event {
        Event::ServerHeartbeatStarted { awaited, socket, server_connection_id } => debug!(
            target: TARGET,
            message = "Server heartbeat started",
            topologyId = topology,
            serverHost = host,
            serverPort = port,
            driverConnectionId = socket.0,
            serverConnectionId = server_connection_id,
            awaited,
        ),
        Event::ServerHeartbeatSucceeded { awaited, duration, socket, hello } => debug!(
            target: TARGET,
            message = "Server heartbeat succeeded",
            topologyId = topology,
            serverHost = host,
            serverPort = port,
            driverConnectionId = socket.0,
            serverConnectionId = hello.connection_id,
            awaited,
            durationMS = duration.as_secs_f64() * 1000.0,
            reply = hello.reply().map(|reply| settings.document(reply)),
        ),
        Event::ServerHeartbeatFailed { awaited, duration, socket, server_connection_id, error } => {
            debug!(
                target: TARGET,
                message = "Server heartbeat failed",
                topologyId = topology,
                serverHost = host,
                serverPort = port,
                driverConnectionId = socket.0,
                serverConnectionId = server_connection_id,
                awaited,
                durationMS = duration.as_secs_f64() * 1000.0,
                failure = %error,
            );
        }
        Event::ServerDescriptionChanged { .. } | _ => {}
    }
}

/// The client begins to watch its servers, or has ended that.
pub fn topology_monitoring(topology: &str, message: &str) {
    contained(|| debug!(target: TARGET, message, topologyId = topology));
}

/// The same of one server.
pub fn server_monitoring(topology: &str, address: &ServerAddress, message: &str) {
    contained(|| {
        debug!(
            target: TARGET,
            message,
            topologyId = topology,
            serverHost = address.host(),
            serverPort = address.port(),
        );
    });
}

/// What is known of the servers is something else.
pub fn description_changed(
    topology: &str,
    previous: &TopologyDescription,
    new: &TopologyDescription,
) {
    contained(|| {
        debug!(
            target: TARGET,
            message = "Topology description changed",
            topologyId = topology,
            previousDescription = %previous,
            newDescription = %new,
        );
    });
}

/// `tracing`'s collector may panic.
fn contained(log: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(log));
}
