use std::fmt;
use std::future::Future;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bson::RawDocumentBuf;
use cenote_core::address::ServerAddress;
use cenote_core::error::{
    CommandError, ConnectionError, InterruptedError, Kind, OperationError, ReplyPart, Stage,
};
use cenote_core::pool::{ConnId, Input, Purpose, ServiceId, WaiterId};

use super::driver::PoolDriver;
use super::fork::ForkTrigger;
use super::types::{Operation, PooledSocket};
use crate::connection::Connector;
use crate::connection::interrupt::Interrupt;
use crate::connection::operation::OperationOptions;
use crate::runtime::Runtime;

/// A connection that is checked out. Dropped, it is checked in: without waiting, without a task.
///
/// It is checked in as broken, and closed, when it was [marked](Self::mark_errored), when it was
/// interrupted, when an operation of [`run`](Self::run) was dropped or panicked before its end, or when the
/// [connector finds fault](Connector::fault) with it, such as a reply that was not read to its end.
///
/// ```no_run
/// use bson::rawdoc;
///
/// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut connection = pool.check_out().await?;
/// connection.command("admin", &rawdoc! { "ping": 1 }).await?; // Of the pooled connection.
/// println!("connection {} of {}", connection.id(), connection.address());
/// drop(connection); // Checks it in.
/// # Ok(())
/// # }
/// ```
pub struct PooledConnection<R: Runtime, K: Connector<R>> {
    // Two words, returned in registers.
    driver: Arc<PoolDriver<R, K>>,
    /// There until the guard is dropped.
    socket: Option<Box<PooledSocket<R, K>>>,
}

/// The parts of a guard, for shells with operations of their own.
pub struct GuardParts<'c, R: Runtime, K: Connector<R>> {
    /// The pool.
    pub driver: &'c Arc<PoolDriver<R, K>>,
    /// The connection's number.
    pub id: ConnId,
    /// The connection.
    pub connection: &'c mut K::Connection,
    /// Hears when the pool interrupts the connection.
    pub interrupt: &'c Interrupt,
    error: &'c mut Option<ConnectionError>,
    progress: &'c mut Operation,
}

impl<R: Runtime, K: Connector<R>> PooledConnection<R, K> {
    pub(super) fn new(
        driver: Arc<PoolDriver<R, K>>,
        mut socket: Box<PooledSocket<R, K>>,
        caller: &'static Location<'static>,
        request: Option<WaiterId>,
    ) -> Self {
        if driver.leak_detector().note(socket.id, caller, request, R::now) {
            socket.is_tracked = true;
        }
        Self { driver, socket: Some(socket) }
    }

    /// The connection's number, as in events: 1, 2, 3, …
    #[must_use]
    pub fn id(&self) -> u64 {
        self.socket().id.number()
    }

    /// The service at the other end, behind a load balancer.
    #[must_use]
    pub fn service_id(&self) -> Option<ServiceId> {
        self.driver.lock().state.service_of(self.socket().id)
    }

    /// Whether the pool was cleared since the connection was made. An error on a stale connection says
    /// nothing about the server as it is now.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.driver.lock().state.is_stale(self.socket().id)
    }

    /// Marks the connection as broken: it is closed when it is checked in, even if only a late reply is due on it.
    /// The first error counts; each is shown to [`Builder::on_failure`](crate::builder::Builder::on_failure).
    // IN-08
    pub fn mark_errored(&mut self, error: ConnectionError) {
        self.driver.show_failure(self.socket().id, &error);
        let socket = self.socket_mut();
        socket.is_marked = true;
        socket.error.get_or_insert(error);
    }

    /// Returns the reply to a command that succeeded, and shows a write concern error in it to
    /// [`Builder::on_failure`](crate::builder::Builder::on_failure): the command's caller gets its reply, and
    /// SDAM judges the error as it judges a refusal, because a primary that steps down or shuts down answers a
    /// majority write so.
    // SD-30
    pub fn show_write_concern_error(&self, reply: RawDocumentBuf) -> RawDocumentBuf {
        let error = CommandError::from_reply(&reply);
        if let Some(error) = error.filter(|error| error.part == ReplyPart::WriteConcern) {
            let error = ConnectionError::command(Stage::Operation, error);
            self.driver.show_failure(self.socket().id, &error);
        }
        reply
    }

    /// The options of a call, with the [round trip](crate::pool::Pool::set_min_round_trip) that the pool knows of,
    /// unless they have one.
    #[must_use]
    pub fn with_round_trip(&self, options: OperationOptions) -> OperationOptions {
        options.or_min_round_trip(|| self.driver.min_round_trip())
    }

    /// Says what the connection is used for from now on. Load-balanced pools count that for the message of a
    /// wait-queue timeout. Does nothing to a connection that was inherited through a fork.
    pub fn set_purpose(&mut self, purpose: Purpose) {
        if self.check_process().is_ok() {
            self.driver.feed(Input::Repurposed { id: self.socket().id, purpose });
        }
    }

    /// Whether the pool has interrupted the connection, because it was cleared with an interrupt. The
    /// connection cannot be used any more then.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.socket().interrupt.has_happened()
    }

    /// Fails in a child of the process that opened the connection; resets the pool there, if its runtime
    /// allows that.
    ///
    /// # Errors
    ///
    /// That the connection belongs to another process.
    // FK-03
    pub fn check_process(&self) -> Result<(), ConnectionError> {
        let checked = self.socket().connection.check();
        if checked.is_err() {
            // Whether or not there is a runtime to go on with: this connection is of no use here.
            let _ = self.driver.reset_in_child(ForkTrigger::Operating);
        }
        checked
    }

    /// The server's address.
    #[must_use]
    pub fn address(&self) -> &Arc<ServerAddress> {
        self.driver.address()
    }

    /// The guard's parts, borrowed each by itself.
    pub fn parts(&mut self) -> GuardParts<'_, R, K> {
        let Self { driver, socket } = self;
        let Some(socket) = socket else { unreachable!("it is there until the guard is dropped") };
        let PooledSocket {
            id,
            connection,
            interrupt,
            error,
            operation: progress,
            is_marked: _,
            is_tracked: _,
            idle: _,
        } = &mut **socket;
        GuardParts { driver, id: *id, connection, interrupt, error, progress }
    }

    fn socket(&self) -> &PooledSocket<R, K> {
        match &self.socket {
            Some(socket) => socket,
            None => unreachable!("it is there until the guard is dropped"),
        }
    }

    fn socket_mut(&mut self) -> &mut PooledSocket<R, K> {
        match &mut self.socket {
            Some(socket) => socket,
            None => unreachable!("it is there until the guard is dropped"),
        }
    }
}

impl<R: Runtime, K: Connector<R>> GuardParts<'_, R, K> {
    /// The error of an operation on a connection that was interrupted.
    #[must_use]
    pub fn interrupted(&self) -> InterruptedError {
        InterruptedError::new(Arc::clone(self.driver.address()))
    }
}

/// What an operation leaves behind that is dropped.
#[derive(Clone, Copy)]
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
    pub async fn run<'c, T, F>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
    ) -> Result<T, OperationError>
    where
        F: Future<Output = Result<T, ConnectionError>>,
    {
        self.run_operation(IfDropped::Broken, operation).await
    }

    /// As [`run`](Self::run), for one command. If it is dropped while its reply is to come, that may still come, and be
    /// [read](Connector::drain).
    #[cfg(feature = "tls")]
    pub(crate) async fn run_command<'c, T, F>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
    ) -> Result<T, OperationError>
    where
        F: Future<Output = Result<T, ConnectionError>>,
    {
        self.run_operation(IfDropped::MayAnswer, operation).await
    }

    /// As [`run`](Self::run), for an operation that a later one continues after it was dropped. The connector
    /// finds fault with the connection if none does.
    #[cfg(feature = "tls")]
    pub(crate) async fn run_resumable<'c, T, F>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
    ) -> Result<T, OperationError>
    where
        F: Future<Output = Result<T, ConnectionError>>,
    {
        self.run_operation(IfDropped::Unchanged, operation).await
    }

    async fn run_operation<'c, T, F>(
        &'c mut self,
        if_dropped: IfDropped,
        operation: impl FnOnce(&'c mut K::Connection) -> F,
    ) -> Result<T, OperationError>
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
        let mut interrupted = std::pin::pin!(interrupt.happens());
        let mut operation = std::pin::pin!(operation(connection));
        *progress = meanwhile;
        let outcome = std::future::poll_fn(|cx| {
            if interrupted.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            *progress = Operation::Runs;
            let polled = operation.as_mut().poll(cx);
            *progress = meanwhile;
            polled.map(Some)
        });
        let Some(outcome) = outcome.await else {
            return Err(InterruptedError::new(Arc::clone(driver.address())).into());
        };
        *progress = before;
        conclude(driver, id, interrupt, error, outcome)
    }
}

impl<R: Runtime, K: Connector<R>> Deref for PooledConnection<R, K> {
    type Target = K::Connection;

    fn deref(&self) -> &K::Connection {
        &self.socket().connection
    }
}

impl<R: Runtime, K: Connector<R>> DerefMut for PooledConnection<R, K> {
    fn deref_mut(&mut self) -> &mut K::Connection {
        &mut self.socket_mut().connection
    }
}

impl<R: Runtime, K: Connector<R>> Drop for PooledConnection<R, K> {
    fn drop(&mut self) {
        let Some(mut conn) = self.socket.take() else { return };
        if mem::take(&mut conn.is_tracked) {
            self.driver.leak_detector().forget(conn.id);
        }
        let interrupted = || {
            let text = "interrupted by the pool";
            conn.interrupt.has_happened().then(|| ConnectionError::network(Stage::Operation, text))
        };
        let unfinished = || {
            let text = "an operation was dropped, or panicked, before its end";
            let is_unfinished = conn.operation != Operation::Ended;
            is_unfinished.then(|| ConnectionError::protocol(Stage::Operation, text))
        };
        let error = conn.error.take().or_else(interrupted);
        let is_given_up = error.is_none() && conn.operation == Operation::Waits;
        let error = error.or_else(unfinished).or_else(|| self.driver.fault(&conn.connection));
        match error {
            // Apart, because nearly every check-in is one of these.
            None => self.driver.check_in_healthy(conn),
            Some(cause) => self.driver.check_in_unfit(conn, cause, is_given_up),
        }
    }
}

impl<R: Runtime, K: Connector<R>> fmt::Debug for PooledConnection<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledConnection")
            .field("id", &self.id())
            .field("address", self.address())
            .finish_non_exhaustive()
    }
}

impl<R: Runtime, K: Connector<R>> fmt::Debug for GuardParts<'_, R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardParts").field("id", &self.id).finish_non_exhaustive()
    }
}
