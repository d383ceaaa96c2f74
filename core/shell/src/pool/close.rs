use std::pin::pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use cenote_core::pool::Input;

use super::driver::PoolDriver;
use super::handle::Pool;
use crate::connection::Connector;
use crate::error::CloseTimeout;
use crate::log;
use crate::runtime::{Runtime, timeout_at, timeout_exactly_at};

/// How long `close` waits for subscribers, once every connection was checked in and closed: 5 s.
pub const CLOSE_GRACE: Duration = Duration::from_secs(5);

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Closes the pool, and waits for nothing.
    pub fn close(self: &Arc<Self>) {
        self.close_untold();
        self.tell_pending();
    }

    /// The same, but subscribers are not told yet.
    pub(crate) fn close_untold(self: &Arc<Self>) {
        if self.lock().is_closed() {
            return;
        }
        self.feed_within(Input::Close, None);
        self.run_pending_work();
        let timer = self.lock().timer.waker.take();
        timer.into_iter().for_each(Waker::wake);
    }

    /// The runtime has shut down: no connection can be opened and no deadline fires any more. Callers hear
    /// that the pool is closed instead of waiting for either. In a child process it means nothing that a
    /// task of the parent is dropped.
    pub(super) fn runtime_ended(self: &Arc<Self>) {
        if !self.is_inherited() {
            self.close();
        }
    }
}

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Until `holds`. In a child process nothing that is the parent's ever ends.
    pub(super) async fn wait_until(&self, holds: impl Fn(&Self) -> bool) {
        while !self.is_inherited() {
            let changed = self.drained();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }
}

impl<R: Runtime<Waiter = Waker>, K: Connector<R>> Pool<R, K> {
    /// Closes the pool for good, and waits until everything that is checked out was checked in, every
    /// socket is closed, and subscribers were told of all of it. What was still being opened is aborted at
    /// once; its socket is closed when the pool's runtime comes to it, for which this waits, too.
    ///
    /// For subscribers, and for what was being opened, it waits [`CLOSE_GRACE`] at most once everything else is
    /// done, and logs a warning then.
    ///
    /// Cancel-safe: dropping the future, or a timeout around it, leaves the pool closed. An event subscriber
    /// must not wait for it, because it would wait for itself.
    ///
    /// ```no_run
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// pool.close().await; // Every connection is closed.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(&self) {
        let driver = self.driver();
        driver.close();
        driver.wait_until(PoolDriver::is_empty).await;
        self.end_inspection();
        if driver.is_drained() || driver.is_inherited() {
            return;
        }
        let drained = driver.wait_until(PoolDriver::is_drained);
        if timeout_at(&driver.runtime(), R::now() + CLOSE_GRACE, pin!(drained)).await.is_none() {
            log::close_gave_up(driver.address());
        }
    }

    /// As [`close`](Self::close), but waits until `deadline` at the latest: for a shutdown that does not
    /// wait for the last connection. The pool is closed whatever the deadline is; one that has passed closes
    /// it and only looks.
    ///
    /// # Errors
    ///
    /// How many connections were still checked out at the deadline. They are closed when they are checked
    /// in.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use tokio::time::Instant;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Err(timeout) = pool.close_before(Instant::now() + Duration::from_secs(5)).await {
    ///     eprintln!("{} connections are still checked out", timeout.in_use);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close_before(&self, deadline: R::Instant) -> Result<(), CloseTimeout> {
        let runtime = self.driver().runtime();
        if timeout_exactly_at(&runtime, deadline.into(), pin!(self.close())).await.is_some() {
            return Ok(());
        }
        match self.snapshot().total {
            0 => Ok(()), // At the last moment.
            in_use => Err(CloseTimeout { in_use }),
        }
    }
}
