//! TLS on the streams of this shell.

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::TlsOptions;
use cenote_shell::tls;
use tokio_rustls::TlsConnector;

use super::limit::Limit;
use super::stream::Stream;

/// [As a connection string asks for it](tls::config).
pub(super) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// # Errors
    ///
    /// Those of [`tls::config`].
    pub(super) fn new(options: &TlsOptions) -> Result<Self, ConnectionError> {
        Ok(Self { connector: TlsConnector::from(Arc::new(tls::config(options)?)) })
    }

    /// Shakes hands.
    pub(super) async fn connect(
        &self,
        stream: Stream,
        address: &ServerAddress,
        limit: Limit,
    ) -> Result<Stream, ConnectionError> {
        let socket = match stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(_) | Stream::Foreign(_) => return Ok(stream),
        };
        let name = tls::server_name(address)?;
        match limit.hold(self.connector.connect(name, socket)).await {
            Ok(Ok(stream)) => Ok(Stream::Tls(Box::new(stream))),
            Ok(Err(error)) => Err(tls::handshake_failed(error)),
            Err(after) => Err(ConnectionError::timeout(Stage::TlsIo, after)),
        }
    }
}
