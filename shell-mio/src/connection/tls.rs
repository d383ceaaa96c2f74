//! TLS on the streams of this shell.

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::TlsOptions;
use cenote_shell::tls;
use rustls::{ClientConfig, ClientConnection};

use super::limit::Limit;
use super::stream::Stream;
use crate::event_loop::Watched;

/// [As a connection string asks for it](tls::config).
pub(super) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// # Errors
    ///
    /// Those of [`tls::config`].
    pub(super) fn new(options: &TlsOptions) -> Result<Self, ConnectionError> {
        Ok(Self { config: Arc::new(tls::config(options)?) })
    }

    /// Shakes hands.
    pub(super) async fn connect(
        &self,
        stream: &mut Watched<Stream>,
        address: &ServerAddress,
        limit: &Limit,
    ) -> Result<(), ConnectionError> {
        let (config, name) = (Arc::clone(&self.config), tls::server_name(address)?);
        stream.start_tls(ClientConnection::new(config, name).map_err(tls::refused)?);
        match limit.hold(stream.ready(Stream::shake)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(tls::handshake_failed(error)),
            Err(after) => Err(ConnectionError::timeout(Stage::TlsIo, after)),
        }
    }
}
