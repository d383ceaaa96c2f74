use std::time::Instant;

use super::{Client, pool_of};
use crate::CloseTimeout;
use crate::close::within_grace;

impl Client {
    /// Closes the client: callers that wait for a server or a connection get an error, the monitors end, then
    /// the pools close, in the order of the connection string. Blocks until every connection is checked in and
    /// closed, subscribers were told of that, and the threads of the event loop have ended, other than those that
    /// wait for a name server. For subscribers of each pool, for those of the servers and for the threads, it waits
    /// [`CLOSE_GRACE`](cenote_shell::pool::CLOSE_GRACE) at most.
    ///
    /// Does not wait in a subscriber of the same client, which would wait for itself, and in a child process for
    /// what belongs to the parent.
    // SD-10.
    pub fn close(&self) {
        // Without a deadline there is an error only where it does not wait.
        let _ = self.close_by(None);
    }

    /// As [`close`](Self::close), but waits until `deadline` at most. The client is closed in any case.
    ///
    /// # Errors
    ///
    /// How many connections were still checked out at the deadline. They are closed when they are checked in.
    pub fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        self.close_by(Some(deadline))
    }

    fn close_by(&self, deadline: Option<Instant>) -> Result<(), CloseTimeout> {
        let Self { inner, thread } = self;
        inner.close_at_once();
        let can_wait = !thread.is_current() && !inner.is_performing_here() && !inner.is_inherited();
        let deadline = if can_wait { deadline } else { Some(Instant::now()) };
        let pools: Vec<_> = inner.all_servers().iter().map(|server| pool_of(server)).collect();
        let closed = pools.iter().map(|pool| pool.close_by(deadline));
        let in_use = closed.map(|closed| closed.map_or_else(|error| error.in_use, |()| 0)).sum();
        if in_use > 0 {
            return Err(CloseTimeout { in_use });
        }
        inner.end_inspection();
        if can_wait {
            let deadline = Some(within_grace(deadline));
            inner.wait_for_subscribers(deadline);
            thread.join(deadline);
            // All pools have the same event loop.
            if let Some(pool) = pools.first() {
                pool.driver().runtime().join_helpers(deadline);
            }
        }
        Ok(())
    }
}
