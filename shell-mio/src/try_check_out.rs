use std::panic::Location;
use std::sync::Arc;

use cenote_core::error::PoolError;
use cenote_core::pool::{CheckOutError, Purpose};

use crate::connector::Connector;
use crate::guard::PooledConnection;
use crate::pool::Pool;
use crate::request::take_over;
use crate::woken::Waiter;

impl<K: Connector> Pool<K> {
    /// Checks a connection out if one is available at this moment. Never waits, and never has a
    /// connection made: `None` says that the caller would have to wait for one or the other. For
    /// work that is only worth doing while the pool has nothing better to do.
    ///
    /// Whoever waits already goes first (WQ-03): while somebody does, nothing is available. A pool
    /// that has just been made has no connections yet, so this finds nothing before somebody
    /// [checks one out](Self::check_out) in earnest, [`warm_up`](Self::warm_up) or `minPoolSize` has
    /// made some.
    ///
    /// CMAP knows no such request, so it is told as one whose time is over at once (EV-18):
    /// `ConnectionCheckOutStarted`, and then `ConnectionCheckedOut`, or `ConnectionCheckOutFailed`
    /// with the reason `timeout` and a duration of zero. Blocks for no longer than the pool's lock is
    /// held and [subscribers](crate::Builder::on_event) take; where nothing is available it allocates.
    ///
    /// # Errors
    ///
    /// [`PoolError`]: the pool is paused or closed.
    #[track_caller]
    pub fn try_check_out(&self) -> Result<Option<PooledConnection<K>>, PoolError> {
        let place = Location::caller();
        // A deadline that has passed asks for what is there or nothing.
        let passed = self.shared().time_zero();
        let waiter = || Waiter::Thread(Arc::default());
        let Ok(delivery) = self.shared().request(Some(passed), Purpose::Other, waiter) else {
            unreachable!("a request whose time is over does not wait")
        };
        match delivery {
            Err(CheckOutError::WaitQueueTimeout { .. }) => Ok(None),
            found => take_over(self.shared(), found, place).map(Some),
        }
    }
}
