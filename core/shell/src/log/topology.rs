//! What a client and its monitors tell, through `tracing`: target `cenote::topology`, level DEBUG, and WARN for what is
//! wrong.

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::{monitor, topology};
use tracing::level_filters::LevelFilter;
use tracing::{Level, debug, enabled, warn};

use super::fields::{number, text};
use crate::runtime::contain;

// LG-43
const TARGET: &str = "cenote::topology";

/// Whether `tracing` collects these messages.
pub fn is_wanted() -> bool {
    LevelFilter::current() >= Level::DEBUG && enabled!(target: TARGET, Level::DEBUG)
}

/// Logs what is known of a topology from now on.
pub fn topology(event: &topology::Event, topology_id: &str) {
    log(|| LogRecord::of_topology(event, topology_id));
}

/// Logs what is asked of a server, and what came of it.
pub fn heartbeat(
    event: &monitor::Event,
    address: &ServerAddress,
    topology_id: &str,
    settings: &LogSettings,
) {
    log(|| LogRecord::of_heartbeat(event, address, topology_id, settings));
}

fn log<'a>(record: impl FnOnce() -> Option<LogRecord<'a>>) {
    contain(|| {
        let Some(record) = record() else { return };
        debug!(
            target: TARGET,
            message = record.message(),
            topologyId = text(&record, "topologyId"),
            serverHost = text(&record, "serverHost"),
            serverPort = number(&record, "serverPort"),
            driverConnectionId = number(&record, "driverConnectionId"),
            serverConnectionId = number(&record, "serverConnectionId"),
            awaited = number(&record, "awaited"),
            durationMS = number(&record, "durationMS"),
            reply = text(&record, "reply"),
            failure = text(&record, "failure"),
            previousDescription = text(&record, "previousDescription"),
            newDescription = text(&record, "newDescription"),
        );
    });
}

/// Not a message of the specification: a server is there, and cannot be used.
#[cold]
pub fn server_refused(address: &ServerAddress, topology_id: &str, error: &ConnectionError) {
    contain(|| {
        warn!(
            target: TARGET,
            topologyId = topology_id,
            serverHost = address.host(),
            serverPort = address.port(),
            "Server cannot be used: {}",
            error.with_advice()
        );
    });
}

/// Not a message of the specification: a subscriber does not return.
#[cold]
pub fn events_dropped(topology_id: &str) {
    let message = "Events of servers are dropped: a subscriber blocks, or takes too long";
    contain(|| warn!(target: TARGET, message, topologyId = topology_id));
}

/// Not a message of the specification: the client is closed, and a subscriber has not returned in time.
#[cold]
pub fn close_gave_up(topology_id: &str) {
    let message = "Client closed without waiting longer: a subscriber of its servers blocks";
    contain(|| warn!(target: TARGET, message, topologyId = topology_id));
}
