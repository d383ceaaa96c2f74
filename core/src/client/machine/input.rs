//! What goes in.

use core::time::Duration;

use bson::RawDocumentBuf;

use crate::client::Selector;
use crate::connect::ConnectionDescription;
use crate::error::ConnectionError;
use crate::monitor::SocketId;
use crate::pool::{Instant, ServiceId};
use crate::topology::ServerId;
use crate::uri::srv::{LookupError, SrvRecord};

/// The number of a request for a server. The embedder counts them, from 1; they increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectionId(pub u64);

/// What a client is told. Inputs about a server that was removed are ignored.
#[derive(Clone, Debug)]
pub enum Input<W> {
    /// A monitoring socket is open, and hello is done.
    SocketOpened {
        /// Whose socket it is.
        server: ServerId,
        /// Which one.
        socket: SocketId,
        /// What hello said.
        hello: Box<ConnectionDescription>,
        /// How long hello took.
        round_trip: Duration,
    },
    /// A reply has come on a monitoring socket.
    SocketReplied {
        /// Whose socket it is.
        server: ServerId,
        /// Which one.
        socket: SocketId,
        /// The reply.
        reply: RawDocumentBuf,
        /// Whether the server sends more replies to the same command.
        more_to_come: bool,
    },
    /// A monitoring socket could not be opened, or has failed.
    SocketFailed {
        /// Whose socket it is.
        server: ServerId,
        /// Which one.
        socket: SocketId,
        /// Why.
        error: ConnectionError,
    },
    /// A connection of a pool has failed, while it was established or in use. To be told before the pool and the caller.
    ConnectionFailed {
        /// Whose pool it is of.
        server: ServerId,
        /// Why, with the stage.
        error: ConnectionError,
        /// Whether the pool, or the service, was not cleared since the connection was made.
        is_current: bool,
        /// The service at the other end, behind a load balancer and once hello is done.
        service: Option<ServiceId>,
    },
    /// The answer to [`Action::LookUp`](super::Action::LookUp).
    LookedUp {
        /// The records.
        records: Result<Vec<SrvRecord>, LookupError>,
        /// A random number, by which servers are drawn if there are more than `srvMaxHosts`.
        draw: u64,
    },
    /// An operation wants a server. The answer is [`Action::Deliver`](super::Action::Deliver).
    SelectServer(Request<W>),
    /// The caller finds that its deadline has come, before [`Timer`](Self::Timer) has. Ignored if it has not, or if the
    /// request has its answer.
    SelectionTimedOut {
        /// Which request.
        id: SelectionId,
    },
    /// The caller does not wait any more. Ignored if the request has its answer.
    CancelSelection {
        /// Which request.
        id: SelectionId,
    },
    /// All servers are to be checked as soon as the minimum of 500 ms between two checks allows.
    RequestChecks,
    /// The [deadline](super::ClientState::next_deadline) has come, or may have.
    Timer,
    /// The client is closed for good.
    Close,
}

/// A request for a server.
#[derive(Clone, Debug)]
pub struct Request<W> {
    /// Its number, higher than those before.
    pub id: SelectionId,
    /// The caller.
    pub waiter: W,
    /// Which server it wants.
    pub selector: Selector,
    /// Until when it waits; `None`: for ever. One that has passed asks for what is there at once.
    pub deadline: Option<Instant>,
    /// A random number, by which two of the servers that fit are drawn.
    pub draw: u64,
}

impl<W> Input<W> {
    /// The name of the variant.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SocketOpened { .. } => "SocketOpened",
            Self::SocketReplied { .. } => "SocketReplied",
            Self::SocketFailed { .. } => "SocketFailed",
            Self::ConnectionFailed { .. } => "ConnectionFailed",
            Self::LookedUp { .. } => "LookedUp",
            Self::SelectServer(_) => "SelectServer",
            Self::SelectionTimedOut { .. } => "SelectionTimedOut",
            Self::CancelSelection { .. } => "CancelSelection",
            Self::RequestChecks => "RequestChecks",
            Self::Timer => "Timer",
            Self::Close => "Close",
        }
    }
}
