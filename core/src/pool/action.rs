//! What comes out: actions, in one ordered stream.

use core::time::Duration;

use super::error::CheckOutError;
use super::event::Event;
use super::id::{ConnId, WaiterId};
use super::time::Instant;
use super::types::PoolTypes;

/// What the shell has to do.
///
/// The order of actions is part of the contract: CMAP makes the order of events normative, across
/// kinds, so a shell performs actions in the order in which it receives them.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<S: PoolTypes> {
    /// Connect, say hello, negotiate, authenticate; then answer with `EstablishSucceeded` or
    /// `EstablishFailed`, exactly once, unless `AbortEstablish` comes first.
    StartEstablish {
        /// The connection that has just been created.
        id: ConnId,
        /// The request that the connection is made for, by the id that the shell fed with it: a driver
        /// that blocks can connect on the thread that asked. `None` if it is made to reach
        /// `minPoolSize`. The request may end before the establishment does.
        // PO-02
        owner: Option<WaiterId>,
        /// The deadline of the request, if its caller gave one. It ends the request, with a timeout; the establishment goes
        /// on for the request that comes next, until it ends by `connectTimeoutMS`, which the shell applies.
        deadline: Option<Instant>,
        /// The pool's generation. In load-balanced mode the connection takes that of its service when
        /// hello is done.
        generation: u64,
    },
    /// Stop establishing and drop the socket, before another one is opened: the server counts both. No answer is owed; one
    /// that is already on its way is ignored.
    AbortEstablish {
        /// A connection that the pool has closed.
        id: ConnId,
    },
    /// Read the reply that is still to come on this connection and discard it; then answer with
    /// `DrainSucceeded` or `DrainFailed`, exactly once, unless `AbortDrain` comes first. Report with
    /// `DrainProgress` whenever bytes were read. All limits of time are the machine's.
    StartDrain {
        /// The connection, which is draining from now on.
        id: ConnId,
        /// The payload, which is returned with `DrainSucceeded`.
        conn: S::Conn,
    },
    /// Stop draining and drop the socket. No answer is owed; one that is already on its way is
    /// ignored.
    AbortDrain {
        /// A connection that the pool has closed.
        id: ConnId,
    },
    /// Wake a waiter with the outcome of its request. There is exactly one for each request.
    Deliver {
        /// The waiter of the request.
        waiter: S::Waiter,
        /// The connection, now in use, or the error.
        outcome: Result<(ConnId, S::Conn), CheckOutError<S::Cause>>,
    },
    /// Close the socket, without blocking. The payload moves to the shell, so it can neither be
    /// closed twice nor leak.
    // CO-02
    CloseSocket {
        /// A connection that the pool has closed.
        id: ConnId,
        /// The payload.
        conn: S::Conn,
    },
    /// Abort the operation on a checked-out connection at once; it fails with a retryable error.
    /// The connection still has to be checked in.
    // INT-02
    Interrupt {
        /// A connection in use.
        id: ConnId,
    },
    /// A connection has been in use for longer than `leak_detection_threshold`: perhaps it leaks.
    /// Reported once for each check-out. Not part of CMAP.
    ReportLeak {
        /// A connection in use.
        id: ConnId,
        /// For how long it has been in use.
        held: Duration,
    },
    /// A connection has been pending for longer than `unanswered_threshold`: perhaps the answer to its
    /// `StartEstablish` was lost, and its permit with it. Reported once for each connection. Not part of
    /// CMAP.
    ReportUnanswered {
        /// A pending connection.
        id: ConnId,
        /// For how long it has been pending.
        pending: Duration,
    },
    /// Call the event subscribers, in this place of the order.
    // EV-01
    EmitEvent(Event<S::Cause>),
}
