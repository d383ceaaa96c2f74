use std::sync::Arc;

use cenote_core::pool::Input;
use tokio::time::{Instant, timeout_at};

use crate::connector::Connector;
use crate::error::CloseTimeout;
use crate::pool::Pool;

impl<K: Connector> Pool<K> {
    /// Closes the pool for good, and waits until everything that is checked out has come home
    /// (PCL-01), every socket is closed, and subscribers were told of all of it, whatever thread does
    /// that. What was still being opened is given up at once; its socket is closed when the pool's
    /// runtime comes to it, for which this waits, too. Dropping the future, or a timeout around it,
    /// leaves the pool closed.
    ///
    /// Not to be waited for by a subscriber, who would wait for himself.
    pub async fn close(&self) {
        self.shared().feed(Input::Close);
        let emptied = Arc::clone(&self.shared().lock().emptied);
        loop {
            let mut emptied = std::pin::pin!(emptied.notified());
            // Before the count is looked at, so that the last one is not missed.
            emptied.as_mut().enable();
            if self.shared().lock().is_empty() {
                return;
            }
            emptied.await;
        }
    }

    /// As [`close`](Self::close), but waits until `deadline` at the latest: for a shutdown that does
    /// not wait for the last one. The pool is closed whatever the deadline is; one that has passed
    /// closes it and only looks.
    ///
    /// Uses the timer of the runtime where it is called.
    ///
    /// # Errors
    ///
    /// How many connections were still checked out at the deadline. They come home later, and are
    /// closed then.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without time.
    pub async fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        if timeout_at(deadline, self.close()).await.is_ok() {
            return Ok(());
        }
        match self.snapshot().total {
            0 => Ok(()), // At the last moment.
            in_use => Err(CloseTimeout { in_use }),
        }
    }
}
