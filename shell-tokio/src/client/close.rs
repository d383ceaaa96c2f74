use std::sync::Arc;

use cenote_core::pool::Input;
use tokio::time::{Instant, timeout_at};

use super::{Client, Inner, Server, watch};
use crate::error::CloseTimeout;

impl Client {
    /// Closes the client for good: whoever waits for a server or a connection hears so, monitors end,
    /// then the pools close, in the order of the connection string (SD-10). Waits until everything
    /// that is checked out has come home and every socket is closed. Dropping the future leaves the
    /// client closed.
    ///
    /// Not to be waited for by a subscriber.
    pub async fn close(&self) {
        self.inner.shut();
        for server in self.inner.servers.iter() {
            if let Some(watch) = server.watch() {
                watch.runtime().talks.ended().await;
            }
            server.pool.close().await;
        }
    }

    /// As [`close`](Self::close), but waits until `deadline` at the latest.
    ///
    /// # Errors
    ///
    /// How many connections are still checked out then. Each is closed when it comes back.
    pub async fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        self.inner.shut();
        if timeout_at(deadline, self.close()).await.is_ok() {
            return Ok(());
        }
        let in_use = self.inner.servers.iter().map(|server| server.pool.snapshot().in_use).sum();
        if in_use == 0 { Ok(()) } else { Err(CloseTimeout { in_use }) }
    }
}

impl Inner {
    /// Does at once what needs nobody to wait for it.
    fn shut(&self) {
        self.servers.close();
        self.news.notify_waiters();
        self.servers.iter().filter_map(|server| server.watch()).for_each(watch::close);
        for server in self.servers.iter() {
            server.pool.shared().feed(Input::Close);
        }
    }
}

impl Drop for Inner {
    /// Not in a child process, where nothing of it is the child's to close.
    fn drop(&mut self) {
        let is_here = |server: &Arc<Server>| server.pool.shared().home.is_here();
        if self.servers.iter().all(is_here) {
            self.shut();
        }
    }
}
