use std::sync::PoisonError;
use std::time::Instant;

use crate::connector::Connector;
use crate::drainer::Drainer;
use crate::error::CloseTimeout;
use crate::pool::Pool;

impl<K: Connector> Pool<K> {
    /// Closes the pool for good. Blocks until everything that is checked out has come home (PCL-01),
    /// every socket is closed, subscribers were told of all of it, and the thread of the event loop
    /// has ended.
    ///
    /// A subscriber who closes the pool that it is told about does not wait, and neither does a child
    /// process for what is its parent's.
    pub fn close(&self) {
        // Without a deadline only a subscriber stops waiting.
        let _ = self.close_by(None);
    }

    /// As [`close`](Self::close), but waits until `deadline` at the latest: for a shutdown that does
    /// not wait for the last one. The pool is closed whatever the deadline is; one that has passed
    /// closes it and only looks.
    ///
    /// # Errors
    ///
    /// How many connections were still checked out at the deadline. They come home later, and are
    /// closed then.
    pub fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        self.close_by(Some(deadline))
    }

    pub(crate) fn close_by(&self, deadline: Option<Instant>) -> Result<(), CloseTimeout> {
        self.begin_to_close();
        let shared = self.shared();
        // What this thread is in the midst of would not go on while it waits, nor does anything that is
        // the parent's in a child process.
        let waits = !Drainer::is_here(shared) && !shared.is_foreign();
        let mut desk = shared.lock();
        loop {
            let in_use = desk.state.snapshot().total;
            let is_over = desk.interrupts.is_empty() && desk.news.is_idle();
            if in_use == 0 && (is_over || !waits) {
                break;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !waits || left.is_some_and(|left| left.is_zero()) {
                // Those that are home are being closed by another thread.
                return if in_use == 0 { Ok(()) } else { Err(CloseTimeout { in_use }) };
            }
            desk = match left {
                None => shared.emptied.wait(desk).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = shared.emptied.wait_timeout(desk, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        drop(desk);
        if waits {
            shared.thread.join();
        }
        Ok(())
    }
}
