//! What pools need of a connection, and its parts.

use std::{fmt, io};

use cenote_core::connect::ConnectionDescription;
use cenote_core::error::ConnectionError;

use super::operations::Connection;
use super::reauthentication::Reauthentication;
use super::transport::Transport;
use crate::connection::IdleProbe;
use crate::connection::interrupt::Interrupter;
use crate::connection::operation::CommandTimeouts;
use crate::runtime::Network;

/// A [`Connection`] taken apart, for runtimes with a connection type of their own.
#[non_exhaustive]
pub struct ConnectionParts<R: Network> {
    /// The runtime.
    pub runtime: R,
    /// The socket.
    pub stream: R::Stream,
    /// The messages on it.
    pub transport: Transport,
    /// What the server said in hello.
    pub description: Box<ConnectionDescription>,
    /// How long its commands may take.
    pub timeouts: CommandTimeouts,
    /// How it authenticates again; `None` if it was not authenticated.
    pub reauthentication: Option<Box<Reauthentication>>,
}

/// What [`MongoConnector`](super::MongoConnector) gives the pools of a runtime: [`Connection`], or
/// what the runtime makes of it.
pub trait OpenedConnection<R: Network>: Send + Sized + 'static {
    /// Takes over a connection that is ready for its first command.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    fn from_opened(opened: Connection<R>) -> io::Result<Self>;

    /// Whether the connection may go back to its pool: no exchange is under way, nothing is unread
    /// and nothing failed.
    fn is_reusable(&self) -> bool;

    /// As [`Connector::idle_fault`](crate::connection::Connector::idle_fault).
    fn idle_fault(&mut self) -> Option<ConnectionError>;

    /// As [`Connector::idle_probe`](crate::connection::Connector::idle_probe).
    fn idle_probe(&self) -> Option<IdleProbe> {
        None
    }

    /// As [`Connector::has_received`](crate::connection::Connector::has_received).
    fn has_received(&mut self) -> bool;

    /// As [`Connector::pending_response`](crate::connection::Connector::pending_response).
    fn pending_response(&self) -> Option<i32>;

    /// Gives it back to the runtime, where its late reply is read.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    fn reopen(self, runtime: &R) -> io::Result<Connection<R>>;

    /// As [`Connector::interrupter`](crate::connection::Connector::interrupter).
    fn interrupter(&self) -> Option<Interrupter> {
        None
    }
}

impl<R: Network> OpenedConnection<R> for Connection<R> {
    fn from_opened(opened: Self) -> io::Result<Self> {
        Ok(opened)
    }

    fn is_reusable(&self) -> bool {
        self.messages.transport.is_reusable()
    }

    fn pending_response(&self) -> Option<i32> {
        let is_open = self.reauthentication.as_ref().is_some_and(|it| it.is_open());
        if is_open { None } else { self.messages.transport.pending_response() }
    }

    fn reopen(self, _runtime: &R) -> io::Result<Self> {
        Ok(self)
    }

    #[inline]
    fn idle_fault(&mut self) -> Option<ConnectionError> {
        let is_silent = R::is_readable(&mut self.messages.stream) == Some(false);
        if is_silent { None } else { self.messages.idle_fault() }
    }

    fn has_received(&mut self) -> bool {
        self.messages.transport.take_received()
    }
}

impl<R: Network> ConnectionParts<R> {
    /// The parts of a connection, with the socket on `runtime`.
    #[must_use]
    pub const fn new(
        runtime: R,
        stream: R::Stream,
        transport: Transport,
        description: Box<ConnectionDescription>,
        timeouts: CommandTimeouts,
        reauthentication: Option<Box<Reauthentication>>,
    ) -> Self {
        Self { runtime, stream, transport, description, timeouts, reauthentication }
    }
}

impl<R: Network> fmt::Debug for ConnectionParts<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionParts")
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}
