//! CMAP's eleven events, and three of a draft.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::error::CheckOutError;
use super::id::{ServiceId, WaiterId};
use super::options::PoolOptions;
use super::time::{Instant, nanos};

/// One of the eleven events of CMAP, with its fields, or one of the three about pending responses,
/// which exist only with
/// [`experimental_pending_response`](PoolOptions::experimental_pending_response).
///
/// The shell adds the address, which is the same for every event of a pool. `connection_id` is
/// CMAP's number, from 1.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<C> {
    /// The pool exists, paused, in generation 0.
    ConnectionPoolCreated {
        /// The options that were set, without defaults.
        options: Box<PoolOptions>,
    },
    /// The pool went from paused to ready.
    ConnectionPoolReady,
    /// The pool, or one service in load-balanced mode, started a new generation.
    ConnectionPoolCleared {
        /// The service, in load-balanced mode.
        service_id: Option<ServiceId>,
        /// Whether connections in use are interrupted, too.
        // EV-23
        interrupt_in_use_connections: bool,
    },
    /// The pool is closed, and so is every connection that was available.
    ConnectionPoolClosed,
    /// A connection exists and counts; no I/O has happened yet.
    ConnectionCreated {
        /// The id of the connection.
        // EV-04
        connection_id: u64,
    },
    /// A connection finished establishment.
    ConnectionReady {
        /// The id of the connection.
        connection_id: u64,
        /// Since its `ConnectionCreated`.
        // EV-06, DU-07
        duration: Duration,
    },
    /// A connection no longer counts; its socket may still be open.
    ConnectionClosed {
        /// The id of the connection.
        connection_id: u64,
        /// Why.
        reason: CloseReason,
        /// The error; present if and only if the reason is [`CloseReason::Error`].
        error: Option<C>,
    },
    /// A caller asked for a connection; this is before any check.
    ConnectionCheckOutStarted {
        /// The request, as in traces. CMAP's event has no such field.
        request: WaiterId,
    },
    /// A request ended without a connection.
    ConnectionCheckOutFailed {
        /// The request, as in traces. CMAP's event has no such field.
        request: WaiterId,
        /// The error that the caller gets; [`CheckOutError::reason`] is the event's `reason`.
        error: CheckOutError<C>,
        /// Since its `ConnectionCheckOutStarted`.
        duration: Elapsed,
    },
    /// A connection is in use and about to be delivered.
    ConnectionCheckedOut {
        /// The id of the connection.
        connection_id: u64,
        /// The request, as in traces. CMAP's event has no such field.
        request: WaiterId,
        /// Since its `ConnectionCheckOutStarted`.
        duration: Elapsed,
    },
    /// A connection was returned; if it is closed, that comes next.
    ConnectionCheckedIn {
        /// The id of the connection.
        connection_id: u64,
    },
    /// A request waits until a connection has received the reply to an earlier command. Exactly one
    /// of the next two events follows.
    ConnectionPendingResponseStarted {
        /// The id of the connection.
        connection_id: u64,
        /// The request id of the earlier command.
        request_id: i32,
    },
    /// The reply was read and discarded; the connection is about to be checked out.
    ConnectionPendingResponseSucceeded {
        /// The id of the connection.
        connection_id: u64,
        /// The request id of the earlier command.
        request_id: i32,
        /// Since its `ConnectionPendingResponseStarted`.
        duration: Elapsed,
    },
    /// The request stopped waiting for the reply: it gets another connection, or fails.
    ConnectionPendingResponseFailed {
        /// The id of the connection.
        connection_id: u64,
        /// The request id of the earlier command.
        request_id: i32,
        /// Since its `ConnectionPendingResponseStarted`.
        duration: Elapsed,
        /// Why.
        reason: PendingResponseFailure,
    },
}

impl<C> Event<C> {
    /// The type's name, as the official test files spell it.
    // EV-02
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ConnectionPoolCreated { .. } => "ConnectionPoolCreated",
            Self::ConnectionPoolReady => "ConnectionPoolReady",
            Self::ConnectionPoolCleared { .. } => "ConnectionPoolCleared",
            Self::ConnectionPoolClosed => "ConnectionPoolClosed",
            Self::ConnectionCreated { .. } => "ConnectionCreated",
            Self::ConnectionReady { .. } => "ConnectionReady",
            Self::ConnectionClosed { .. } => "ConnectionClosed",
            Self::ConnectionCheckOutStarted { .. } => "ConnectionCheckOutStarted",
            Self::ConnectionCheckOutFailed { .. } => "ConnectionCheckOutFailed",
            Self::ConnectionCheckedOut { .. } => "ConnectionCheckedOut",
            Self::ConnectionCheckedIn { .. } => "ConnectionCheckedIn",
            Self::ConnectionPendingResponseStarted { .. } => "ConnectionPendingResponseStarted",
            Self::ConnectionPendingResponseSucceeded { .. } => "ConnectionPendingResponseSucceeded",
            Self::ConnectionPendingResponseFailed { .. } => "ConnectionPendingResponseFailed",
        }
    }
}

/// Why a connection was closed. Of several reasons, the first in this order is given.
// EV-05, EV-21
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// It had an error, its establishment failed, or it was interrupted.
    Error,
    /// It is of an older generation than its pool or service.
    Stale,
    /// It was available for longer than `maxIdleTimeMS`; also given when it outlived the maximum
    /// lifetime or is surplus after the maximum size shrank, for which CMAP has no reason.
    Idle,
    /// The pool was closed.
    PoolClosed,
}

impl CloseReason {
    /// As events and test files spell it: `error`, `stale`, `idle`, `poolClosed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Stale => "stale",
            Self::Idle => "idle",
            Self::PoolClosed => "poolClosed",
        }
    }
}

/// Why a request stopped waiting for a pending response.
// LR-04
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PendingResponseFailure {
    /// The reply did not come in time, or the request's own time is over.
    Timeout,
    /// The connection failed or was closed, or the caller cancelled.
    Error,
}

impl PendingResponseFailure {
    /// As events and test files spell it: `timeout`, `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }
}

/// A duration in eight bytes, so that an event with it is no larger than the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elapsed {
    nanos: u64,
}

impl Elapsed {
    /// No time at all.
    pub const ZERO: Self = Self { nanos: 0 };

    /// From `earlier` to `later`; zero if that is not after it.
    pub(super) const fn between(earlier: Instant, later: Instant) -> Self {
        Self { nanos: later.as_nanos().saturating_sub(earlier.as_nanos()) }
    }

    /// The duration.
    pub const fn get(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

/// What is longer than 584 years saturates.
impl From<Duration> for Elapsed {
    fn from(duration: Duration) -> Self {
        Self { nanos: nanos(duration) }
    }
}

impl From<Elapsed> for Duration {
    fn from(elapsed: Elapsed) -> Self {
        elapsed.get()
    }
}

impl fmt::Debug for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
