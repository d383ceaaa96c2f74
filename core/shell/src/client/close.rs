use std::pin::pin;
use std::task::Waker;

use super::Client;
use crate::error::CloseTimeout;
use crate::runtime::{Network, timeout_exactly_at};

impl<R: Network<Waiter = Waker>> Client<R> {
    /// Closes the client for good: callers that wait for a server or a connection get an error, the monitors
    /// end, then the pools close, in the order of the connection string. Waits until everything that is checked
    /// out was checked in, every socket is closed, and subscribers were told of all of it. For the subscribers of each
    /// pool, for the sockets of monitors, and for the subscribers of the servers, it waits [`CLOSE_GRACE`](crate::pool::CLOSE_GRACE) at most.
    ///
    /// Cancel-safe: dropping the future leaves the client closed. A subscriber must not wait for it, because it
    /// would wait for itself.
    // SD-10.
    pub async fn close(&self) {
        self.inner.close_at_once();
        if self.inner.is_inherited() {
            return;
        }
        self.inner.driver.sockets_ended().await;
        for server in self.inner.all_servers() {
            server.pool().close().await;
        }
        self.inner.driver.told().await;
        self.inner.end_inspection();
    }

    /// As [`close`](Self::close), but waits until `deadline` at the latest.
    ///
    /// # Errors
    ///
    /// How many connections are still checked out then. Each is closed when it is checked in.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use tokio::time::Instant;
    ///
    /// # async fn example(client: cenote_tokio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.close_before(Instant::now() + Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close_before(&self, deadline: R::Instant) -> Result<(), CloseTimeout> {
        self.inner.close_at_once();
        let runtime = &self.inner.driver.runtime;
        if timeout_exactly_at(runtime, deadline.into(), pin!(self.close())).await.is_some() {
            return Ok(());
        }
        match self.inner.all_servers().iter().map(|server| server.snapshot().in_use).sum() {
            0 => Ok(()),
            in_use => Err(CloseTimeout { in_use }),
        }
    }
}
