//! Connections to a MongoDB server, as a connection string describes them.

mod clerks;
mod dial;
mod embedded;
mod foreign;
mod handshake;
mod limit;
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
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ClientMetadata, DriverInfo, EstablishOptions};
use cenote_core::error::ConnectionError;
use cenote_core::uri::ConnectionString;
use cenote_shell::connection::{Settings, fault};

use self::limit::Limit;
use self::messages::Messages;
use self::resolve::Resolver;
use self::stream::Stream;
use self::tls::Tls;
use crate::connector::{Connector, HandshakeReporter, Target};
use crate::event_loop::Watched;
use crate::interrupt::Interrupter;

pub use self::foreign::OpenSocket;
pub(crate) use self::monitoring::{Greeting, Monitoring};
pub use self::operations::Connection;
pub use self::raw_stream::RawStream;
pub use self::resolve::Lookup;

/// Opens connections as a connection string says: TCP or a UNIX domain socket, through a SOCKS5
/// proxy or not, with TLS or without, hello, compression, authentication.
///
/// `connectTimeoutMS`, 10 s by default, is for all of that together. Besides, each command of the
/// handshake has `timeoutMS`, or else `socketTimeoutMS`, unless the deadline of the request for
/// which the connection is made is for all of them (CS-05, CS-06, CS-08).
///
/// A clone shares everything with the original.
#[derive(Clone)]
pub struct MongoConnector {
    settings: Arc<Settings>,
    resolver: Arc<Resolver>,
    tls: Option<Arc<Tls>>,
}

impl MongoConnector {
    /// Reads the files that the connection string names, and nothing else: no connection is made.
    ///
    /// # Errors
    ///
    /// A file of TLS that cannot be read, or that is not what it should be; an application's name
    /// that is too long.
    pub fn new(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        Self::with_settings(uri, Settings::new(uri)?)
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
        Self::with_settings(uri, Settings::with_client(uri, client))
    }

    fn with_settings(uri: &ConnectionString, settings: Settings) -> Result<Self, ConnectionError> {
        let tls = uri.tls.enabled().then(|| Tls::new(&uri.tls).map(Arc::new)).transpose()?;
        Ok(Self { settings: Arc::new(settings), resolver: Arc::default(), tls })
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
        self.settings.append_metadata(driver)
    }

    /// What hello says on a monitor's connection that is opened now.
    pub(crate) fn monitor_options(&self) -> Arc<EstablishOptions> {
        self.settings.monitor_options()
    }

    /// As far as TLS.
    async fn open(
        &self,
        address: &ServerAddress,
        limit: &Limit,
    ) -> Result<Watched<Stream>, ConnectionError> {
        let proxy = self.settings.proxy();
        let mut stream = dial::dial(address, &self.resolver, proxy, limit).await?;
        if let Some(tls) = &self.tls {
            tls.connect(&mut stream, address, limit).await?;
        }
        Ok(stream)
    }
}

impl Connector for MongoConnector {
    type Connection = Connection;

    async fn connect(
        &self,
        target: Target,
        progress: HandshakeReporter<Self>,
    ) -> Result<Connection, ConnectionError> {
        let limit = Limit::of(&target, &self.settings);
        let stream = self.open(&target.address, &limit).await?;
        let limit = limit.and_each_command(&target, &self.settings);
        handshake::establish(self, stream.map(Messages::new), &limit, &progress).await
    }

    /// Something is under way, unread, or broken (CO-19).
    fn fault(&self, connection: &Connection) -> Option<ConnectionError> {
        fault(connection.is_reusable())
    }

    /// By `shutdown` of its socket.
    fn interrupter(&self, connection: &Connection) -> Option<Interrupter> {
        Some(Box::new(connection.messages.stream().interrupter()))
    }
}

impl fmt::Debug for MongoConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoConnector").field("settings", &self.settings).finish_non_exhaustive()
    }
}
