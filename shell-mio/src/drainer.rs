//! Whether this thread is the one that performs the actions of a pool or of a monitor.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

thread_local! {
    static OF: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// While it lives, this thread performs the actions of one of them.
pub(crate) struct Drainer {
    before: *const (),
}

impl Drainer {
    pub(crate) fn of<T>(whose: &Arc<T>) -> Self {
        let whose = Arc::as_ptr(whose).cast();
        Self { before: OF.try_with(|it| it.replace(whose)).unwrap_or(ptr::null()) }
    }

    /// Whether this is what the thread does at present: a subscriber, who must not wait for what
    /// comes after itself.
    pub(crate) fn is_here<T>(whose: &Arc<T>) -> bool {
        let whose = Arc::as_ptr(whose).cast();
        OF.try_with(|it| ptr::eq(it.get(), whose)).unwrap_or(false)
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        // A thread that is ending has none any more.
        let _ = OF.try_with(|it| it.set(self.before));
    }
}
