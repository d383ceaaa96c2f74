//! Wakes tasks and threads that wait for a change.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use event_listener::{Event, EventListener};

use crate::runtime::{Lock, Runtime};

/// Wakes all listeners at once. A listener that is made before the state is looked at misses no
/// notification.
pub(crate) struct Signal<R: Runtime> {
    /// Behind the runtime's lock, so that a model checker sees the order of uses.
    event: R::Mutex<Event>,
}

impl<R: Runtime> Signal<R> {
    /// Listens from this moment on. The listener is a future, and can block a thread, too.
    pub(crate) fn listen(&self) -> EventListener {
        self.event.lock().listen()
    }

    pub(crate) fn notify_all(&self) {
        // A waker that panics must not keep the other listeners waiting.
        while catch_unwind(AssertUnwindSafe(|| self.event.lock().notify(usize::MAX))).is_err() {}
    }
}

impl<R: Runtime> Default for Signal<R> {
    fn default() -> Self {
        Self { event: Lock::new(Event::new()) }
    }
}

impl<R: Runtime> fmt::Debug for Signal<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}
