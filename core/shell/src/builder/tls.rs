//! TLS of the application's choice.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;

use super::{Builder, BuiltPool, FromUri};
use crate::client::{BuiltClient, ClientBuilder};

impl<P: BuiltPool<Connector: FromUri>> Builder<P> {
    /// Does the cryptography of TLS with `provider`, such as aws-lc-rs for FIPS or for post-quantum key exchange (feature
    /// `tls`). Certificates are verified, and shown, as the connection string says.
    ///
    /// By default it is the [default of the process](CryptoProvider::get_default) when the pool is built, or else `ring`
    /// (feature `ring`, on by default). Without any, [`build`](Self::build) fails, unless there is no TLS. A whole
    /// [configuration](Self::tls_config) has a provider already, which counts.
    ///
    /// Authentication is not done with it: SCRAM and MONGODB-AWS hash and sign with RustCrypto.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use cenote_shell::builder::{BuildError, Builder, BuiltPool, FromUri};
    /// use cenote_shell::rustls::crypto::CryptoProvider;
    ///
    /// # fn example<P: BuiltPool<Connector: FromUri>>(provider: CryptoProvider) -> Result<P, BuildError> {
    /// // Such as `rustls::crypto::aws_lc_rs::default_provider()`.
    /// let provider: Arc<CryptoProvider> = Arc::new(provider);
    /// Builder::<P>::from_uri("mongodb://db.example.com/?tls=true")?.crypto_provider(provider).build()
    /// # }
    /// ```
    #[must_use]
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.0.connector = self.0.connector.with_crypto_provider(provider);
        self
    }

    /// Connects with TLS as `config` says, with its provider, its verifier and its client certificates (feature `tls`).
    /// The connection string need not ask for TLS. The name to verify is the host of the server.
    ///
    /// [`build`](Self::build) fails if the connection string contradicts it: with `tls=false`, `tlsCAFile`,
    /// `tlsCertificateKeyFile`, `tlsCertificateKeyFilePassword`, `tlsInsecure`, `tlsAllowInvalidCertificates`,
    /// `tlsAllowInvalidHostnames`, `tlsDisableOCSPEndpointCheck` or `tlsDisableCertificateRevocationCheck`. A certificate that changes is for the configuration's own resolver to see.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use cenote_shell::builder::{BuildError, Builder, BuiltPool, FromUri};
    /// use cenote_shell::rustls::{ClientConfig, RootCertStore};
    ///
    /// # fn example<P: BuiltPool<Connector: FromUri>>(roots: RootCertStore) -> Result<P, BuildError> {
    /// let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    /// Builder::<P>::from_uri("mongodb://db.example.com")?.tls_config(Arc::new(config)).build()
    /// # }
    /// ```
    #[must_use]
    pub fn tls_config(mut self, config: Arc<ClientConfig>) -> Self {
        self.0.connector = self.0.connector.with_tls_config(config);
        self
    }
}

impl<C: BuiltClient> ClientBuilder<C> {
    /// Does the cryptography of TLS with `provider`, on connections of pools and monitors: [`Builder::crypto_provider`].
    #[must_use]
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.0.connector = self.0.connector.with_crypto_provider(provider);
        self
    }

    /// Connects pools and monitors with TLS as `config` says: [`Builder::tls_config`].
    #[must_use]
    pub fn tls_config(mut self, config: Arc<ClientConfig>) -> Self {
        self.0.connector = self.0.connector.with_tls_config(config);
        self
    }
}
