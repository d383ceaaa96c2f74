//! What a server wants done, and whom it knows.

use std::fmt;

/// Names a connection: 1 is the first that was accepted, and no number comes twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(super) u64);

/// Who is at the other end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// `host:port`, for `whatsmyuri`; may be empty.
    pub address: String,
    /// The subject of the client certificate as RFC 2253 writes it, for MONGODB-X509.
    pub certificate_subject: Option<String>,
}

/// What whoever has the sockets does next. In this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write all of these bytes.
    Send {
        /// To whom.
        id: ConnectionId,
        /// A message, several, or part of one.
        bytes: Vec<u8>,
    },
    /// Close the connection in good order after what was sent. The server has forgotten it.
    Close {
        /// Which one.
        id: ConnectionId,
    },
    /// Reset the connection, without sending what is still to be sent. The server has forgotten
    /// it.
    Reset {
        /// Which one.
        id: ConnectionId,
    },
    /// Shut down the writing side after what was sent; go on reading.
    HalfClose {
        /// Which one.
        id: ConnectionId,
    },
    /// Read no more for now: the peer sends faster than it is answered. Reading on does no harm,
    /// but a peer who goes on to send is closed at twice the size of a message.
    StopReading {
        /// From whom.
        id: ConnectionId,
    },
    /// Read again.
    ResumeReading {
        /// From whom.
        id: ConnectionId,
    },
    /// Accept connections (`true`) or refuse them, which means not to listen at all (`false`). At
    /// the start a server listens.
    Listen(bool),
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
