//! Connections to a MongoDB server, as a connection string describes them.

#[cfg(test)]
mod cancellation_tests;
mod connector;
mod dial;
mod drive;
mod handshake;
mod judgement;
mod last_addresses;
mod limit;
mod messages;
mod metadata;
mod monitoring;
#[cfg(test)]
mod one_byte_socket;
mod opened;
mod operations;
mod poll_io;
mod pooled;
mod proxy;
mod raw_stream;
mod reauthentication;
mod settings;
#[cfg(test)]
mod test_runtime;
mod transport;

use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::connect::{
    ClientMetadata, DriverInfo, EstablishOptions, SaslMechanism, ServerApi,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::{ConnectionString, Credential};
use rustls::ClientConnection;

use self::handshake::{Handshake, handshake, with_aws_keys};
use self::last_addresses::LastAddresses;
use self::limit::Limit;
use self::messages::Messages;
use self::settings::Settings;
use super::connector::{HandshakeReporter, Target};
use crate::aws::AwsCredentialProvider;
use crate::connection::shortage::opening_failed;
use crate::connection::stages::Stages;
use crate::connection::transport_error::TransportError;
use crate::oidc::TokenCallback;
use crate::runtime::Network;
use crate::runtime::lookup::{Lookup, Resolver};
use crate::runtime::platform::request_ids;
use crate::tls::{self, TlsSource};

pub use self::judgement::{Reply, judge_within, require_unacknowledged};
pub use self::monitoring::{Greeting, Monitoring};
pub use self::opened::{ConnectionParts, OpenedConnection};
pub use self::operations::Connection;
pub use self::raw_stream::RawStream;
pub use self::reauthentication::{Reauthentication, not_authenticated, still_required};
pub use self::transport::{ByteLayer, Transport};

/// Opens connections as a connection string describes them: TCP or a Unix domain socket, optionally
/// through a SOCKS5 proxy, with or without TLS, then hello, compression and authentication.
///
/// `connectTimeoutMS`, 10 s by default, covers all of that together. In addition each command of the handshake has
/// `socketTimeoutMS`; where `timeoutMS` is set, that for connections that are made to reach `minPoolSize`. Neither is for
/// those of a check-out with a deadline: it ends the wait.
///
/// A host name is resolved for each connection. Where the resolver gives no answer within 1 s, or
/// half of the time that is left if that is less, the addresses of the last answer are used that led
/// to a connection, if there is one. An answer that the name does not exist is an error.
///
/// Clones share everything.
///
/// ```no_run
/// use cenote_core::uri::ConnectionString;
/// use cenote_tokio::{Builder, MongoConnector, Pool};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let uri = ConnectionString::parse("mongodb://db.example.com/?tls=true")?;
/// let connector = MongoConnector::new(&uri)?.with_addresses(vec!["192.0.2.7".parse()?]);
/// let pool: Pool = Builder::new(uri.hosts[0].clone(), connector).build()?;
/// # Ok(())
/// # }
/// ```
pub struct MongoConnector<R> {
    settings: Arc<Settings>,
    tls: Arc<TlsSource>,
    resolver: Option<Arc<Resolver>>,
    last_addresses: Arc<LastAddresses>,
    runtime: PhantomData<fn() -> R>,
}

impl<R> MongoConnector<R> {
    /// Reads no files and makes no connection. Whether its credential and the files of TLS can be used is
    /// [checked](crate::connection::Connector::check) when the pool is built.
    ///
    /// # Errors
    ///
    /// An application name that is too long.
    pub fn new(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        Ok(Self::with_settings(uri, Settings::new(uri)?))
    }

    /// As [`new`](Self::new), for a driver that sends its own name to servers.
    #[must_use]
    pub fn with_client(uri: &ConnectionString, client: &ClientMetadata) -> Self {
        Self::with_settings(uri, Settings::with_client(uri, client))
    }

    fn with_settings(uri: &ConnectionString, settings: Settings) -> Self {
        Self {
            settings: Arc::new(settings),
            tls: Arc::new(TlsSource::new(uri.tls.clone())),
            resolver: None,
            last_addresses: Arc::default(),
            runtime: PhantomData,
        }
    }

    /// Declares the version of the server's API, on hello and on every command of connections that are opened
    /// from now on, by this connector and its clones: see
    /// [`Builder::server_api`](crate::builder::Builder::server_api).
    #[must_use]
    pub fn with_server_api(self, api: ServerApi) -> Self {
        self.settings.declare(api);
        self
    }

    /// Authenticates connections that are opened from now on, by this connector and its clones, by a mechanism of the
    /// application's own: see [`Builder::sasl_mechanism`](crate::builder::Builder::sasl_mechanism).
    #[must_use]
    pub fn with_sasl_mechanism(self, mechanism: Arc<dyn SaslMechanism>) -> Self {
        self.settings.authenticate_by(mechanism);
        self
    }

    /// Takes the access tokens of connections that are opened from now on, by this connector and its clones, from
    /// `callback`: see [`Builder::oidc_callback`](crate::builder::Builder::oidc_callback).
    #[must_use]
    pub fn with_token_callback(self, callback: Arc<TokenCallback>) -> Self {
        self.settings.take_tokens_from(callback);
        self
    }

    /// Takes the keys of AWS for connections that are opened from now on, by this connector and its clones, from
    /// `provider`: see [`Builder::aws_credential_provider`](crate::builder::Builder::aws_credential_provider).
    #[must_use]
    pub fn with_aws_credential_provider(self, provider: Arc<AwsCredentialProvider>) -> Self {
        self.settings.take_aws_keys_from(provider);
        self
    }

    /// Resolves host names with `resolver` instead of the system's resolver. It is called on the
    /// runtime and must not block; it may answer later.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Fn(Lookup) + Send + Sync + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Uses these addresses, in this order, for every host name, each with the port of the server.
    #[must_use]
    pub fn with_addresses(self, addresses: Vec<IpAddr>) -> Self {
        self.with_resolver(move |lookup| {
            let port = lookup.port();
            let at = |address: &IpAddr| SocketAddr::new(*address, port);
            lookup.answer(Ok(addresses.iter().map(at).collect()));
        })
    }

    /// Adds a driver or library to the client metadata of connections that are opened from now on,
    /// and returns whether it is new. Opens and closes no connection and sends no hello.
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.settings.append_metadata(driver)
    }

    /// Authenticates connections that are opened from now on, by this connector and its clones, as `credential` says.
    /// Connections that are open stay as they are: [`Pool::replace_credential`](crate::pool::Pool::replace_credential)
    /// also retires those.
    ///
    /// # Errors
    ///
    /// A mechanism that is not supported, or a credential that it cannot use; nothing changes then.
    pub fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        self.settings.replace_credential(credential)
    }

    /// The options of hello for a monitor's connection that is opened now.
    #[must_use]
    pub fn monitor_options(&self) -> Arc<EstablishOptions> {
        self.settings.monitor_options()
    }
}

impl<R: Network> MongoConnector<R> {
    /// Does the handshake on a socket that is already connected, such as one through a tunnel: for
    /// a [`Connector`](crate::connection::Connector) that opens its own sockets, calls this, and forwards `fault`, `idle_fault`,
    /// `idle_probe`, `has_received`, `connect_timeout` and `interrupter` to this connector's.
    ///
    /// `connectTimeoutMS` from now on limits the whole, and each command has the time that [`MongoConnector`] describes.
    /// Options of the connection string about connecting (hosts, TLS, the
    /// proxy) are not used. Calls the reporter when hello is done in load-balanced mode.
    ///
    /// # Errors
    ///
    /// The socket failed or was too slow, the server refused, or the peer is not a MongoDB server.
    // ES-02, TL-09
    pub async fn establish(
        &self,
        socket: impl Into<R::OpenSocket> + Send,
        target: &Target<R>,
        reporter: &HandshakeReporter,
    ) -> Result<R::Connection, ConnectionError> {
        let limit = self.settings.opening(R::now());
        let stream = target.runtime.adopt(socket.into());
        let stream = stream.map_err(|error| opening_failed(Stage::Tcp, error))?;
        let (runtime, transport) = (target.runtime.clone(), Transport::new());
        let transport = transport.with_request_ids(request_ids()?);
        self.finish(Messages { runtime, stream, transport }, target, limit, reporter).await
    }

    /// Connects, up to TLS. To be boxed, as [`handshake()`] is: the task of a connection is many times as large with it,
    /// for as long as it runs.
    async fn open(
        &self,
        runtime: &R,
        address: &ServerAddress,
        transport: Transport,
        limit: Limit,
        stages: &Stages,
    ) -> Result<Messages<R>, ConnectionError> {
        let mut transport = transport.with_request_ids(request_ids()?);
        let stream = self.dial(runtime, address, limit, stages).await?;
        if self.tls.is_enabled() {
            stages.enter(Stage::TlsIo);
            let name = tls::server_name(address)?;
            let config = self.tls_config(runtime, limit).await?;
            let tls = ClientConnection::new(config, name).map_err(tls::refused)?;
            transport.start_tls(tls);
        }
        let mut messages = Messages { runtime: runtime.clone(), stream, transport };
        match messages.shake(limit).await {
            Ok(()) => Ok(messages),
            Err(TransportError::Io(error)) => Err(tls::handshake_failed(error)),
            Err(error) => Err(error.at(Stage::TlsIo)),
        }
    }

    /// Hello and authentication.
    async fn finish(
        &self,
        mut messages: Messages<R>,
        target: &Target<R>,
        limit: Limit,
        reporter: &HandshakeReporter,
    ) -> Result<R::Connection, ConnectionError> {
        let settings = &self.settings;
        let each_command = settings.each_command(target);
        let limit = limit.and_each_command(each_command);
        let (options, limit) =
            with_aws_keys(&messages.runtime, settings, settings.options(), limit).await?;
        let api = options.server_api;
        let opened_with = Arc::clone(&options);
        let address = &target.address;
        let login = handshake(&mut messages, settings, address, options, limit, Some(reporter));
        let Handshake { description, token, .. } = Box::pin(login).await?;
        let (limit, compressor) = settings.agreed(&description);
        messages.transport.agree(limit, compressor);
        messages.transport.declare(api);
        let login = Reauthentication::new(settings, opened_with, &description, token);
        R::Connection::from_opened(Connection::new(
            messages,
            description,
            settings.timeouts(),
            login,
        ))
        .map_err(|error| opening_failed(Stage::Authentication, error))
    }
}

impl<R> Clone for MongoConnector<R> {
    fn clone(&self) -> Self {
        let (settings, tls) = (Arc::clone(&self.settings), Arc::clone(&self.tls));
        let last_addresses = Arc::clone(&self.last_addresses);
        let resolver = self.resolver.clone();
        Self { settings, tls, resolver, last_addresses, runtime: PhantomData }
    }
}

impl<R> fmt::Debug for MongoConnector<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoConnector").field("settings", &self.settings).finish_non_exhaustive()
    }
}
