use core::fmt;
use std::sync::Arc;

use bson::oid::ObjectId;

use crate::address::ServerAddress;
use crate::log::{LogRecord, LogSettings};
use crate::{monitor, topology};

/// A heartbeat of a client's monitors, and the server that it is of.
///
/// `Display` is the specification's log message about it.
#[derive(Clone, Debug)]
pub struct HeartbeatEvent {
    /// The topology of the client; no two clients have the same.
    pub topology_id: ObjectId,
    /// As the connection string has it, or as the member of a replica set that named it.
    pub address: Arc<ServerAddress>,
    /// What happened: a start, a success or a failure. What the server is known as from then on, a
    /// [`TopologyEvent`] says.
    pub event: monitor::Event,
}

/// One of SDAM's events of a client: what is known of its servers and of the whole deployment.
///
/// `Display` is the specification's log message about it. It has none about the description of one server, which is
/// shown alike.
#[derive(Clone, Debug)]
pub struct TopologyEvent {
    /// The topology of the client; no two clients have the same.
    pub topology_id: ObjectId,
    /// What happened.
    pub event: topology::Event,
}

impl fmt::Display for HeartbeatEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, settings) = (self.topology_id.to_hex(), LogSettings::default());
        let record = LogRecord::of_heartbeat(&self.event, &self.address, &id, &settings);
        record.map_or(Ok(()), |record| record.fmt(f))
    }
}

impl fmt::Display for TopologyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.topology_id.to_hex();
        if let topology::Event::ServerDescriptionChanged { address, previous, new } = &self.event {
            return write!(
                f,
                "Description changed for server {address} in topology with ID {id}. Previous description: {previous}. \
                 New description: {new}"
            );
        }
        LogRecord::of_topology(&self.event, &id).map_or(Ok(()), |record| record.fmt(f))
    }
}

impl monitor::Event {
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
