//! Where a thread sleeps until it is woken, and nobody else is.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// One for each thread, used again and again. `std::thread::park` would do, but its one token is the
/// application's, too.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    is_woken: Mutex<bool>,
    condition: Condvar,
}

thread_local! {
    static MINE: RefCell<Option<Arc<Parker>>> = const { RefCell::new(None) };
}

impl Parker {
    /// That of this thread.
    pub(crate) fn mine() -> Arc<Self> {
        let mine =
            |mine: &RefCell<Option<_>>| Arc::clone(mine.borrow_mut().get_or_insert_default());
        // A thread that is ending has lost its own.
        MINE.try_with(mine).unwrap_or_default()
    }

    /// Sleeps until [`wake`](Self::wake), and says whether that was before the deadline. May return
    /// early, because of a wake-up that was meant for an earlier wait.
    pub(crate) fn park(&self, deadline: Option<Instant>) -> bool {
        let mut is_woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *is_woken) {
            is_woken = match deadline {
                None => self.condition.wait(is_woken).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let waited = self.condition.wait_timeout(is_woken, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    /// Ends the sleep of the thread that this is of, or its next one.
    pub(crate) fn wake(&self) {
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_one();
    }
}
