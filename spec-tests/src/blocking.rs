//! A blocking client of one connection: a pool of `cenote-tokio` that drives itself on the calling
//! thread, for tests and scenarios that need a second, plain client beside the one under test.
//!
//! It logs nothing, so that it can be used while the log messages of another client are checked.
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

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{CheckOutError, PoolOptions};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{Flags, Ids, MessageWriter, Progress, WireError};
use cenote_tokio::{Builder, MongoConnector, Pool, PooledConnection};
use tokio::runtime::{self, Runtime};
use tracing::subscriber::{NoSubscriber, with_default};

/// Opens connections as a connection string says; they share its files and SCRAM keys.
pub struct Connector {
    connector: MongoConnector,
    options: PoolOptions,
}

/// An established connection. Dropping it closes the socket.
pub struct Connection {
    /// `None` only while it is dropped.
    open: Option<(PooledConnection<MongoConnector>, Pool)>,
    runtime: Runtime,
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
        Ok(Self { connector: MongoConnector::new(uri)?, options })
    }

    /// Opens a connection. Blocks for `connectTimeoutMS` at most.
    ///
    /// # Errors
    ///
    /// The connection could not be established.
    pub fn open(&self, address: &ServerAddress) -> Result<Connection, ConnectionError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ConnectionError::network(Stage::Tcp, error))?;
        let builder =
            Builder::new(address.clone(), self.connector.clone()).options(self.options.clone());
        let opened = quietly(&runtime, async {
            let pool = builder.build().map_err(unusable)?;
            pool.ready();
            let connection = pool.check_out().await.map_err(|error| match error.error() {
                CheckOutError::EstablishFailed { cause } => cause.clone(),
                CheckOutError::PoolClosed
                | CheckOutError::PoolCleared { .. }
                | CheckOutError::WaitQueueTimeout { .. }
                | CheckOutError::Cancelled => unusable(error),
            })?;
            Ok((connection, pool))
        });
        opened.map(|open| Connection { open: Some(open), runtime })
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

    /// What the server said of itself and of this connection.
    #[must_use]
    pub fn description(&self) -> &ConnectionDescription {
        let (connection, _) = self.open.as_ref().expect("it is open until it is dropped");
        connection.description()
    }

    /// Whether a pool could hand out the connection again: no exchange is under way, no byte unread.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        let (connection, _) = self.open.as_ref().expect("it is open until it is dropped");
        connection.is_reusable()
    }

    /// Sends a command and waits for its reply, for `socketTimeoutMS` at most.
    ///
    /// # Errors
    ///
    /// The connection failed, or the reply is `ok: 0`.
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        let (connection, runtime) = self.parts();
        quietly(runtime, connection.command(database, command))
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
        self.receive().map(|(reply, _)| reply)
    }

    /// Sends a command with these flags, and does not wait for a reply.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub fn send(
        &mut self,
        database: &str,
        command: &RawDocument,
        flags: Flags,
    ) -> Result<(), ConnectionError> {
        self.send_message(database, command, flags, ("", &[]))
    }

    /// Waits for the next reply to what was [sent](Self::send), and says whether another follows.
    ///
    /// # Errors
    ///
    /// The connection failed. A reply with `ok: 0` is none.
    pub fn receive(&mut self) -> Result<(RawDocumentBuf, Progress), ConnectionError> {
        let (connection, runtime) = self.parts();
        let reply = quietly(runtime, connection.receive())?;
        let more_to_come = reply.flags().more_to_come;
        let progress = if more_to_come { Progress::MoreToCome } else { Progress::Complete };
        Ok((reply.into_body(), progress))
    }

    fn send_message(
        &mut self,
        database: &str,
        command: &RawDocument,
        flags: Flags,
        (name, documents): (&str, &[RawDocumentBuf]),
    ) -> Result<(), ConnectionError> {
        let (connection, runtime) = self.parts();
        let ids = Ids::request(connection.next_request_id());
        let mut message = Vec::new();
        let mut written = || -> Result<(), WireError> {
            let mut writer = MessageWriter::command(&mut message, ids, flags, command, database)?;
            if !documents.is_empty() {
                writer.sequence(name, documents)?;
            }
            writer.finish(connection.message_limit()).map(drop)
        };
        written()
            .map_err(|error| ConnectionError::protocol(Stage::Operation, &error.to_string()))?;
        quietly(runtime, connection.send(&message))
    }

    fn parts(&mut self) -> (&mut cenote_tokio::Connection, &Runtime) {
        let (connection, _) = self.open.as_mut().expect("it is open until it is dropped");
        (connection, &self.runtime)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        with_default(NoSubscriber::new(), || drop(self.open.take()));
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

/// Runs until it is done, without log messages. All tasks of the pool run on this thread.
fn quietly<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    with_default(NoSubscriber::new(), || runtime.block_on(work))
}

fn unusable(reason: impl fmt::Display) -> ConnectionError {
    ConnectionError::configuration(Stage::Tcp, &reason.to_string())
}
