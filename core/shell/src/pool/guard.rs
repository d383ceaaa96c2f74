mod operations;

use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, InterruptedError, Stage};
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
