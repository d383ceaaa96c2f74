//! Whether this thread runs a callback of a pool or of a monitor, which must not wait for itself.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The innermost last: a callback of one pool may use another one.
    static PERFORMING: RefCell<Vec<*const ()>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, this thread performs the actions of one pool or monitor.
pub(crate) struct ReentrancyGuard(());

impl ReentrancyGuard {
    pub(crate) fn enter<T>(owner: &Arc<T>) -> Self {
        let owner = Arc::as_ptr(owner).cast();
        // A thread that is ending has no thread-locals any more.
        let _ = PERFORMING.try_with(|it| it.borrow_mut().push(owner));
        Self(())
    }

    /// Whether this thread performs the actions of `owner` at the moment.
    pub(crate) fn is_here<T>(owner: &Arc<T>) -> bool {
        let owner = Arc::as_ptr(owner).cast();
        PERFORMING.try_with(|it| it.borrow().contains(&owner)).unwrap_or(false)
    }
}

impl Drop for ReentrancyGuard {
    fn drop(&mut self) {
        let _ = PERFORMING.try_with(|it| it.borrow_mut().pop());
    }
}
