//! What the server asks its driver to do.

use std::fmt;

/// Identifies a connection: 1 is the first that was accepted, and no number is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(super) u64);

/// The client's end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// `host:port`, for `whatsmyuri`; may be empty.
    pub address: String,
    /// The subject of the client certificate as RFC 2253 writes it, for MONGODB-X509.
    pub certificate_subject: Option<String>,
}

/// What the code that owns the sockets does next, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write all of these bytes.
    Send {
        /// The connection.
        id: ConnectionId,
        /// A message, several, or part of one.
        bytes: Vec<u8>,
    },
    /// Close the connection after what was sent. The server has forgotten it.
    Close {
        /// The connection.
        id: ConnectionId,
    },
    /// Close the connection after what was sent, by FIN alone: without TLS's `close_notify`. The server has
    /// forgotten it.
    Fin {
        /// The connection.
        id: ConnectionId,
    },
    /// Reset the connection, without sending what is still to be sent. The server has forgotten
    /// it.
    Reset {
        /// The connection.
        id: ConnectionId,
    },
    /// Shut down the writing side after what was sent; go on reading.
    HalfClose {
        /// The connection.
        id: ConnectionId,
    },
    /// Read no more for now: the peer sends faster than it is answered. Reading on does no harm,
    /// but a peer that goes on sending is closed at twice the size of a message.
    StopReading {
        /// The connection.
        id: ConnectionId,
    },
    /// Read again.
    ResumeReading {
        /// The connection.
        id: ConnectionId,
    },
    /// Accept connections (`true`) or refuse them, which means not to listen at all (`false`). At
    /// the start a server listens.
    Listen(bool),
}

impl Output {
    /// The connection that it is about.
    pub(super) const fn connection(&self) -> Option<ConnectionId> {
        match self {
            Self::Send { id, .. }
            | Self::Close { id }
            | Self::Fin { id }
            | Self::Reset { id }
            | Self::HalfClose { id }
            | Self::StopReading { id }
            | Self::ResumeReading { id } => Some(*id),
            Self::Listen(_) => None,
        }
    }

    /// Whether the server has forgotten the connection.
    pub(super) const fn is_end(&self) -> bool {
        matches!(self, Self::Close { .. } | Self::Fin { .. } | Self::Reset { .. })
    }
}

impl ConnectionId {
    /// The number: it counts connections in the order in which they were accepted, from 1.
    #[must_use]
    pub fn ordinal(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
