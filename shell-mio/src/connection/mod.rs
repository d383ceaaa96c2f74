//! Connections to a MongoDB server, as a connection string describes them.

mod clerks;
mod dial;
mod embedded;
mod foreign;
mod handshake;
mod messages;
mod monitoring;
mod operations;
mod patience;
mod proxy;
mod raw_stream;
#[cfg(test)]
mod reluctant;
mod resolve;
mod stream;
mod tls;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote_core::connect::{ClientMetadata, DriverInfo, EstablishOptions, ScramCache};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::{self, ConnectionString, ProxyOptions};
use cenote_core::wire::{Compressor, CompressorId, ZlibLevel};

use self::dial::Limit;
use self::messages::Messages;
use self::resolve::Resolver;
use self::tls::Tls;
use crate::connector::{Connector, Progress, Target};
use crate::interrupt::Interrupter;
use crate::introduction::Introduction;
use crate::surroundings::environment;

pub use self::foreign::OpenSocket;
pub(crate) use self::monitoring::{Greeting, Monitoring};
pub use self::operations::Connection;
pub use self::raw_stream::RawStream;
pub use self::resolve::Lookup;

/// `connectTimeoutMS` where the connection string has none (OP-18).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens connections as a connection string says: TCP or a UNIX domain socket, through a SOCKS5
/// proxy or not, with TLS or without, hello, compression, authentication.
///
/// `connectTimeoutMS`, 10 s by default, is for all of that together. Besides, each command of the
/// handshake has `timeoutMS`, or else `socketTimeoutMS`, unless the deadline of the request for
/// which the connection is made is for all of them (CS-05, CS-06, CS-08).
///
/// A clone shares everything with the original.
#[derive(Clone)]
pub struct Mongo {
    introduction: Arc<Introduction>,
    connect_timeout: Duration,
    /// `timeoutMS`, which replaces `socketTimeoutMS` where it is set (CS-07).
    operation_timeout: Option<Duration>,
    socket_timeout: Option<Duration>,
    zlib_level: ZlibLevel,
    resolver: Arc<Resolver>,
    proxy: Option<ProxyOptions>,
    tls: Option<Arc<Tls>>,
    scram: Arc<Mutex<ScramCache>>,
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
        let tls = uri.tls.enabled().then(|| Tls::new(&uri.tls).map(Arc::new)).transpose()?;
        Ok(Self {
            introduction: Arc::new(Introduction::new(uri, client)),
            connect_timeout: uri.timeouts.connect.unwrap_or(CONNECT_TIMEOUT),
            operation_timeout: uri.timeouts.operation,
            socket_timeout: uri.timeouts.socket.filter(|timeout| !timeout.is_zero()),
            zlib_level: ZlibLevel::new(uri.compression.zlib_compression_level.unwrap_or(-1))
                .unwrap_or(ZlibLevel::DEFAULT),
            resolver: Arc::default(),
            proxy: uri.proxy.clone(),
            tls,
            scram: Arc::default(),
        })
    }

    /// Asks `resolver` for the addresses of names, instead of the operating system, which is asked on
    /// a thread that lives for as long as that takes. It is called by whoever turns the event loop,
    /// and must not block; it may answer later. An [embedded](crate::PoolSource) pool, which has no
    /// threads, resolves no name without it.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Fn(Lookup) + Send + Sync + 'static) -> Self {
        self.resolver = Arc::new(Resolver::Own(Box::new(resolver)));
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

    /// Tells servers of a driver or library that uses this client, too, on connections that are
    /// opened from now on; none is opened or closed on that account, and no hello sent (HS-29, HS-30).
    /// Says whether it was not told of before.
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.introduction.append(driver)
    }

    /// For each command of the handshake; zero is without limit, as ever.
    fn command_timeout(&self, target: &Target) -> Option<Duration> {
        match target.deadline {
            Some(_) => None,
            None => self.operation_timeout.or(self.socket_timeout),
        }
    }

    /// What hello has settled, as the wire format has it.
    fn compressor(&self, agreed: uri::Compressor) -> Option<Compressor> {
        let id = CompressorId::from_name(agreed.name())?;
        Compressor::new(id, self.zlib_level).ok()
    }

    /// What hello says on a monitor's connection that is opened now.
    pub(crate) fn monitor_options(&self) -> Arc<EstablishOptions> {
        self.introduction.monitor_options()
    }

    fn scram(&self) -> MutexGuard<'_, ScramCache> {
        self.scram.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connector for Mongo {
    type Connection = Connection;

    async fn connect(
        &self,
        target: Target,
        progress: Progress<Self>,
    ) -> Result<Connection, ConnectionError> {
        let limit = Limit::of(&target, self.connect_timeout)
            .and_each_command(self.command_timeout(&target));
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
        f.debug_struct("Mongo")
            .field("options", &self.introduction.options())
            .finish_non_exhaustive()
    }
}
