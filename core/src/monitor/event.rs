//! Events of a monitor.

use core::time::Duration;
use std::sync::Arc;

use super::{ServerDescription, SocketId};
use crate::connect::ConnectionDescription;
use crate::error::ConnectionError;

/// An event of the monitored server. The embedder adds the address.
///
/// Each start of a heartbeat has one end, unless the monitor is closed in between. Nothing is told
/// of round-trip times.
// SE-10
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A check begins, before its socket is opened; or the next streamed reply is waited for.
    ServerHeartbeatStarted {
        /// Whether the server answers when something changes, and not at once.
        awaited: bool,
        /// The connection, which may not be open yet.
        socket: SocketId,
        /// How the server calls the connection, once that is known.
        server_connection_id: Option<i64>,
    },
    /// A check succeeded.
    ServerHeartbeatSucceeded {
        /// As it started.
        awaited: bool,
        /// Since it started; for an awaited one mostly waiting.
        duration: Duration,
        /// The connection.
        socket: SocketId,
        /// The reply of the server. If it is older than the description, it changes nothing.
        hello: Arc<ConnectionDescription>,
    },
    /// A check failed, or was cancelled because an application's connection had failed.
    ServerHeartbeatFailed {
        /// As it started.
        awaited: bool,
        /// Since it started.
        duration: Duration,
        /// The connection.
        socket: SocketId,
        /// How the server calls the connection, if that was known.
        server_connection_id: Option<i64>,
        /// Why.
        error: ConnectionError,
    },
    /// The server is known as something else now; times do not count.
    ServerDescriptionChanged {
        /// The previous description.
        previous: Arc<ServerDescription>,
        /// The new description.
        new: Arc<ServerDescription>,
    },
}

impl Event {
    /// The type's name, as the specifications spell it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ServerHeartbeatStarted { .. } => "ServerHeartbeatStarted",
            Self::ServerHeartbeatSucceeded { .. } => "ServerHeartbeatSucceeded",
            Self::ServerHeartbeatFailed { .. } => "ServerHeartbeatFailed",
            Self::ServerDescriptionChanged { .. } => "ServerDescriptionChanged",
        }
    }
}
