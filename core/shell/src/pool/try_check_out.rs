use std::panic::Location;
use std::sync::Arc;

use cenote_core::error::PoolError;
use cenote_core::pool::{CheckOutError, Purpose};

use super::check_out::Until;
use super::driver::PoolDriver;
use super::guard::PooledConnection;
use super::handle::Pool;
use super::types::FailedCheckOut;
use crate::connection::Connector;
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> Pool<R, K> {
    /// Checks a connection out if one is available at this moment. Never waits, and never has a connection
    /// made: `None` means that the caller would have to wait for one or the other. For work that is only
    /// worth doing while the pool is idle.
    ///
    /// Callers that wait already go first: while one waits, nothing is available. A new pool has no
    /// connections yet, so this returns `None` until a [check-out](Self::check_out),
    /// [`warm_up`](Self::warm_up) or `minPoolSize` has made some.
    ///
    /// CMAP knows no such request. Its events are those of a check-out that times out at once:
    /// `ConnectionCheckOutStarted`, and then `ConnectionCheckedOut`, or `ConnectionCheckOutFailed` with the
    /// reason `timeout` and a duration of zero. Blocks for no longer than the pool's lock is held and
    /// [subscribers](crate::builder::Builder::on_event) take; allocates where nothing is available.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused or closed.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// // Only while a connection is idle.
    /// if let Some(mut connection) = pool.try_check_out()? {
    ///     connection.command("shop", &rawdoc! { "collStats": "orders" }).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn try_check_out(&self) -> Result<Option<PooledConnection<R, K>>, PoolError> {
        self.driver().try_check_out(Location::caller())
    }
}

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// [`Pool::try_check_out`] for a caller at `caller`.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused or closed.
    pub fn try_check_out(
        self: &Arc<Self>,
        caller: &'static Location<'static>,
    ) -> Result<Option<PooledConnection<R, K>>, PoolError> {
        // A deadline that has passed asks for what is there or nothing.
        let mut until = Until::Deadline(Some(self.time_zero()));
        let waiter = || unreachable!("a check-out whose time is over does not wait");
        let Ok(result) = self.request(&mut until, Purpose::Other, caller, waiter) else {
            unreachable!("a check-out whose time is over does not wait")
        };
        match result {
            Err(FailedCheckOut { error: CheckOutError::WaitQueueTimeout { .. }, .. }) => Ok(None),
            found => self.guard(found, caller).map(Some),
        }
    }
}
