//! The server's end of a connection, with TLS or without.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use cenote_endpoint::Certificates;
use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};

use super::script::{Certificate, Handshake};

/// A connection, as bytes.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref(),
        }
    }

    /// `None` when the client breaks off.
    pub(super) fn encrypt(
        &self,
        handshake: &Handshake,
        certificates: &Certificates,
    ) -> Result<Option<Self>, String> {
        let Self::Plain(socket) = self else { return Err("it is encrypted already".to_owned()) };
        let mut socket = socket.try_clone().map_err(|error| error.to_string())?;
        let config = config(handshake.certificate, certificates)?;
        let mut connection =
            ServerConnection::new(Arc::new(config)).map_err(|error| error.to_string())?;
        let shaken = connection.complete_io(&mut socket);
        if let Some(sni) = &handshake.sni {
            let asked = connection.server_name();
            if asked != Some(sni) {
                return Err(format!("expected to be asked for {sni}, was asked for {asked:?}"));
            }
        }
        if shaken.is_err() {
            return Ok(None);
        }
        Ok(Some(Self::Tls(Box::new(StreamOwned::new(connection, socket)))))
    }
}

fn config(certificate: Certificate, certificates: &Certificates) -> Result<ServerConfig, String> {
    let identity = certificates.server(certificate.kind()).map_err(|error| error.to_string())?;
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config.with_no_client_auth().with_single_cert(identity.chain, identity.key)
        })
        .map_err(|error| error.to_string())
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
