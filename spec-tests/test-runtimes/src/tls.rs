use std::sync::Arc;

use cenote_shell::builder::{Builder, BuiltPool, FromUri};
use cenote_shell::client::{BuiltClient, ClientBuilder};
use cenote_shell::rustls::ClientConfig;
use cenote_shell::rustls::crypto::CryptoProvider;

/// What an application chooses of TLS.
#[derive(Clone, Default)]
pub struct TlsSetup {
    /// Its cryptography.
    pub provider: Option<Arc<CryptoProvider>>,
    /// All of it.
    pub config: Option<Arc<ClientConfig>>,
}

impl TlsSetup {
    pub(crate) fn of_pool<P: BuiltPool<Connector: FromUri>>(
        self,
        mut builder: Builder<P>,
    ) -> Builder<P> {
        if let Some(provider) = self.provider {
            builder = builder.crypto_provider(provider);
        }
        match self.config {
            Some(config) => builder.tls_config(config),
            None => builder,
        }
    }

    pub(crate) fn of_client<C: BuiltClient>(
        self,
        mut builder: ClientBuilder<C>,
    ) -> ClientBuilder<C> {
        if let Some(provider) = self.provider {
            builder = builder.crypto_provider(provider);
        }
        match self.config {
            Some(config) => builder.tls_config(config),
            None => builder,
        }
    }
}
