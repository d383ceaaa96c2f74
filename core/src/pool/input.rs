//! What goes in: everything that can happen to a pool.

use alloc::boxed::Box;

use super::id::{ConnId, ServiceId, WaiterId};
use super::options::PoolOptions;
use super::time::Instant;
use super::types::PoolTypes;

/// Something that happened. The machine decides what follows from it.
///
/// Contract of order for shells: a failure is shown to SDAM first, which may feed `Clear`, and only
/// then fed as `EstablishFailed` or as `CheckedIn` with [`Health::Errored`]. That gives the order
/// that the official files ask for: `ConnectionPoolCleared`, then `ConnectionClosed`, then
/// `ConnectionCheckOutFailed`.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<S: PoolTypes> {
    /// A caller wants a connection.
    CheckOutRequested {
        /// Greater than every id before it in this pool.
        id: WaiterId,
        /// Comes back with the outcome.
        waiter: S::Waiter,
        /// When the caller gives up: the whole operation's deadline. With it `waitQueueTimeoutMS`
        /// does not apply. A deadline that is not after `now` asks for an idle connection or
        /// nothing.
        deadline: Option<Instant>,
        /// What the connection is for, counted in load-balanced mode.
        purpose: Purpose,
    },
    /// The caller went away. Does nothing when its request has had its outcome already.
    CheckOutCancelled {
        /// The request.
        id: WaiterId,
    },
    /// A connection comes back.
    CheckedIn {
        /// A connection in use.
        id: ConnId,
        /// Its payload.
        conn: S::Conn,
        /// Whether it may be used again.
        health: Health<S::Cause>,
    },
    /// A connection in use serves another purpose from now on: a cursor or a transaction was pinned
    /// to it, or let go of it.
    Repurposed {
        /// A connection in use.
        id: ConnId,
        /// The purpose that counts from now on.
        purpose: Purpose,
    },
    /// Hello is done, authentication is not. Required in load-balanced mode, where the connection
    /// takes its generation from its service at this moment; optional otherwise.
    Handshaken {
        /// A pending connection.
        id: ConnId,
        /// The `serviceId` of the hello reply: in load-balanced mode always, otherwise never.
        service: Option<ServiceId>,
    },
    /// A connection finished handshake and authentication.
    EstablishSucceeded {
        /// The connection. If it was aborted meanwhile, its payload comes back as `CloseSocket`.
        id: ConnId,
        /// Its payload.
        conn: S::Conn,
    },
    /// A connection could not be established. SDAM has already seen the error.
    EstablishFailed {
        /// The connection. If it was aborted meanwhile, nothing happens.
        id: ConnId,
        /// Why.
        cause: S::Cause,
    },
    /// The peer closed a connection that lay in the pool. Does nothing when the connection is in
    /// use or closed by now: its user will notice.
    IdleClosedByPeer {
        /// The connection.
        id: ConnId,
        /// What was seen.
        cause: S::Cause,
    },
    /// The server can be used: a check succeeded, or a load balancer was installed.
    Ready,
    /// The pool is closed, for good.
    Close,
    /// Time has come for whatever [`PoolState::next_deadline`](super::PoolState::next_deadline)
    /// named. Early, late or twice does no harm.
    Timer,
    /// This process is a child of the one that made the connections. A new generation starts with
    /// nothing in it and the state stays as it is, because no monitor would make a child's pool
    /// ready again.
    ///
    /// Sockets and waiters belong to the parent: the shell drops what it is handed without a byte
    /// to a peer and without waking a thread or task. A connection that was in use and is checked
    /// in later comes back as `CloseSocket`, without events.
    ResetAfterFork,
    /// Every connection so far is suspect.
    Clear {
        /// The error that led to it; it is told to the requests that fail because of it.
        cause: S::Cause,
        /// Also break connections that are in use or being established.
        interrupt: bool,
        /// In load-balanced mode, the service whose connections are suspect; otherwise `None`.
        service: Option<ServiceId>,
    },
    /// The options change while the pool runs.
    ///
    /// A smaller maximum closes idle surplus at once and surplus in use when it is checked in;
    /// nothing is created above it. Timeouts and the maximum lifetime apply to what starts
    /// afterwards; all else applies at once. Load-balanced mode cannot change.
    SetOptions {
        /// All of them; what is not set returns to its default.
        options: Box<PoolOptions>,
    },
}

impl<S: PoolTypes> Input<S> {
    /// The name of the variant, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CheckOutRequested { .. } => "CheckOutRequested",
            Self::CheckOutCancelled { .. } => "CheckOutCancelled",
            Self::CheckedIn { .. } => "CheckedIn",
            Self::Repurposed { .. } => "Repurposed",
            Self::Handshaken { .. } => "Handshaken",
            Self::EstablishSucceeded { .. } => "EstablishSucceeded",
            Self::EstablishFailed { .. } => "EstablishFailed",
            Self::IdleClosedByPeer { .. } => "IdleClosedByPeer",
            Self::Ready => "Ready",
            Self::Close => "Close",
            Self::Timer => "Timer",
            Self::ResetAfterFork => "ResetAfterFork",
            Self::Clear { .. } => "Clear",
            Self::SetOptions { .. } => "SetOptions",
        }
    }
}

/// In what condition a connection comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health<C> {
    /// It may be used again.
    Healthy,
    /// It met an error after which it must not be used again: a network error, a timeout of the
    /// driver, an unread reply, a breach of the protocol.
    Errored(C),
}

/// What a checked-out connection is used for; load-balanced pools tell these apart in the message
/// of a wait-queue timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// One operation, from check-out to check-in.
    #[default]
    Other,
    /// A cursor is pinned to it.
    Cursor,
    /// A transaction is pinned to it.
    Transaction,
}
