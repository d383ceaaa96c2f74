//! A connection of `cenote-mio` whose pool runs on the calling thread, for tests and scenarios that need a
//! second, plain client beside the one under test.
//!
//! The pool logs nothing, so that it can be used while the log messages of another client are checked.
//!
//! ```no_run
//! use bson::rawdoc;
//! use cenote::blocking::Connection;
//! use cenote_core::uri::ConnectionString;
//!
//! let uri = ConnectionString::parse("mongodb://app:s3cret@localhost/?compressors=zstd")?;
//! let mut connection = Connection::open(&uri, &uri.hosts[0])?;
//! let reply = connection.command("admin", &rawdoc! { "ping": 1 })?;
//! assert_eq!(reply.get_f64("ok")?, 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::ToSocketAddrs;
use std::ops::{Deref, DerefMut};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::pool::{CheckOutError, PoolOptions};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{Flags, Ids, MessageBuf, MessageWriter, WireError};
use cenote_mio::{Builder, MongoConnector, PoolSource, PooledConnection};
use mio::{Events, Poll};
use tracing::subscriber::{NoSubscriber, with_default};

/// The addresses of a server have two tokens.
const TOKENS: std::ops::Range<usize> = 0..2;

/// Opens connections as a connection string says; they share its files and SCRAM keys.
pub struct Connector {
    connector: MongoConnector,
    options: PoolOptions,
}

/// An established connection; [`cenote_mio::Connection`] says what it can do. Dropping it closes the
/// socket.
pub struct Connection {
    /// `None` only while it is dropped.
    open: Option<(PooledConnection, PoolSource)>,
}

impl Connector {
    /// Reads the files that the connection string names; no connection is made.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is not what it should be.
    pub fn new(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        let load_balanced = uri.topology.load_balanced == Some(true);
        let options = PoolOptions::default().with_load_balanced(load_balanced);
        let connector = MongoConnector::new(uri)?.with_resolver(|lookup| {
            let addresses = (lookup.host(), lookup.port()).to_socket_addrs();
            lookup.answer(addresses.map(Iterator::collect));
        });
        Ok(Self { connector, options })
    }

    /// Opens a connection. Blocks for `connectTimeoutMS` at most, and while a host name is resolved.
    ///
    /// # Errors
    ///
    /// The connection could not be established.
    pub fn open(&self, address: &ServerAddress) -> Result<Connection, ConnectionError> {
        quietly(|| {
            let poll = Poll::new().map_err(failed)?;
            let builder = Builder::new(address.clone(), self.connector.clone())
                .replace_options(self.options.clone());
            let mut source =
                PoolSource::new(builder, poll.registry(), TOKENS, || {}).map_err(unusable)?;
            source.pool().ready();
            source.check_out();
            let connection = first_ready(&mut source, poll).map_err(failed)?;
            let connection = connection.map_err(|error| match error.error() {
                CheckOutError::EstablishFailed { cause } => cause.clone(),
                CheckOutError::PoolClosed
                | CheckOutError::PoolCleared { .. }
                | CheckOutError::WaitQueueTimeout { .. }
                | CheckOutError::WaitQueueFull { .. }
                | CheckOutError::Shed { .. }
                | CheckOutError::Cancelled => unusable(error),
            })?;
            Ok(Connection { open: Some((connection, source)) })
        })
    }
}

/// Turns the loop until the pool's only request has its answer.
fn first_ready(
    source: &mut PoolSource,
    mut poll: Poll,
) -> io::Result<Result<PooledConnection, PoolError>> {
    let mut events = Events::with_capacity(4);
    loop {
        if let Some((_, answer)) = source.next_ready() {
            return Ok(answer);
        }
        match poll.poll(&mut events, source.next_timeout()) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            Ok(()) | Err(_) => {}
        }
        for event in &events {
            source.handle_event(event);
        }
        source.turn();
    }
}

impl Connection {
    /// Opens one connection; see [`Connector::open`].
    ///
    /// # Errors
    ///
    /// Those of [`Connector::new`] and [`Connector::open`].
    pub fn open(uri: &ConnectionString, address: &ServerAddress) -> Result<Self, ConnectionError> {
        Connector::new(uri)?.open(address)
    }

    /// Sends a command with `documents` in a section of that name, and waits for its reply.
    ///
    /// # Errors
    ///
    /// The connection failed. A reply with `ok: 0` is none.
    pub fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        name: &str,
        documents: &[RawDocumentBuf],
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.send_message(database, command, Flags::NONE, (name, documents))?;
        self.receive().map(MessageBuf::into_body)
    }

    /// Sends a command with these flags, and does not wait for a reply.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub fn send_command(
        &mut self,
        database: &str,
        command: &RawDocument,
        flags: Flags,
    ) -> Result<(), ConnectionError> {
        self.send_message(database, command, flags, ("", &[]))
    }

    fn send_message(
        &mut self,
        database: &str,
        command: &RawDocument,
        flags: Flags,
        (name, documents): (&str, &[RawDocumentBuf]),
    ) -> Result<(), ConnectionError> {
        let (ids, limit) = (Ids::request(self.next_request_id()), self.message_limit());
        let mut message = Vec::new();
        let mut written = || -> Result<(), WireError> {
            let mut writer = MessageWriter::command(&mut message, ids, flags, command, database)?;
            if !documents.is_empty() {
                writer.sequence(name, documents)?;
            }
            writer.finish(limit).map(drop)
        };
        written()
            .map_err(|error| ConnectionError::protocol(Stage::Operation, &error.to_string()))?;
        self.send(&message)
    }
}

impl Deref for Connection {
    type Target = cenote_mio::Connection;

    fn deref(&self) -> &Self::Target {
        let (connection, _) = self.open.as_ref().expect("it is open until it is dropped");
        connection
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Self::Target {
        let (connection, _) = self.open.as_mut().expect("it is open until it is dropped");
        connection
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        quietly(|| drop(self.open.take()));
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Runs it without log messages: the pool has no other thread.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    with_default(NoSubscriber::new(), run)
}

fn failed(error: io::Error) -> ConnectionError {
    ConnectionError::network(Stage::Tcp, error)
}

fn unusable(reason: impl fmt::Display) -> ConnectionError {
    ConnectionError::configuration(Stage::Tcp, &reason.to_string())
}
