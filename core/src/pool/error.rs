//! Why a request ended without a connection.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::snapshot::Snapshot;

/// Why a request ended without a connection.
///
/// The address of the pool, which the messages of the specification name, is added by the shell.
// OUT-17
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutError<C> {
    /// PoolClosedError: the pool was closed before or while the request waited.
    PoolClosed,
    /// PoolClearedError: the pool was paused or got cleared. Retryable; SDAM already knows the
    /// cause.
    PoolCleared {
        /// The cause of the most recent clear; `None` when the pool has never been ready.
        cause: Option<C>,
    },
    /// WaitQueueTimeoutError: the time allowed for waiting ran out.
    WaitQueueTimeout {
        /// The pool at that moment, before the requests that time out together left the queue.
        snapshot: Arc<Snapshot>,
    },
    /// The request would have had to wait, and as many requests as
    /// [`max_wait_queue_size`](super::PoolOptions::max_wait_queue_size) permits were waiting. The pool has not
    /// begun anything for this request, so the operation may be tried again after a backoff. Not part of CMAP.
    WaitQueueFull {
        /// The option.
        max: u32,
    },
    /// The request had waited for longer than [`codel_target`](super::PoolOptions::codel_target) when the delay had
    /// stood for a whole [`codel_interval`](super::PoolOptions::codel_interval). The pool has not begun anything for
    /// this request, so the operation may be tried again after a backoff. Not part of CMAP.
    Shed {
        /// The limits.
        delay: StandingDelay,
    },
    /// The connection that was started for this request could not be established.
    EstablishFailed {
        /// The cause that the shell gave.
        cause: C,
    },
    /// The caller cancelled the check-out.
    Cancelled,
}

impl<C> CheckOutError<C> {
    /// The coarse reason that `ConnectionCheckOutFailed` gives. CMAP has three: what is neither a closed
    /// pool nor a timeout that ran out is `connectionError`, with which the event and the log name the error.
    // EV-22
    pub const fn reason(&self) -> CheckOutFailedReason {
        match self {
            Self::PoolClosed => CheckOutFailedReason::PoolClosed,
            Self::WaitQueueTimeout { .. } => CheckOutFailedReason::Timeout,
            Self::PoolCleared { .. }
            | Self::WaitQueueFull { .. }
            | Self::Shed { .. }
            | Self::EstablishFailed { .. }
            | Self::Cancelled => CheckOutFailedReason::ConnectionError,
        }
    }
}

/// The limits by which a request was shed, in eight bytes, so that the error is no larger than the others and
/// nothing allocates under overload: whole microseconds, at most 71 minutes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StandingDelay {
    target: u32,
    interval: u32,
}

impl StandingDelay {
    /// With these limits, rounded down to microseconds.
    pub fn new(target: Duration, interval: Duration) -> Self {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        Self { target: micros(target), interval: micros(interval) }
    }

    /// The effective [`codel_target`](super::PoolOptions::codel_target): the request had waited for longer.
    pub const fn target(self) -> Duration {
        Duration::from_micros(self.target as u64)
    }

    /// The effective [`codel_interval`](super::PoolOptions::codel_interval): for so long the longest wait was never
    /// below the target.
    pub const fn interval(self) -> Duration {
        Duration::from_micros(self.interval as u64)
    }
}

impl fmt::Debug for StandingDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandingDelay")
            .field("target", &self.target())
            .field("interval", &self.interval())
            .finish()
    }
}

/// Why a request ended without a connection.
// EV-05
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CheckOutFailedReason {
    /// The pool was closed before or while the request waited.
    PoolClosed,
    /// The time allowed for waiting ran out.
    Timeout,
    /// The connection could not be established, the pool was paused or cleared, the wait queue was full, the
    /// request was shed, or the caller cancelled.
    ConnectionError,
}

impl CheckOutFailedReason {
    /// As events and test files spell it: `poolClosed`, `timeout`, `connectionError`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PoolClosed => "poolClosed",
            Self::Timeout => "timeout",
            Self::ConnectionError => "connectionError",
        }
    }
}
