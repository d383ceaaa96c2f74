use std::time::Instant;

use super::{Client, Inner, is_telling, watch};
use crate::error::CloseTimeout;

impl Client {
    /// Closes the client for good: whoever waits for a server or a connection hears so, monitors end,
    /// then the pools close, in the order of the connection string (SD-10). Blocks until everything
    /// that is checked out has come home, every socket is closed, subscribers were told of all of it,
    /// and the thread of the event loop has ended.
    ///
    /// A subscriber who closes the client that he is told about does not wait.
    pub fn close(&self) {
        // Without a deadline only a subscriber stops waiting.
        let _ = self.close_by(None);
    }

    /// As [`close`](Self::close), but waits until `deadline` at the latest. The client is closed
    /// whatever the deadline is.
    ///
    /// # Errors
    ///
    /// How many connections are still checked out then. Each is closed when it comes back.
    pub fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        self.close_by(Some(deadline))
    }

    fn close_by(&self, deadline: Option<Instant>) -> Result<(), CloseTimeout> {
        let inner = &self.inner;
        inner.shut();
        // What this thread is in the midst of would not go on while it waits, nor does anything that is
        // the parent's in a child process.
        let waits = !inner.is_told_here() && !inner.is_foreign();
        let deadline = if waits { deadline } else { Some(Instant::now()) };
        let closed = inner.servers.iter().map(|server| server.pool.close_by(deadline));
        let in_use = closed.map(|closed| closed.map_or_else(|error| error.in_use, |()| 0)).sum();
        if in_use > 0 {
            return Err(CloseTimeout { in_use });
        }
        if waits {
            inner.thread.join();
        }
        Ok(())
    }
}

impl Inner {
    /// Does at once what needs nobody to wait for it.
    fn shut(&self) {
        self.servers.close();
        self.news.tell();
        self.servers.iter().filter_map(|server| server.watch()).for_each(watch::close);
        for server in self.servers.iter() {
            server.pool.begin_to_close();
        }
    }

    /// Whether this is a child of the process that the client lives in.
    fn is_foreign(&self) -> bool {
        self.servers.iter().any(|server| server.pool.shared().is_foreign())
    }

    /// Whether this thread turns the loop, or is telling somebody of the client.
    fn is_told_here(&self) -> bool {
        self.thread.is_here() || self.servers.iter().any(|server| is_telling(server))
    }
}

impl Drop for Inner {
    /// Not in a child process, where nothing of it is the child's to close.
    fn drop(&mut self) {
        if !self.is_foreign() {
            self.shut();
        }
    }
}
