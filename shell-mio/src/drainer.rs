//! Whether this thread is the one that performs a pool's actions.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use crate::connector::Connector;
use crate::shared::Shared;

thread_local! {
    static POOL: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// While it lives, this thread performs the actions of one pool.
pub(crate) struct Drainer {
    before: *const (),
}

impl Drainer {
    pub(crate) fn of<K: Connector>(shared: &Arc<Shared<K>>) -> Self {
        let pool = Arc::as_ptr(shared).cast();
        Self { before: POOL.try_with(|it| it.replace(pool)).unwrap_or(ptr::null()) }
    }

    /// Whether this is what the thread does at present: a subscriber, who must not wait for what
    /// comes after itself.
    pub(crate) fn is_here<K: Connector>(shared: &Arc<Shared<K>>) -> bool {
        let pool = Arc::as_ptr(shared).cast();
        POOL.try_with(|it| ptr::eq(it.get(), pool)).unwrap_or(false)
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        // A thread that is ending has no pool any more.
        let _ = POOL.try_with(|it| it.set(self.before));
    }
}
