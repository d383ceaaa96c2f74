//! CMAP's eleven events (EV-02).

use alloc::boxed::Box;
use core::time::Duration;

use super::error::CheckOutError;
use super::id::ServiceId;
use super::options::PoolOptions;

/// One of the eleven events of CMAP, with its fields.
///
/// The address, which is the same for every event of a pool, is the shell's to add (EV-03).
/// `connection_id` is CMAP's number, from 1 (EV-04).
#[derive(Clone, Debug, PartialEq)]
pub enum Event<C> {
    /// EV-10: the pool exists, paused, in generation 0.
    ConnectionPoolCreated {
        /// Exactly the options that were set (EV-24).
        options: Box<PoolOptions>,
    },
    /// EV-11: the pool went from paused to ready.
    ConnectionPoolReady,
    /// EV-12: the pool, or one service in load-balanced mode, started a new generation.
    ConnectionPoolCleared {
        /// The service, in load-balanced mode (EV-25).
        service_id: Option<ServiceId>,
        /// Whether connections in use are broken, too; `false` is told as well (EV-23).
        interrupt_in_use_connections: bool,
    },
    /// EV-13: the pool is closed, and so is every connection that was available.
    ConnectionPoolClosed,
    /// EV-14: a connection is counted; no I/O has happened yet.
    ConnectionCreated {
        /// Of the connection.
        connection_id: u64,
    },
    /// EV-15: a connection finished establishment.
    ConnectionReady {
        /// Of the connection.
        connection_id: u64,
        /// Since its `ConnectionCreated` (DU-02).
        duration: Duration,
    },
    /// EV-16: a connection counts no longer; its socket may still be open.
    ConnectionClosed {
        /// Of the connection.
        connection_id: u64,
        /// Why.
        reason: CloseReason,
        /// The error, exactly if the reason is [`CloseReason::Error`] (LG-33).
        error: Option<C>,
    },
    /// EV-17: somebody asked for a connection; nothing else has been looked at yet.
    ConnectionCheckOutStarted,
    /// EV-18: a request ended without a connection.
    ConnectionCheckOutFailed {
        /// What the requester is told; [`CheckOutError::reason`] is the event's `reason`.
        error: CheckOutError<C>,
        /// Since its `ConnectionCheckOutStarted` (DU-04).
        duration: Duration,
    },
    /// EV-19: a connection is in use and about to be handed over.
    ConnectionCheckedOut {
        /// Of the connection.
        connection_id: u64,
        /// Since its `ConnectionCheckOutStarted` (DU-03).
        duration: Duration,
    },
    /// EV-20: a connection came back; whether it is closed or kept comes next.
    ConnectionCheckedIn {
        /// Of the connection.
        connection_id: u64,
    },
}

impl<C> Event<C> {
    /// The type's name, as the official test files spell it (EV-02).
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ConnectionPoolCreated { .. } => "ConnectionPoolCreated",
            Self::ConnectionPoolReady => "ConnectionPoolReady",
            Self::ConnectionPoolCleared { .. } => "ConnectionPoolCleared",
            Self::ConnectionPoolClosed => "ConnectionPoolClosed",
            Self::ConnectionCreated { .. } => "ConnectionCreated",
            Self::ConnectionReady { .. } => "ConnectionReady",
            Self::ConnectionClosed { .. } => "ConnectionClosed",
            Self::ConnectionCheckOutStarted => "ConnectionCheckOutStarted",
            Self::ConnectionCheckOutFailed { .. } => "ConnectionCheckOutFailed",
            Self::ConnectionCheckedOut { .. } => "ConnectionCheckedOut",
            Self::ConnectionCheckedIn { .. } => "ConnectionCheckedIn",
        }
    }
}

/// Why a connection was closed (EV-21). Of several reasons, the first in this order is given
/// (KX-05, SI-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloseReason {
    /// It met an error, its establishment failed, or it was interrupted.
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
