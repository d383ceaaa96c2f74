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
        by_default();
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
        by_default();
        if let Some(provider) = self.provider {
            builder = builder.crypto_provider(provider);
        }
        match self.config {
            Some(config) => builder.tls_config(config),
            None => builder,
        }
    }
}

/// With the feature `aws-lc` every test runs with aws-lc-rs.
fn by_default() {
    #[cfg(feature = "aws-lc")]
    // The first call counts.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
}
