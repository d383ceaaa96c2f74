use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where threads wait that have found no server: something is learnt of one, or the client is closed.
#[derive(Debug, Default)]
pub(super) struct News {
    told: Mutex<u64>,
    changed: Condvar,
}

/// What was known when somebody began to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known(u64);

impl News {
    /// To be asked before anything is looked at, so that no news falls between.
    pub(super) fn known(&self) -> Known {
        Known(*self.lock())
    }

    pub(super) fn tell(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// Blocks until there is something else, and says whether that was before the deadline.
    pub(super) fn wait(&self, Known(known): Known, deadline: Option<Instant>) -> bool {
        let mut told = self.lock();
        while *told == known {
            told = match deadline {
                None => self.changed.wait(told).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let waited = self.changed.wait_timeout(told, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
