//! Answers to check-outs become guards, or errors that name the server.

use std::panic::Location;
use std::sync::Arc;

use cenote_core::error::{PoolError, Wait};
use cenote_core::pool::WaiterId;

use super::driver::PoolDriver;
use super::guard::PooledConnection;
use super::types::{CheckOutResult, Delivery, FailedCheckOut};
use crate::connection::Connector;
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Turns an answer that came at once into the guard of a connection that was checked out at `caller`, or
    /// into the error with the server's address.
    ///
    /// # Errors
    ///
    /// Why there is no connection.
    pub fn guard(
        self: &Arc<Self>,
        result: CheckOutResult<R, K>,
        caller: &'static Location<'static>,
    ) -> Result<PooledConnection<R, K>, PoolError> {
        match result {
            Ok(socket) => Ok(PooledConnection::new(Arc::clone(self), socket, caller, None)),
            Err(failed) => Err(self.failed_at_once(failed)),
        }
    }

    #[cold]
    fn failed_at_once(&self, FailedCheckOut { error, request }: FailedCheckOut) -> PoolError {
        let error = PoolError::new(Arc::clone(&self.address), error);
        let error = error.with_wait(Wait::default()).with_request(request);
        self.failures.note(&error, R::now);
        error
    }

    /// As [`guard`](Self::guard), for an answer that came after a wait.
    pub(super) fn guard_after(
        self: &Arc<Self>,
        result: Delivery<R, K>,
        explain: impl FnOnce(PoolError) -> PoolError,
        caller: &'static Location<'static>,
        request: Option<WaiterId>,
    ) -> Result<PooledConnection<R, K>, PoolError> {
        match result {
            Ok(socket) => Ok(PooledConnection::new(Arc::clone(self), socket, caller, request)),
            Err(error) => {
                let error = explain(PoolError::new(Arc::clone(&self.address), error));
                self.failures.note(&error, R::now);
                Err(error)
            }
        }
    }
}
