//! Why a request ended without a connection.

use alloc::sync::Arc;

use super::snapshot::Snapshot;

/// Why a request ended without a connection (OUT-17).
///
/// The address of the pool, which the messages of the specification name, is the shell's to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutError<C> {
    /// PoolClosedError: the pool was closed before or while the request waited (ER-02).
    PoolClosed,
    /// PoolClearedError: the pool was paused or got cleared (ER-03). Retryable; says nothing about
    /// the server that SDAM does not know already (ER-11).
    PoolCleared {
        /// What the most recent clear was fed with (SI-19); `None` when the pool has never been
        /// ready (ER-08).
        cause: Option<C>,
    },
    /// WaitQueueTimeoutError: the time allowed for waiting ran out (ER-04).
    WaitQueueTimeout {
        /// The pool at that moment, before those who time out together left the queue.
        snapshot: Arc<Snapshot>,
    },
    /// The connection that was started for this request could not be established.
    EstablishFailed {
        /// As the shell fed it.
        cause: C,
    },
    /// The caller went away (SI-10).
    Cancelled,
}

impl<C> CheckOutError<C> {
    /// The coarse reason that `ConnectionCheckOutFailed` gives (EV-22).
    pub const fn reason(&self) -> CheckOutFailedReason {
        match self {
            Self::PoolClosed => CheckOutFailedReason::PoolClosed,
            Self::WaitQueueTimeout { .. } => CheckOutFailedReason::Timeout,
            Self::PoolCleared { .. } | Self::EstablishFailed { .. } | Self::Cancelled => {
                CheckOutFailedReason::ConnectionError
            }
        }
    }
}

/// Why a request ended without a connection (EV-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckOutFailedReason {
    /// The pool was closed before or while the request waited.
    PoolClosed,
    /// The time allowed for waiting ran out.
    Timeout,
    /// The connection could not be established, the pool was paused or cleared, or the caller went
    /// away (SI-10).
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
