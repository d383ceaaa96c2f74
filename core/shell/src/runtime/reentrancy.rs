//! Whether this thread runs a callback of a pool or of a client, which must not wait for itself.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

thread_local! {
    static INNERMOST: Cell<*const ()> = const { Cell::new(ptr::null()) };
    /// Those around it: a callback of one pool may use another one. Rare, and therefore apart.
    static OUTER: RefCell<Vec<*const ()>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, this thread performs the actions of one pool or client.
pub(crate) struct ReentrancyGuard {
    outer: *const (),
}

impl ReentrancyGuard {
    pub(crate) fn enter<T>(owner: &Arc<T>) -> Self {
        let owner = Arc::as_ptr(owner).cast();
        // A thread that is ending has no thread-locals any more.
        let outer = INNERMOST.try_with(|it| it.replace(owner)).unwrap_or(ptr::null());
        if !outer.is_null() {
            let _ = OUTER.try_with(|it| it.borrow_mut().push(outer));
        }
        Self { outer }
    }

    /// Whether this thread performs the actions of `owner` at the moment.
    pub(crate) fn is_here<T>(owner: &Arc<T>) -> bool {
        let owner = Arc::as_ptr(owner).cast();
        INNERMOST.try_with(|it| ptr::eq(it.get(), owner)).unwrap_or(false)
            || OUTER.try_with(|it| it.borrow().contains(&owner)).unwrap_or(false)
    }
}

impl Drop for ReentrancyGuard {
    fn drop(&mut self) {
        let _ = INNERMOST.try_with(|it| it.set(self.outer));
        if !self.outer.is_null() {
            let _ = OUTER.try_with(|it| it.borrow_mut().pop());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::ReentrancyGuard;

    /// Callbacks of three pools, each within the one before.
    #[test]
    fn callbacks_are_left_one_by_one() {
        let pools = [1, 2, 3].map(Arc::new);
        let mut guards = Vec::new();
        for pool in &pools {
            assert!(!ReentrancyGuard::is_here(pool));
            guards.push(ReentrancyGuard::enter(pool));
        }
        for left in [3, 2, 1, 0] {
            guards.truncate(left);
            let here = pools.each_ref().map(ReentrancyGuard::is_here);
            assert_eq!(here, [left > 0, left > 1, left > 2]);
        }
    }
}
