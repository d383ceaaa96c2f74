//! Operations on a connection that is checked out, which the pool can interrupt.

use std::future::Future;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

#[cfg(feature = "tls")]
use bson::RawDocumentBuf;
#[cfg(feature = "tls")]
use cenote_core::error::Stage;
use cenote_core::error::{ConnectionError, InterruptedError, Kind, OperationError};
use cenote_core::pool::ConnId;

use super::{GuardParts, PooledConnection};
use crate::connection::Connector;
#[cfg(feature = "tls")]
use crate::connection::Reply;
use crate::connection::interrupt::Interrupt;
use crate::pool::PoolDriver;
use crate::pool::types::Operation;
use crate::runtime::Runtime;

/// What an operation leaves behind that is dropped.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "commands know more of their connection")
)]
enum IfDropped {
    /// A connection of which nothing is known.
    Broken,
    /// One whose reply may still come.
    MayAnswer,
    /// What was there: a later one goes on.
    Unchanged,
}

/// What the end of an operation means for its connection and its caller. A failure is shown to
/// [`Builder::on_failure`](crate::builder::Builder::on_failure), and marks the connection unless it leaves it
/// healthy. After an interrupt the result is that, whatever the operation says.
// IN-08
fn conclude<R: Runtime, K: Connector<R>, T>(
    driver: &Arc<PoolDriver<R, K>>,
    id: ConnId,
    interrupt: &Interrupt,
    error: &mut Option<ConnectionError>,
    outcome: Result<T, ConnectionError>,
) -> Result<T, OperationError> {
    if interrupt.has_happened() {
        return Err(InterruptedError::new(Arc::clone(driver.address())).into());
    }
    outcome.map_err(|cause| {
        // The server knows nothing of what was not sent.
        if !matches!(cause.kind(), Kind::NotSent { .. }) {
            driver.show_failure(id, &cause);
        }
        if !cause.leaves_connection_healthy() {
            error.get_or_insert_with(|| cause.clone());
        }
        cause.into()
    })
}

impl<R: Runtime, K: Connector<R>> PooledConnection<R, K> {
    /// Runs an operation that blocks. If the pool interrupts the connection meanwhile, the result is an
    /// interrupt, whatever the operation says: at once if the connector has an
    /// [interrupter](Connector::interrupter), otherwise when the operation returns. A [`ConnectionError`] that
    /// leaves the connection unfit marks it.
    ///
    /// # Errors
    ///
    /// That of `operation`, or [`OperationError::Interrupted`], also when `operation` succeeded.
    ///
    /// # Panics
    ///
    /// When `operation` does. The connection is closed when it is checked in.
    pub fn run_blocking<'c, T>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> Result<T, ConnectionError>,
    ) -> Result<T, OperationError> {
        let GuardParts { driver, id, connection, interrupt, error, progress } = self.parts();
        // FK-03
        // In a child process nothing must be sent on a socket of the parent.
        if interrupt.has_happened() || driver.is_inherited() {
            return Err(InterruptedError::new(Arc::clone(driver.address())).into());
        }
        // An earlier operation that did not end is not made good by this one.
        let before = mem::replace(progress, Operation::Runs);
        let outcome = operation(connection);
        *progress = before;
        conclude(driver, id, interrupt, error, outcome)
    }
}

#[cfg(feature = "tls")]
fn show_write_concern_error<R: Runtime, K: Connector<R>>(
    driver: &Arc<PoolDriver<R, K>>,
    id: ConnId,
    reply: Reply,
) -> RawDocumentBuf {
    if let Some(error) = reply.write_concern_error {
        driver.show_failure(id, &ConnectionError::command(Stage::Operation, *error));
    }
    reply.body
}

impl<R: Runtime, K: Connector<R>> PooledConnection<R, K> {
    /// Returns the reply to a command that succeeded, and shows a write concern error in it to
    /// [`Builder::on_failure`](crate::builder::Builder::on_failure): the command's caller gets its reply, and
    /// SDAM judges the error as it judges a refusal, because a primary that steps down or shuts down answers a
    /// majority write so.
    // SD-30
    #[cfg(feature = "tls")]
    pub fn show_write_concern_error(&self, reply: Reply) -> RawDocumentBuf {
        show_write_concern_error(&self.driver, self.socket().id, reply)
    }
}

impl<R: Runtime<Waiter = Waker>, K: Connector<R>> PooledConnection<R, K> {
    /// Waits until the pool interrupts the connection, because it was cleared with an interrupt. What is
    /// being done with the connection then has to end at once.
    ///
    /// Cancel-safe.
    pub async fn interrupted(&self) -> InterruptedError {
        self.socket().interrupt.happens().await;
        InterruptedError::new(Arc::clone(self.driver.address()))
    }

    /// Runs an operation, which fails when the pool interrupts the connection. A [`ConnectionError`] that
    /// leaves the connection unfit marks it; each is shown to
    /// [`Builder::on_failure`](crate::builder::Builder::on_failure) before this returns.
    ///
    /// Dropping the future after it was polled drops the operation, and so does a panic in it: the connection
    /// is closed when it is checked in, whether or not a later operation succeeds.
    ///
    /// # Errors
    ///
    /// That of `operation`, or [`OperationError::Interrupted`], also when `operation` succeeded.
    pub fn run<'c, T, F>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
    ) -> impl Future<Output = Result<T, OperationError>>
    where
        F: Future<Output = Result<T, ConnectionError>>,
    {
        self.run_operation(IfDropped::Broken, operation, |_, _, result| result)
    }

    /// As [`run`](Self::run), for one command, in whose reply a write concern error is
    /// [shown](Self::show_write_concern_error). If it is dropped while its reply is to come, that may still come, and be
    /// [read](Connector::drain).
    #[cfg(feature = "tls")]
    pub(crate) fn run_command<'c, F>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
    ) -> impl Future<Output = Result<RawDocumentBuf, OperationError>>
    where
        F: Future<Output = Result<Reply, ConnectionError>>,
    {
        self.run_operation(IfDropped::MayAnswer, operation, show_write_concern_error)
    }

    /// As [`run`](Self::run), for an operation that a later one continues after it was dropped. The connector
    /// finds fault with the connection if none does.
    #[cfg(feature = "tls")]
    pub(crate) fn run_resumable<'c, T, F>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
    ) -> impl Future<Output = Result<T, OperationError>>
    where
        F: Future<Output = Result<T, ConnectionError>>,
    {
        self.run_operation(IfDropped::Unchanged, operation, |_, _, result| result)
    }

    async fn run_operation<'c, T, U, F>(
        &'c mut self,
        if_dropped: IfDropped,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
        finish: impl FnOnce(&Arc<PoolDriver<R, K>>, ConnId, T) -> U,
    ) -> Result<U, OperationError>
    where
        F: Future<Output = Result<T, ConnectionError>>,
    {
        self.check_process()?;
        let GuardParts { driver, id, connection, interrupt, error, progress } = self.parts();
        if interrupt.has_happened() {
            return Err(InterruptedError::new(Arc::clone(driver.address())).into());
        }
        // An earlier operation that did not end is not made good by this one.
        let before = mem::replace(progress, Operation::Runs);
        let meanwhile = match if_dropped {
            IfDropped::Unchanged => before,
            IfDropped::MayAnswer if before == Operation::Ended => Operation::Waits,
            IfDropped::MayAnswer | IfDropped::Broken => Operation::Runs,
        };
        let mut task = interrupt.operation();
        let mut operation = std::pin::pin!(operation(connection));
        *progress = meanwhile;
        let outcome = std::future::poll_fn(|cx| {
            if interrupt.has_happened() {
                return Poll::Ready(None);
            }
            *progress = Operation::Runs;
            let polled = operation.as_mut().poll(cx);
            *progress = meanwhile;
            match polled {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => task.poll_interrupted(cx).map(|()| None),
            }
        });
        let Some(outcome) = outcome.await else {
            return Err(InterruptedError::new(Arc::clone(driver.address())).into());
        };
        *progress = before;
        conclude(driver, id, interrupt, error, outcome).map(|result| finish(driver, id, result))
    }
}
