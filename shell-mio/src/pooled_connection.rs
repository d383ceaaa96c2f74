use std::fmt;
use std::ops::{Deref, DerefMut};

use bson::RawDocumentBuf;
use cenote_core::error::{ConnectionError, OperationError};
use cenote_core::pool::{Purpose, ServiceId};
use cenote_shell::connection::Reply;
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::pool::{self, GuardParts};

use crate::event_loop::EventLoop;
use crate::{Connector, MongoConnector};

/// A connection that is checked out. Dropping it checks it in, without blocking.
///
/// It is broken, and closed, if it was [marked as such](Self::mark_errored), if the pool interrupted it, if an
/// operation of [`run`](Self::run) panicked, or if the [connector finds a fault](Connector::fault) in it, such
/// as a reply that was not read to its end.
pub struct PooledConnection<K: Connector<EventLoop> = MongoConnector> {
    guard: pool::PooledConnection<EventLoop, K>,
}

impl<K: Connector<EventLoop>> PooledConnection<K> {
    pub(crate) fn new(guard: pool::PooledConnection<EventLoop, K>) -> Self {
        Self { guard }
    }

    /// The number of the connection, as in events: 1, 2, 3, …
    #[must_use]
    pub fn id(&self) -> u64 {
        self.guard.id()
    }

    /// The service at the other end, behind a load balancer.
    #[must_use]
    pub fn service_id(&self) -> Option<ServiceId> {
        self.guard.service_id()
    }

    /// Whether the pool was cleared since the connection was opened:
    /// [`cenote_shell::pool::PooledConnection::is_stale`].
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.guard.is_stale()
    }

    /// Marks the connection as broken: [`cenote_shell::pool::PooledConnection::mark_errored`].
    pub fn mark_errored(&mut self, error: ConnectionError) {
        self.guard.mark_errored(error);
    }

    /// Says what the connection is used for from now on:
    /// [`cenote_shell::pool::PooledConnection::set_purpose`].
    pub fn set_purpose(&mut self, purpose: Purpose) {
        self.guard.set_purpose(purpose);
    }

    /// Whether the pool has interrupted the connection, which [`Pool::clear`](crate::Pool::clear) does on
    /// request. It cannot be used then.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.guard.is_interrupted()
    }

    /// Runs an operation that blocks, which fails when the pool interrupts the connection: at once if the
    /// connector has an [interrupter](Connector::interrupter), otherwise when `operation` returns. A
    /// [`ConnectionError`] that leaves the connection unfit marks it; every one is shown to
    /// [`Builder::on_failure`](crate::Builder::on_failure) before this returns.
    ///
    /// # Errors
    ///
    /// That of `operation`, or [`OperationError::Interrupted`], also when `operation` succeeded.
    ///
    /// # Panics
    ///
    /// When `operation` does. The connection is closed when it is checked in.
    ///
    /// ```no_run
    /// use std::io::Write;
    /// use std::net::TcpStream;
    ///
    /// use cenote_core::error::{ConnectionError, Stage};
    /// use cenote_mio::{Connector, EventLoop, OperationError, PooledConnection};
    ///
    /// /// On a connection of a driver's own `Connector`.
    /// fn send<K>(connection: &mut PooledConnection<K>, bytes: &[u8]) -> Result<(), OperationError>
    /// where
    ///     K: Connector<EventLoop, Connection = TcpStream>,
    /// {
    ///     connection.run(|stream| {
    ///         let written = stream.write_all(bytes);
    ///         written.map_err(|error| ConnectionError::network(Stage::Operation, error))
    ///     })
    /// }
    /// ```
    pub fn run<'c, R>(
        &'c mut self,
        operation: impl FnOnce(&'c mut K::Connection) -> Result<R, ConnectionError>,
    ) -> Result<R, OperationError> {
        self.guard.run_blocking(operation)
    }

    pub(crate) fn with_round_trip(&self, options: OperationOptions) -> OperationOptions {
        self.guard.with_round_trip(options)
    }

    pub(crate) fn show_write_concern_error(&self, reply: Reply) -> RawDocumentBuf {
        self.guard.show_write_concern_error(reply)
    }

    pub(crate) fn parts(&mut self) -> GuardParts<'_, EventLoop, K> {
        self.guard.parts()
    }
}

impl<K: Connector<EventLoop>> Deref for PooledConnection<K> {
    type Target = K::Connection;

    fn deref(&self) -> &K::Connection {
        &self.guard
    }
}

impl<K: Connector<EventLoop>> DerefMut for PooledConnection<K> {
    fn deref_mut(&mut self) -> &mut K::Connection {
        &mut self.guard
    }
}

impl<K: Connector<EventLoop>> fmt::Debug for PooledConnection<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
