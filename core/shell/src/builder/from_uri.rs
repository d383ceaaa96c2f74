use std::sync::Arc;

use cenote_core::connect::{SaslMechanism, ServerApi};
use cenote_core::error::ConnectionError;
use cenote_core::uri::ConnectionString;
#[cfg(feature = "tls")]
use rustls::{ClientConfig, crypto::CryptoProvider};

use crate::aws::AwsCredentialProvider;
use crate::oidc::TokenCallback;

/// A connector that makes connections as a connection string says.
pub trait FromUri: Sized {
    /// Reads no files, which a [check](crate::connection::Connector::check) does.
    ///
    /// # Errors
    ///
    /// What could never work.
    fn from_uri(uri: &ConnectionString) -> Result<Self, ConnectionError>;

    /// With what the TXT record of the seed list has added to the connection string. All that was chosen stays.
    #[must_use]
    fn resolved(self, uri: &ConnectionString) -> Self;

    /// Declares the version of the server's API.
    #[must_use]
    fn with_server_api(self, api: ServerApi) -> Self;

    /// Authenticates by a mechanism of the application's own.
    #[must_use]
    fn with_sasl_mechanism(self, mechanism: Arc<dyn SaslMechanism>) -> Self;

    /// Takes access tokens for MONGODB-OIDC from `callback`.
    #[must_use]
    fn with_token_callback(self, callback: Arc<TokenCallback>) -> Self;

    /// Takes keys for MONGODB-AWS from `provider`.
    #[must_use]
    fn with_aws_credential_provider(self, provider: Arc<AwsCredentialProvider>) -> Self;

    /// Does the cryptography of TLS with `provider`.
    #[cfg(feature = "tls")]
    #[must_use]
    fn with_crypto_provider(self, provider: Arc<CryptoProvider>) -> Self;

    /// Connects with TLS as `config` says, and not as the connection string does.
    #[cfg(feature = "tls")]
    #[must_use]
    fn with_tls_config(self, config: Arc<ClientConfig>) -> Self;
}
