use std::time::Instant;

use cenote_shell::log;
use cenote_shell::pool::{CLOSE_GRACE, PoolDriver};

use crate::CloseTimeout;
use crate::Connector;
use crate::event_loop::EventLoop;
use crate::pool::Pool;

impl<K: Connector<EventLoop>> Pool<K> {
    /// Closes the pool. Blocks until every connection is checked in and closed, subscribers were told of
    /// that, and the threads of the event loop have ended, other than those that wait for a name server.
    /// For subscribers and the threads it waits [`CLOSE_GRACE`] at most once every connection is closed, and logs a warning then.
    ///
    /// Does not wait in a subscriber of the same pool, which would wait for itself, and in a child
    /// process for what belongs to the parent.
    pub fn close(&self) {
        // Without a deadline there is an error only where it does not wait.
        let _ = self.close_by(None);
    }

    /// As [`close`](Self::close), but waits until `deadline` at most. The pool is closed in any case; a
    /// deadline that has passed makes this return at once.
    ///
    /// # Errors
    ///
    /// How many connections were still checked out at the deadline. They are closed when they are checked
    /// in.
    ///
    /// ```no_run
    /// use std::time::{Duration, Instant};
    ///
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Err(timeout) = pool.close_before(Instant::now() + Duration::from_secs(5)) {
    ///     eprintln!("{} connections are still checked out", timeout.in_use);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        self.close_by(Some(deadline))
    }

    pub(crate) fn close_by(&self, deadline: Option<Instant>) -> Result<(), CloseTimeout> {
        let driver = self.driver();
        driver.close();
        let can_wait = !driver.is_performing_here() && !driver.is_inherited();
        let is_drained = can_wait && self.wait_until_drained(deadline);
        match driver.snapshot().total {
            0 => {}
            in_use => return Err(CloseTimeout { in_use }),
        }
        self.end_inspection();
        if is_drained {
            let deadline = Some(within_grace(deadline));
            self.thread().join(deadline);
            driver.runtime().join_helpers(deadline);
        }
        Ok(())
    }

    fn wait_until_drained(&self, deadline: Option<Instant>) -> bool {
        let driver = self.driver();
        if !self.wait_until(PoolDriver::is_empty, deadline) || driver.is_drained() {
            return driver.is_drained();
        }
        let limit = within_grace(deadline);
        let is_drained = self.wait_until(PoolDriver::is_drained, Some(limit));
        if !is_drained && deadline != Some(limit) {
            log::close_gave_up(driver.address());
        }
        is_drained
    }

    fn wait_until(
        &self,
        holds: impl Fn(&PoolDriver<EventLoop, K>) -> bool,
        deadline: Option<Instant>,
    ) -> bool {
        loop {
            // Before looking, so that no notification is missed.
            let changed = self.driver().drained();
            if holds(self.driver()) {
                return true;
            }
            if !changed.wait(deadline) {
                return holds(self.driver());
            }
        }
    }
}

/// How long subscribers and the loop's thread have.
pub(crate) fn within_grace(deadline: Option<Instant>) -> Instant {
    let grace = Instant::now() + CLOSE_GRACE;
    deadline.map_or(grace, |deadline| deadline.min(grace))
}
