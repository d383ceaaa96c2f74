//! What goes in: every event that concerns a pool.

use alloc::boxed::Box;

use super::id::{ConnId, ServiceId, WaiterId};
use super::options::PoolOptions;
use super::time::Instant;
use super::types::PoolTypes;

/// Something that happened. The machine decides what follows from it.
///
/// Order matters: the shell reports a failure to SDAM first, which may feed `Clear`, and only then
/// fed as `EstablishFailed` or as `CheckedIn` with [`Health::Errored`]. That gives the order that
/// the official test files require: `ConnectionPoolCleared`, then `ConnectionClosed`, then
/// `ConnectionCheckOutFailed`.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<S: PoolTypes> {
    /// A caller wants a connection.
    // PS-02, OUT-01
    CheckOutRequested {
        /// Greater than every id before it in this pool.
        id: WaiterId,
        /// Returned with the outcome.
        waiter: S::Waiter,
        /// When the caller gives up: the whole operation's deadline. With it `waitQueueTimeoutMS`
        /// does not apply. A deadline that is not after `now` asks for an idle connection or
        /// nothing.
        deadline: Option<Instant>,
        /// What the connection is for, counted in load-balanced mode.
        purpose: Purpose,
    },
    /// The caller cancelled its check-out. Does nothing if the request already has its outcome.
    CheckOutCancelled {
        /// The request.
        id: WaiterId,
    },
    /// A connection is checked in.
    // PS-02, IN-01
    CheckedIn {
        /// A connection in use.
        id: ConnId,
        /// Its payload.
        conn: S::Conn,
        /// Whether it may be used again.
        health: Health<S::Cause>,
    },
    /// A connection in use serves another purpose from now on: a cursor or a transaction was pinned
    /// to it or unpinned.
    Repurposed {
        /// A connection in use.
        id: ConnId,
        /// The new purpose.
        purpose: Purpose,
    },
    /// Hello is done, authentication is not. Required in load-balanced mode, where the connection
    /// takes its generation from its service at this moment; optional otherwise. Fed later than hello,
    /// it misses every clear of the service in between, unless it brings the number of clears at hello.
    Handshaken {
        /// A pending connection.
        id: ConnId,
        /// The `serviceId` of the hello reply: in load-balanced mode always, otherwise never.
        service: Option<ServiceId>,
        /// The [number of clears](super::PoolState::service_clears) when hello was done, for drivers that
        /// feed this input later; `None` says that hello was done now. If the service was cleared since,
        /// the connection is closed as stale. While the pool had no connection of the service, a clear of
        /// any service counts, because services without connections are forgotten.
        clears_at_hello: Option<u64>,
    },
    /// A connection finished handshake and authentication.
    EstablishSucceeded {
        /// The connection. If it was aborted meanwhile, its payload is returned by `CloseSocket`.
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
        /// Whether the server may be overloaded: the error has the label `SystemOverloadedError`. Matters only with
        /// [`overload_backoff`](PoolOptions::overload_backoff).
        overloaded: bool,
    },
    /// The peer closed an available connection. Does nothing if the connection is in use or closed
    /// by now: its user will notice.
    IdleClosedByPeer {
        /// The connection.
        id: ConnId,
        /// The error that was seen.
        cause: S::Cause,
    },
    /// The late reply was read and discarded: the connection can be used.
    DrainSucceeded {
        /// The connection. If it was aborted meanwhile, its payload is returned by `CloseSocket`.
        id: ConnId,
        /// Its payload.
        conn: S::Conn,
    },
    /// The late reply could not be read, or was not what was due. The shell drops the payload.
    DrainFailed {
        /// The connection. If it was aborted meanwhile, nothing happens.
        id: ConnId,
        /// Why.
        cause: S::Cause,
    },
    /// Bytes of the late reply were read: its window of 3 s begins again.
    DrainProgress {
        /// The connection. If it was aborted meanwhile, nothing happens.
        id: ConnId,
    },
    /// Every connection so far was made with credentials that changed: it is closed as soon as it
    /// is not in use, with the reason `idle`; one that is being established at once, and its request is served by another. Unlike after `Clear`, no request fails, the generation
    /// stays, and connections in use go on until they are checked in.
    RetireConnections,
    /// The process is about to be frozen, as between two invocations of a function: every connection that no request
    /// uses or waits for is closed, with the reason `idle`, also one that is being established or awaits a late reply,
    /// and the minimum pauses as after an establishment that failed. Nothing else changes, and no request notices.
    ReleaseIdle,
    /// The server can be used: a check succeeded, or a load balancer was installed.
    Ready,
    /// The pool is closed, for good.
    Close,
    /// The [next deadline](super::PoolState::next_deadline) is due. Feeding it early, late or twice
    /// does no harm.
    Timer,
    /// This process is a child of the one that made the connections. A new generation starts with
    /// nothing in it and the state stays as it is, because no monitor would make a child's pool
    /// ready again.
    ///
    /// Sockets and waiters belong to the parent: the shell drops what it is given without sending a
    /// byte and without waking a thread or task. A connection that was in use and is checked in
    /// later is returned by `CloseSocket`, without events.
    ResetAfterFork,
    /// Every connection so far may be broken.
    // PS-02, CLR-01
    Clear {
        /// The cause; requests that fail because of the clear get it.
        cause: S::Cause,
        /// Whether connections in use or being established are interrupted, too.
        interrupt: bool,
        /// In load-balanced mode, the service whose connections may be broken; otherwise `None`.
        service: Option<ServiceId>,
    },
    /// The options change while the pool runs.
    ///
    /// A smaller maximum closes idle surplus at once and surplus in use when it is checked in;
    /// nothing is created above it. Timeouts and the maximum lifetime apply to what starts
    /// afterwards; all else applies at once. Load-balanced mode cannot change.
    SetOptions {
        /// All options; those that are not set return to their defaults.
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
            Self::DrainSucceeded { .. } => "DrainSucceeded",
            Self::DrainFailed { .. } => "DrainFailed",
            Self::DrainProgress { .. } => "DrainProgress",
            Self::RetireConnections => "RetireConnections",
            Self::ReleaseIdle => "ReleaseIdle",
            Self::Ready => "Ready",
            Self::Close => "Close",
            Self::Timer => "Timer",
            Self::ResetAfterFork => "ResetAfterFork",
            Self::Clear { .. } => "Clear",
            Self::SetOptions { .. } => "SetOptions",
        }
    }
}

/// The condition in which a connection is checked in.
// CO-11
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health<C> {
    /// It may be used again.
    Healthy,
    /// It must not be used again, because of a network error, a timeout of the driver, an unread
    /// reply or a protocol violation.
    Errored(C),
    /// The caller timed out while it waited for the reply to this request. The request was sent
    /// whole, and the reply is not part of a stream. The pool keeps the connection and has the reply
    /// read before the connection is used again. Without
    /// [`experimental_pending_response`](PoolOptions::experimental_pending_response) this means the
    /// same as `Errored`.
    PendingResponse {
        /// The request id of the command whose reply is due.
        request_id: i32,
        /// The timeout of the caller; given when the connection is closed because no reply came.
        cause: C,
    },
}

/// What a checked-out connection is used for; load-balanced pools tell these apart in the message
/// of a wait-queue timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// One operation, from check-out to check-in.
    #[default]
    Other,
    /// A cursor is pinned to it.
    Cursor,
    /// A transaction is pinned to it.
    Transaction,
}
