//! TLS around a socket, by rustls with ring.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::TlsOptions;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::channel::Trouble;
use super::socket::{Deadline, Socket};

/// What messages go through.
pub(super) enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    /// Shakes hands. The name that the certificate must be for is the server's, also behind a proxy
    /// (TL-10), and it is sent (TL-06).
    pub(super) fn encrypt(
        mut socket: Socket,
        host: &str,
        config: &Arc<ClientConfig>,
    ) -> Result<Self, ConnectionError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| unusable("the server's name cannot be in a certificate"))?;
        let mut tls = ClientConnection::new(Arc::clone(config), name)
            .map_err(|error| unusable(&error.to_string()))?;
        while tls.is_handshaking() {
            let progress = tls.complete_io(&mut socket);
            progress.map_err(|error| Trouble::from(error).at(Stage::TlsIo))?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(tls, socket))))
    }

    pub(super) fn set_deadline(&mut self, deadline: Option<Deadline>) {
        match self {
            Self::Plain(socket) => socket.set_deadline(deadline),
            Self::Tls(tls) => tls.sock.set_deadline(deadline),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// Reads the files that the options name; `None` when TLS is off.
pub(super) fn config(options: &TlsOptions) -> Result<Option<Arc<ClientConfig>>, ConnectionError> {
    if !options.enabled() {
        return Ok(None);
    }
    refuse_what_relaxes(options)?;
    let Some(ca_file) = &options.ca_file else {
        return Err(unusable("name the authority to trust with tlsCAFile"));
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca_file, "tlsCAFile")? {
        roots.add(certificate).map_err(|error| unusable(&format!("tlsCAFile: {error}")))?;
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error.to_string()))?
        .with_root_certificates(roots);
    let config = match &options.certificate_key_file {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let named = |error: String| unusable(&format!("tlsCertificateKeyFile: {error}"));
            let key = PrivateKeyDer::from_pem_file(Path::new(file))
                .map_err(|error| named(error.to_string()))?;
            let chain = certificates(file, "tlsCertificateKeyFile")?;
            builder.with_client_auth_cert(chain, key).map_err(|error| named(error.to_string()))?
        }
    };
    Ok(Some(Arc::new(config)))
}

/// A test that passes because nobody looked at the certificate shows nothing.
fn refuse_what_relaxes(options: &TlsOptions) -> Result<(), ConnectionError> {
    let relaxes = [
        ("tlsInsecure", options.insecure),
        ("tlsAllowInvalidCertificates", options.allow_invalid_certificates),
        ("tlsAllowInvalidHostnames", options.allow_invalid_hostnames),
    ];
    if let Some((name, _)) = relaxes.into_iter().find(|(_, value)| *value == Some(true)) {
        return Err(unusable(&format!("{name}: this client always checks certificates")));
    }
    if options.certificate_key_file_password.is_some() {
        return Err(unusable("tlsCertificateKeyFilePassword: encrypted keys are not supported"));
    }
    Ok(())
}

fn certificates(file: &str, option: &str) -> Result<Vec<CertificateDer<'static>>, ConnectionError> {
    let refused = |error: pem::Error| unusable(&format!("{option}: {error}"));
    let certificates = CertificateDer::pem_file_iter(Path::new(file)).map_err(refused)?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    if certificates.is_empty() {
        return Err(unusable(&format!("{option}: there is no certificate in it")));
    }
    Ok(certificates)
}

fn unusable(reason: &str) -> ConnectionError {
    ConnectionError::configuration(Stage::TlsCertificate, reason)
}
