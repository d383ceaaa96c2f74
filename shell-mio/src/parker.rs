//! Where a thread sleeps until it is woken, and nobody else is.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// One for each thread, used again and again. `std::thread::park` would do, but its one token is the
/// application's, too.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    state: Mutex<State>,
    condition: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Awake,
    Asleep,
    /// Somebody has ended its sleep, or its next one.
    Woken,
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if std::mem::take(&mut *state) == State::Woken {
                return true;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            *state = State::Asleep;
            state = match left {
                None => self.condition.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.condition.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Ends the sleep of the thread that this is of, or its next one. Only for one that sleeps there
    /// is a call of the operating system.
    pub(crate) fn wake(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let was = std::mem::replace(&mut *state, State::Woken);
        drop(state);
        if was == State::Asleep {
            self.condition.notify_one();
        }
    }
}
