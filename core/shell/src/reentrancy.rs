//! Whether this thread runs a callback of a pool or of a monitor, which must not wait for itself.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

thread_local! {
    static PERFORMING: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// While it lives, this thread performs the actions of one pool or monitor.
pub(crate) struct ReentrancyGuard {
    outer: *const (),
}

impl ReentrancyGuard {
    pub(crate) fn enter<T>(owner: &Arc<T>) -> Self {
        let owner = Arc::as_ptr(owner).cast();
        Self { outer: PERFORMING.try_with(|it| it.replace(owner)).unwrap_or(ptr::null()) }
    }

    /// Whether this thread performs the actions of `owner` at the moment.
    pub(crate) fn is_here<T>(owner: &Arc<T>) -> bool {
        let owner = Arc::as_ptr(owner).cast();
        PERFORMING.try_with(|it| ptr::eq(it.get(), owner)).unwrap_or(false)
    }
}

impl Drop for ReentrancyGuard {
    fn drop(&mut self) {
        // A thread that is ending has no thread-locals any more.
        let _ = PERFORMING.try_with(|it| it.set(self.outer));
    }
}
