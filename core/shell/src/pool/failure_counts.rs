use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use cenote_core::error::PoolError;
use cenote_core::pool::CheckOutError;

/// The check-outs that failed since the pool was built, by reason.
#[derive(Debug, Default)]
pub(super) struct FailureCounts {
    pub(super) timeouts: AtomicU64,
    /// Because the wait queue was full, or by shedding.
    pub(super) rejected: AtomicU64,
    pub(super) connection_errors: AtomicU64,
    pub(super) cleared: AtomicU64,
    pub(super) closed: AtomicU64,
    /// Only a pool that can be inspected keeps its last failure.
    pub(super) keeps_last: AtomicBool,
    last: Mutex<Option<(Instant, PoolError)>>,
}

impl FailureCounts {
    /// Counts a check-out that failed.
    #[cold]
    #[inline(never)]
    pub(super) fn note(&self, error: &PoolError, clock: fn() -> Instant) {
        let counter = match error.error() {
            CheckOutError::WaitQueueTimeout { .. } => &self.timeouts,
            CheckOutError::WaitQueueFull { .. } | CheckOutError::Shed { .. } => &self.rejected,
            CheckOutError::EstablishFailed { .. } => &self.connection_errors,
            CheckOutError::PoolCleared { .. } => &self.cleared,
            CheckOutError::PoolClosed => &self.closed,
            CheckOutError::Cancelled => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if self.keeps_last.load(Ordering::Relaxed) {
            let last = (clock(), error.clone());
            let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(last);
            // Not under the lock: it may hold an error of a driver, whose drop may use the pool.
            drop(before);
        }
    }

    pub(super) fn last(&self) -> Option<(Instant, PoolError)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
