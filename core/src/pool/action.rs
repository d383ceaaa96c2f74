//! What comes out: actions, in one ordered stream.

use core::time::Duration;

use super::error::CheckOutError;
use super::event::Event;
use super::id::ConnId;
use super::time::Instant;
use super::types::PoolTypes;

/// What the shell is to do, or may tell others.
///
/// The order of actions is part of the contract: CMAP makes the order of events normative, across
/// kinds, and a shell that carries actions out in the order in which it received them keeps it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<S: PoolTypes> {
    /// Connect, say hello, negotiate, authenticate; then answer with `EstablishSucceeded` or
    /// `EstablishFailed`, exactly once, unless `AbortEstablish` comes first.
    StartEstablish {
        /// The connection that has just been created.
        id: ConnId,
        /// The deadline that the caller gave with its request, if any. The shell applies
        /// `connectTimeoutMS` besides.
        deadline: Option<Instant>,
        /// Whether no request waits for this connection: it is made to reach `minPoolSize`.
        background: bool,
    },
    /// Stop establishing and drop whatever there is of the socket. No answer is owed; one that is
    /// already on its way does no harm.
    AbortEstablish {
        /// A connection that is closed by now, as far as the pool is concerned.
        id: ConnId,
    },
    /// Wake a waiter with what became of its request. Exactly one for each request.
    Deliver {
        /// As it came with the request.
        waiter: S::Waiter,
        /// The connection, now in use, or why there is none.
        outcome: Result<(ConnId, S::Conn), CheckOutError<S::Cause>>,
    },
    /// Tear the socket down, without blocking. The payload moves to the shell: it cannot be closed
    /// twice and cannot leak.
    CloseSocket {
        /// A connection that is closed by now, as far as the pool is concerned.
        id: ConnId,
        /// The payload.
        conn: S::Conn,
    },
    /// Break what a checked-out connection is doing, now, and let the operation on it fail with a
    /// retryable error. The connection still has to be checked in.
    Interrupt {
        /// A connection in use.
        id: ConnId,
    },
    /// A connection has been in use for as long as was configured: perhaps it leaks.
    /// Reported once for each check-out; a hint, no part of CMAP.
    ReportLeak {
        /// A connection in use.
        id: ConnId,
        /// For how long by now.
        held: Duration,
    },
    /// Tell the subscribers, in this place of the order.
    EmitEvent(Event<S::Cause>),
}
