//! Connections to a MongoDB server, as a connection string describes them.

mod dial;
mod handshake;
mod messages;
mod patience;
mod proxy;
mod resolve;
mod stream;
mod tls;
mod verifier;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::{
    ClientMetadata, ConnectionDescription, Environment, EstablishOptions, ScramCache,
};
use cenote_core::error::{CommandError, ConnectionError, ReplyPart, Stage};
use cenote_core::uri::{self, ConnectionString, ProxyOptions};
use cenote_core::wire::{Compressor, CompressorId, ZlibLevel};

use self::dial::Limit;
use self::messages::{Failure, Messages};
use self::patience::Patience;
use self::resolve::Resolver;
use self::tls::Tls;
use crate::connector::{Connector, Progress, Target};
use crate::error::OperationError;
use crate::guard::PooledConnection;
use crate::interrupt::Interrupter;

pub use self::resolve::Lookup;

/// `connectTimeoutMS` where the connection string has none (OP-18).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens connections as a connection string says: TCP or a UNIX domain socket, through a SOCKS5
/// proxy or not, with TLS or without, hello, compression, authentication.
///
/// `connectTimeoutMS`, 10 s by default, is for all of that together.
pub struct Mongo {
    options: Arc<EstablishOptions>,
    connect_timeout: Duration,
    socket_timeout: Option<Duration>,
    zlib_level: ZlibLevel,
    resolver: Resolver,
    proxy: Option<ProxyOptions>,
    tls: Option<Tls>,
    scram: Mutex<ScramCache>,
}

impl Mongo {
    /// Reads the files that the connection string names, and nothing else: no connection is made.
    ///
    /// # Errors
    ///
    /// A file of TLS that cannot be read, or that is not what it should be; an application's name
    /// that is too long.
    pub fn new(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        let client = ClientMetadata::new(uri.app_name.as_deref(), &environment())
            .map_err(|error| ConnectionError::configuration(Stage::Hello, &error.to_string()))?;
        Self::with_client(uri, &client)
    }

    /// As [`new`](Self::new), for a driver that tells servers its own name (HS-21, HS-29).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_client(
        uri: &ConnectionString,
        client: &ClientMetadata,
    ) -> Result<Self, ConnectionError> {
        let tls = uri.tls.enabled().then(|| Tls::new(&uri.tls)).transpose()?;
        Ok(Self {
            options: Arc::new(EstablishOptions::new(uri, client)),
            connect_timeout: uri.timeouts.connect.unwrap_or(CONNECT_TIMEOUT),
            socket_timeout: uri.timeouts.socket.filter(|timeout| !timeout.is_zero()),
            zlib_level: ZlibLevel::new(uri.compression.zlib_compression_level.unwrap_or(-1))
                .unwrap_or(ZlibLevel::DEFAULT),
            resolver: Resolver::default(),
            proxy: uri.proxy.clone(),
            tls,
            scram: Mutex::default(),
        })
    }

    /// Asks `resolver` for the addresses of names, instead of the operating system, which is asked on
    /// a thread that lives for as long as that takes. It is called by whoever turns the event loop,
    /// and must not block; it may answer later. An [embedded](crate::PoolSource) pool, which has no
    /// threads, resolves no name without it.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Fn(Lookup) + Send + Sync + 'static) -> Self {
        self.resolver = Resolver::Own(Box::new(resolver));
        self
    }

    /// Takes these addresses, in this order, for every name: each with the port of the name.
    #[must_use]
    pub fn with_addresses(self, addresses: Vec<std::net::IpAddr>) -> Self {
        self.with_resolver(move |lookup| {
            let at = |address: &_| SocketAddr::new(*address, lookup.port());
            let addresses = addresses.iter().map(at).collect();
            lookup.answer(Ok(addresses));
        })
    }

    /// What hello has settled, as the wire format has it.
    fn compressor(&self, agreed: uri::Compressor) -> Option<Compressor> {
        let id = CompressorId::from_name(agreed.name())?;
        Compressor::new(id, self.zlib_level).ok()
    }

    fn scram(&self) -> MutexGuard<'_, ScramCache> {
        self.scram.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the process runs, as far as servers are told (HS-22, HS-24, HS-26).
fn environment() -> Environment {
    let name = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    };
    let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    Environment {
        os_type: Some(name.to_owned()),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        variables: Environment::VARIABLES.iter().filter_map(variable).collect(),
        has_dockerenv: Path::new("/.dockerenv").exists(),
        ..Environment::default()
    }
}

impl Connector for Mongo {
    type Connection = Connection;

    async fn connect(
        &self,
        target: Target,
        progress: Progress<Self>,
    ) -> Result<Connection, ConnectionError> {
        let limit = Limit::of(&target, self.connect_timeout);
        let Target { address, .. } = &target;
        let mut stream = dial::dial(address, &self.resolver, self.proxy.as_ref(), &limit).await?;
        if let Some(tls) = &self.tls {
            tls.connect(&mut stream, address, &limit).await?;
        }
        handshake::establish(self, stream.map(Messages::new), &limit, &progress).await
    }

    /// Something is under way, unread, or broken (CO-19).
    fn fault(&self, connection: &Connection) -> Option<ConnectionError> {
        let reason = "checked in in the middle of a command";
        let is_reusable = connection.messages.is_reusable();
        (!is_reusable).then(|| ConnectionError::protocol(Stage::Operation, reason))
    }

    /// By `shutdown` of its socket.
    fn interrupter(&self, connection: &Connection) -> Option<Interrupter> {
        Some(Box::new(connection.messages.stream().interrupter()))
    }
}

impl fmt::Debug for Mongo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mongo").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A connection to a server, authenticated and ready.
pub struct Connection {
    messages: Messages,
    description: Box<ConnectionDescription>,
    socket_timeout: Option<Duration>,
}

impl Connection {
    /// What the server said of itself and of this connection.
    #[must_use]
    pub fn description(&self) -> &ConnectionDescription {
        &self.description
    }

    /// Sends a command and blocks until its reply is there. Each wait for the socket ends after
    /// `socketTimeoutMS`, if there is such a limit.
    ///
    /// # Errors
    ///
    /// The connection failed, or the server's reply is `ok: 0`. A write concern error is a reply.
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.command_for(database, command, Patience::new(self.socket_timeout, None))
    }

    /// As [`command`](Self::command), and all of it ends at `deadline`.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn command_before(
        &mut self,
        database: &str,
        command: &RawDocument,
        deadline: Instant,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.command_for(database, command, Patience::new(self.socket_timeout, Some(deadline)))
    }

    /// Begins a command, and never blocks: for whoever has an event loop.
    /// [`advance`](Self::advance) goes on with it. No limit of time applies but the caller's own.
    ///
    /// # Errors
    ///
    /// What cannot be sent, or another command is under way.
    pub fn begin(&mut self, database: &str, command: &RawDocument) -> Result<(), ConnectionError> {
        let begun = self.messages.never_block().map_err(Failure::from);
        begun
            .and_then(|()| self.messages.begin(command, Some(database)))
            .map_err(|failure| failure.at(Stage::Operation))
    }

    /// Goes on with a command that was [begun](Self::begin), as far as it can without waiting:
    /// [`Poll::Pending`] until the reply is there. To be called after `begin`, and again whenever
    /// the socket is readable or writable; once too often does no harm.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, ConnectionError>> {
        loop {
            let messages = &mut self.messages;
            let step = if messages.is_writing() {
                messages.write().map(|()| None).map_err(Failure::from)
            } else {
                messages.read().map(Some)
            };
            match Failure::apart(step) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Poll::Pending,
                Ok(Ok(None)) => {}
                Ok(Ok(Some(reply))) => return Poll::Ready(judge(reply)),
                Ok(Err(failure)) => return Poll::Ready(Err(failure.at(Stage::Operation))),
            }
        }
    }

    fn command_for(
        &mut self,
        database: &str,
        command: &RawDocument,
        patience: Patience,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        let reply = self.messages.command(database, command, patience);
        judge(reply.map_err(|failure| failure.at(Stage::Operation))?)
    }
}

/// A refusal is an error.
fn judge(reply: RawDocumentBuf) -> Result<RawDocumentBuf, ConnectionError> {
    match CommandError::from_reply(&reply) {
        Some(error) if error.part == ReplyPart::Command => {
            Err(ConnectionError::command(Stage::Operation, error))
        }
        Some(_) | None => Ok(reply),
    }
}

/// For an event loop of one's own, on which a connection that is checked out is registered for as
/// long as it is needed there. On Windows there is none yet: see the crate's README.
#[cfg(unix)]
impl mio::event::Source for Connection {
    fn register(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        let descriptor = self.messages.stream().descriptor();
        mio::unix::SourceFd(&descriptor).register(registry, token, interests)
    }

    fn reregister(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        let descriptor = self.messages.stream().descriptor();
        mio::unix::SourceFd(&descriptor).reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &mio::Registry) -> io::Result<()> {
        let descriptor = self.messages.stream().descriptor();
        mio::unix::SourceFd(&descriptor).deregister(registry)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("description", &self.description).finish_non_exhaustive()
    }
}

impl PooledConnection<Mongo> {
    /// Sends a command and blocks until its reply is there, or the pool breaks the connection off.
    ///
    /// # Errors
    ///
    /// The connection failed, the server's reply is `ok: 0`, or the pool was cleared with an
    /// interrupt meanwhile. What leaves the connection unfit marks it.
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.run(|connection| connection.command(database, command))
    }

    /// As [`command`](Self::command), and all of it ends at `deadline`.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn command_before(
        &mut self,
        database: &str,
        command: &RawDocument,
        deadline: Instant,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.run(|connection| connection.command_before(database, command, deadline))
    }

    /// Begins a command, as [`Connection::begin`]; what leaves the connection unfit marks it.
    ///
    /// # Errors
    ///
    /// As [`Connection::begin`], or the connection was interrupted.
    pub fn begin(&mut self, database: &str, command: &RawDocument) -> Result<(), OperationError> {
        self.run(|connection| connection.begin(database, command))
    }

    /// Goes on with it, as [`Connection::advance`]; what leaves the connection unfit marks it. An
    /// interrupt makes the socket readable.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, OperationError>> {
        let reply = self.run(|connection| match connection.advance() {
            Poll::Pending => Ok(None),
            Poll::Ready(reply) => reply.map(Some),
        });
        reply.transpose().map_or(Poll::Pending, Poll::Ready)
    }
}
