//! The messages about a topology, its servers, and the heartbeats of their monitors.

use super::template::{Piece, Template, key};
use super::{Component, LogRecord, LogSettings, LogValue};
use crate::address::ServerAddress;
use crate::monitor::{self, SocketId};
use crate::topology;

impl<'a> LogRecord<'a> {
    /// The message about an event of the topology with this id, which is unique among those of the process. `None` for
    /// the description of one server: that of the topology, which comes after it, has it.
    // SE-09
    #[must_use]
    pub fn of_topology(event: &'a topology::Event, topology_id: &'a str) -> Option<Self> {
        use topology::Event;

        let about = |template| Self::about(template).with_topology(topology_id);
        Some(match event {
            Event::TopologyOpening => about(&TOPOLOGY_OPENING),
            Event::TopologyDescriptionChanged { previous, new } => about(&DESCRIPTION_CHANGED)
                .with(PREVIOUS_DESCRIPTION, LogValue::text(previous.to_string()))
                .with(NEW_DESCRIPTION, LogValue::text(new.to_string())),
            Event::TopologyClosed => about(&TOPOLOGY_CLOSED),
            Event::ServerOpening { address } => about(&SERVER_OPENING).with_address(address),
            Event::ServerDescriptionChanged { .. } => return None,
            Event::ServerClosed { address } => about(&SERVER_CLOSED).with_address(address),
        })
    }

    /// The message about a heartbeat of a server of the topology with this id. `None` for the monitor's description of
    /// the server: it goes to the topology.
    // SE-09
    #[must_use]
    pub fn of_heartbeat(
        event: &monitor::Event,
        address: &'a ServerAddress,
        topology_id: &'a str,
        settings: &LogSettings,
    ) -> Option<Self> {
        use monitor::Event;

        let about = |template, socket: SocketId, server_connection_id: Option<i64>, awaited| {
            Self::about(template)
                .with_topology(topology_id)
                .with_address(address)
                .with(key::DRIVER_CONNECTION_ID, LogValue::whole(socket.0))
                .with(SERVER_CONNECTION_ID, server_connection_id.map(LogValue::Int))
                .with(AWAITED, LogValue::Bool(awaited))
        };
        Some(match event {
            Event::ServerHeartbeatStarted { awaited, socket, server_connection_id } => {
                about(&HEARTBEAT_STARTED, *socket, *server_connection_id, *awaited)
            }
            Event::ServerHeartbeatSucceeded { awaited, duration, socket, hello } => {
                let reply = hello.reply().map(|reply| LogValue::text(settings.document(reply)));
                about(&HEARTBEAT_SUCCEEDED, *socket, hello.connection_id, *awaited)
                    .with(key::DURATION_MS, LogValue::milliseconds(*duration))
                    .with(REPLY, reply)
            }
            Event::ServerHeartbeatFailed {
                awaited,
                duration,
                socket,
                server_connection_id,
                error,
            } => about(&HEARTBEAT_FAILED, *socket, *server_connection_id, *awaited)
                .with(key::DURATION_MS, LogValue::milliseconds(*duration))
                .with(FAILURE, LogValue::text(settings.cut(error))),
            Event::ServerDescriptionChanged { .. } => return None,
        })
    }

    fn with_topology(self, id: &'a str) -> Self {
        self.with(key::TOPOLOGY_ID, LogValue::text(id))
    }
}

const PREVIOUS_DESCRIPTION: &str = "previousDescription";
const NEW_DESCRIPTION: &str = "newDescription";
const SERVER_CONNECTION_ID: &str = "serverConnectionId";
const AWAITED: &str = "awaited";
const REPLY: &str = "reply";
const FAILURE: &str = "failure";

const fn message(message: &'static str, line: &'static [Piece]) -> Template {
    Template::debug(Component::Topology, message, line)
}

static TOPOLOGY_OPENING: Template =
    message("Starting topology monitoring", &[Piece::Text("Starting monitoring"), FOR_TOPOLOGY]);

static TOPOLOGY_CLOSED: Template =
    message("Stopped topology monitoring", &[Piece::Text("Stopped monitoring"), FOR_TOPOLOGY]);

static SERVER_OPENING: Template = message(
    "Starting server monitoring",
    &[Piece::Text("Starting monitoring for server "), Piece::Address, IN_TOPOLOGY],
);

static SERVER_CLOSED: Template = message(
    "Stopped server monitoring",
    &[Piece::Text("Stopped monitoring for server "), Piece::Address, IN_TOPOLOGY],
);

static DESCRIPTION_CHANGED: Template = message(
    "Topology description changed",
    &[
        Piece::Text("Description changed"),
        FOR_TOPOLOGY,
        Piece::Around(". Previous description: ", PREVIOUS_DESCRIPTION, ""),
        Piece::Around(". New description: ", NEW_DESCRIPTION, ""),
    ],
);

static HEARTBEAT_STARTED: Template = message(
    "Server heartbeat started",
    &[
        Piece::Text("Heartbeat started for "),
        Piece::Address,
        ON_CONNECTION,
        AND_SERVER_CONNECTION,
        IN_TOPOLOGY,
        IS_AWAITED,
    ],
);

static HEARTBEAT_SUCCEEDED: Template = message(
    "Server heartbeat succeeded",
    &[
        Piece::Around("Heartbeat succeeded in ", key::DURATION_MS, " ms for "),
        Piece::Address,
        ON_CONNECTION,
        AND_SERVER_CONNECTION,
        IN_TOPOLOGY,
        IS_AWAITED,
        Piece::Around(". Reply: ", REPLY, ""),
    ],
);

static HEARTBEAT_FAILED: Template = message(
    "Server heartbeat failed",
    &[
        Piece::Around("Heartbeat failed in ", key::DURATION_MS, " ms for "),
        Piece::Address,
        ON_CONNECTION,
        AND_SERVER_CONNECTION,
        IN_TOPOLOGY,
        IS_AWAITED,
        Piece::Around(". Failure: ", FAILURE, ""),
    ],
);

const FOR_TOPOLOGY: Piece = Piece::Around(" for topology with ID ", key::TOPOLOGY_ID, "");
const IN_TOPOLOGY: Piece = Piece::Around(" in topology with ID ", key::TOPOLOGY_ID, "");
const ON_CONNECTION: Piece =
    Piece::Around(" on connection with driver-generated ID ", key::DRIVER_CONNECTION_ID, "");
const AND_SERVER_CONNECTION: Piece =
    Piece::Around(" and server-generated ID ", SERVER_CONNECTION_ID, "");
const IS_AWAITED: Piece = Piece::Around(". Awaited: ", AWAITED, "");
