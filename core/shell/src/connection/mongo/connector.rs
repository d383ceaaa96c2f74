//! What a pool and its builder need of the connector.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::connect::{SaslMechanism, ServerApi};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ConnectionString;
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;

use super::drive::hold;
use super::limit::Limit;
use super::{MongoConnector, OpenedConnection, Transport};
use crate::aws::AwsCredentialProvider;
use crate::builder::FromUri;
use crate::connection::connector::{
    Connector, DrainReporter, HandshakeReporter, IdleProbe, Target,
};
use crate::connection::interrupt::Interrupter;
use crate::oidc::TokenCallback;
use crate::runtime::Network;

/// How long a new connection waits for the files of TLS to be looked at: a file system may hang.
const LOOK_AT_FILES: Duration = Duration::from_secs(1);

impl<R> MongoConnector<R> {
    /// Does the cryptography of TLS with `provider`, also in clones that are made of it from now on: see
    /// [`Builder::crypto_provider`](crate::builder::Builder::crypto_provider).
    #[must_use]
    pub fn with_crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.tls = Arc::new(self.tls.with_provider(provider));
        self
    }

    /// Connects with TLS as `config` says, also in clones that are made of it from now on: see
    /// [`Builder::tls_config`](crate::builder::Builder::tls_config).
    #[must_use]
    pub fn with_tls_config(mut self, config: Arc<ClientConfig>) -> Self {
        self.tls = Arc::new(self.tls.with_config(config));
        self
    }
}

impl<R: Network> MongoConnector<R> {
    /// The configuration of a connection that is opened now. Files are read on another thread.
    pub(super) async fn tls_config(
        &self,
        runtime: &R,
        limit: Limit,
    ) -> Result<Arc<ClientConfig>, ConnectionError> {
        if self.tls.wants_look() {
            let source = Arc::clone(&self.tls);
            let refreshed = pin!(runtime.unblock(move || source.refresh()));
            // Otherwise the files count as they were.
            let _ = hold(runtime, Limit::each(Some(LOOK_AT_FILES)), refreshed).await;
        }
        if let Some(known) = self.tls.known() {
            return Ok(known);
        }
        // Only of a connector that was never checked.
        let source = Arc::clone(&self.tls);
        let read = pin!(runtime.unblock(move || source.config()));
        hold(runtime, limit, read).await.map_err(|error| error.at(Stage::TlsIo))?
    }
}

impl<R: Network> Connector<R> for MongoConnector<R> {
    type Connection = R::Connection;
    type Error = ConnectionError;

    const LOOKS_AT_IDLE: bool = true;

    /// Whether the credential and the mechanism can be used, and TLS. Reads the files of TLS.
    // AU-07
    fn check(&self) -> Result<(), ConnectionError> {
        self.settings.check()?;
        self.tls.check()
    }

    /// It ends by `connectTimeoutMS`, which callbacks of the application do not count to.
    fn connect_timeout(&self) -> Option<Duration> {
        None
    }

    async fn connect(
        &self,
        target: Target<R>,
        reporter: HandshakeReporter,
    ) -> Result<R::Connection, ConnectionError> {
        let limit = self.settings.opening(R::now());
        let (transport, stages) = (Transport::new(), reporter.stages());
        let opening = self.open(&target.runtime, &target.address, transport, limit, stages);
        let messages = Box::pin(opening).await?;
        self.finish(messages, &target, limit, &reporter).await
    }

    /// An exchange that is not over, unread bytes, or a broken connection.
    fn fault(&self, connection: &R::Connection) -> Option<ConnectionError> {
        let reason = "checked in in the middle of an exchange";
        (!connection.is_reusable()).then(|| ConnectionError::protocol(Stage::Operation, reason))
    }

    fn idle_fault(&self, connection: &mut R::Connection) -> Option<ConnectionError> {
        connection.idle_fault()
    }

    fn idle_probe(&self, connection: &R::Connection) -> Option<IdleProbe> {
        connection.idle_probe()
    }

    fn has_received(&self, connection: &mut R::Connection) -> bool {
        connection.has_received()
    }

    fn pending_response(&self, connection: &R::Connection) -> Option<i32> {
        connection.pending_response()
    }

    async fn drain(
        &self,
        runtime: R,
        connection: R::Connection,
        reporter: DrainReporter,
    ) -> Result<R::Connection, ConnectionError> {
        let failed = |error| ConnectionError::network(Stage::Operation, error);
        let mut connection = connection.reopen(&runtime).map_err(failed)?;
        let drained = connection.messages.drain(|| reporter.bytes_read()).await;
        drained.map_err(|error| error.at(Stage::Operation))?;
        if !connection.is_reusable() {
            let reason = "more has come than the late reply";
            return Err(ConnectionError::protocol(Stage::Operation, reason));
        }
        R::Connection::from_opened(connection).map_err(failed)
    }

    fn interrupter(&self, connection: &R::Connection) -> Option<Interrupter> {
        connection.interrupter()
    }
}

impl<R> FromUri for MongoConnector<R> {
    fn from_uri(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        Self::new(uri)
    }

    fn resolved(self, uri: &ConnectionString) -> Self {
        self.settings.resolve(uri);
        self
    }

    fn with_server_api(self, api: ServerApi) -> Self {
        Self::with_server_api(self, api)
    }

    fn with_sasl_mechanism(self, mechanism: Arc<dyn SaslMechanism>) -> Self {
        Self::with_sasl_mechanism(self, mechanism)
    }

    fn with_token_callback(self, callback: Arc<TokenCallback>) -> Self {
        Self::with_token_callback(self, callback)
    }

    fn with_aws_credential_provider(self, provider: Arc<AwsCredentialProvider>) -> Self {
        Self::with_aws_credential_provider(self, provider)
    }

    fn with_crypto_provider(self, provider: Arc<CryptoProvider>) -> Self {
        Self::with_crypto_provider(self, provider)
    }

    fn with_tls_config(self, config: Arc<ClientConfig>) -> Self {
        Self::with_tls_config(self, config)
    }
}
