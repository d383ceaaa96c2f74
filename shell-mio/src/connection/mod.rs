//! Connections to MongoDB servers, for callers that block or have an event loop of their own.
//!
//! They are opened on the event loop by [`cenote_shell::connection`], and then taken off it.

mod blocking_socket;
mod embedded;
mod operations;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "windows.rs")]
mod os;
mod raw_stream;
mod reauthentication;
mod timeout;

use std::convert::Infallible;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Instant;

use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::MessageLimit;
use cenote_shell::connection::interrupt::Interrupter;
use cenote_shell::connection::operation::{CommandTimeouts, OperationLimit, OperationOptions};
use cenote_shell::connection::transport_error::TransportError;
use cenote_shell::connection::{
    self, ConnectionParts, IdleProbe, OpenedConnection, Reauthentication, Transport,
};

use self::blocking_socket::{BlockingSocket, Io};
use self::timeout::{Timeout, Wait};
use crate::event_loop::EventLoop;

pub use self::raw_stream::RawStream;

/// Opens connections as a connection string describes them: [`cenote_shell::connection::MongoConnector`].
///
/// An [embedded](crate::PoolSource) pool has no threads to resolve host names: its connector needs
/// [`with_addresses`](connection::MongoConnector::with_addresses) or
/// [`with_resolver`](connection::MongoConnector::with_resolver), or IP addresses in the connection string.
///
/// ```no_run
/// use cenote_core::uri::ConnectionString;
/// use cenote_mio::{Builder, MongoConnector, Pool};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let uri = ConnectionString::parse("mongodb://db.example.com/?tls=true")?;
/// let connector = MongoConnector::new(&uri)?.with_addresses(vec!["192.0.2.7".parse()?]);
/// let pool: Pool = Builder::new(uri.hosts[0].clone(), connector).build()?;
/// # Ok(())
/// # }
/// ```
pub type MongoConnector = connection::MongoConnector<EventLoop>;

/// A connection to a server, authenticated and ready.
///
/// `timeoutMS` limits each command together with its reply, unless the call has a limit of its own: see
/// [`cenote_shell::connection::operation`]. Without one, `socketTimeoutMS` limits each wait for the socket, to write and to read.
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_core::error::ConnectionError;
/// use cenote_mio::Connection;
///
/// fn ping(connection: &mut Connection) -> Result<(), ConnectionError> {
///     println!("{:?}", connection.description());
///     connection.command("admin", &rawdoc! { "ping": 1 }).map(drop)
/// }
/// ```
pub struct Connection {
    socket: BlockingSocket,
    transport: Transport,
    description: Box<ConnectionDescription>,
    timeouts: CommandTimeouts,
    /// Of a message of the driver's own, until its reply is there.
    of_exchange: Option<OperationLimit>,
    /// `None` if it was not authenticated.
    reauthentication: Option<Box<Reauthentication>>,
}

impl Connection {
    /// What the server said about itself and this connection.
    #[must_use]
    pub fn description(&self) -> &ConnectionDescription {
        &self.description
    }

    /// The largest message that the server accepts, in bytes with its header.
    #[must_use]
    pub fn message_limit(&self) -> MessageLimit {
        self.transport.limit()
    }

    /// Whether it may go back to its pool: no exchange is under way, nothing is unread, and nothing failed.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.transport.is_reusable()
    }

    /// Repeats [`Transport::look`] without blocking.
    #[cold]
    fn look(&mut self) -> io::Result<Infallible> {
        self.socket.never_block()?;
        loop {
            match self.transport.look(&mut self.socket.io()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                looked => return looked,
            }
        }
    }

    fn limit(&self, options: OperationOptions) -> OperationLimit {
        self.timeouts.limit(options, Instant::now)
    }

    /// Blocks until the request that was begun is written. If the time is over before its first byte, nothing
    /// was begun.
    // CS-11.
    fn write(&mut self, limit: OperationLimit) -> Result<(), TransportError> {
        if let Err(late) = limit.check_before_write(Instant::now) {
            self.transport.withdraw();
            return Err(late);
        }
        let timeout = Timeout::from(limit);
        let wait = timeout.next()?;
        self.repeat(wait, timeout, |transport, mut io| Ok(transport.write(&mut io)?))
    }

    /// Blocks until `read` is done, as [`Transport::read`]. What was read when the time is over stays in the
    /// transport.
    fn read<T>(
        &mut self,
        limit: OperationLimit,
        read: impl FnMut(&mut Transport, Io<'_>) -> Result<T, TransportError>,
    ) -> Result<T, TransportError> {
        let timeout = Timeout::from(limit);
        self.repeat(timeout.next()?, timeout, read)
    }

    /// Repeats a step of the transport until it is done. `wait` is for the first one.
    fn repeat<T>(
        &mut self,
        wait: Option<Wait>,
        timeout: Timeout,
        mut step: impl FnMut(&mut Transport, Io<'_>) -> Result<T, TransportError>,
    ) -> Result<T, TransportError> {
        let Self { socket, transport, .. } = self;
        socket.repeat(wait, timeout, |io| step(transport, io))
    }
}

impl OpenedConnection<EventLoop> for Connection {
    fn from_opened(opened: connection::Connection<EventLoop>) -> io::Result<Self> {
        let ConnectionParts {
            runtime,
            stream,
            transport,
            description,
            timeouts,
            reauthentication,
            ..
        } = opened.into_parts();
        let mut socket = BlockingSocket::new(stream.end()?);
        if !runtime.is_embedded() {
            socket.block_for(None)?;
        }
        Ok(Self { socket, transport, description, timeouts, of_exchange: None, reauthentication })
    }

    fn is_reusable(&self) -> bool {
        self.is_reusable()
    }

    fn idle_fault(&mut self) -> Option<ConnectionError> {
        if self.socket.is_silent() {
            return None;
        }
        match self.look() {
            Ok(never) => match never {},
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => Some(ConnectionError::network(Stage::Operation, error)),
        }
    }

    fn idle_probe(&self) -> Option<IdleProbe> {
        Some(self.socket.probe())
    }

    fn has_received(&mut self) -> bool {
        self.transport.take_received()
    }

    fn pending_response(&self) -> Option<i32> {
        let is_open = self.reauthentication.as_ref().is_some_and(|it| it.is_open());
        if is_open { None } else { self.transport.pending_response() }
    }

    fn reopen(self, runtime: &EventLoop) -> io::Result<connection::Connection<EventLoop>> {
        let Self { mut socket, transport, description, timeouts, of_exchange: _, reauthentication } =
            self;
        socket.never_block()?;
        let stream = runtime.watch(socket.into_socket()?)?;
        let runtime = runtime.clone();
        let parts = ConnectionParts::new(
            runtime,
            stream,
            transport,
            description,
            timeouts,
            reauthentication,
        );
        Ok(connection::Connection::from_parts(parts))
    }

    /// By `shutdown` of the socket.
    fn interrupter(&self) -> Option<Interrupter> {
        Some(self.socket.interrupter())
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("description", &self.description).finish_non_exhaustive()
    }
}
