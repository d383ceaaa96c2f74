//! The server's side of TLS.

use std::io;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, crypto::ring};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificates::{CertificateError, Certificates, Identity, ServerCertificate};
use super::tls_fault::Faulty;

/// How the endpoint does TLS, 1.2 or 1.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// What the server shows.
    pub certificate: ServerCertificate,
    /// Whether a client without a certificate of the endpoint's authority is turned away; by
    /// default it is not.
    pub requires_client_certificate: bool,
}

pub(super) struct Tls {
    acceptor: TlsAcceptor,
    certificates: Arc<Certificates>,
}

impl Tls {
    pub(super) fn new(
        certificates: Arc<Certificates>,
        options: TlsOptions,
        identity: Option<&Identity>,
    ) -> Result<Self, CertificateError> {
        let identity = match identity {
            Some(Identity { chain, key }) => {
                Identity { chain: chain.clone(), key: key.clone_key() }
            }
            None => certificates.server(options.certificate)?,
        };
        let mut roots = RootCertStore::empty();
        let provider = Arc::new(ring::default_provider());
        let config = roots.add(certificates.authority()).and_then(|()| {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let verifier = if options.requires_client_certificate {
                verifier
            } else {
                verifier.allow_unauthenticated()
            };
            let verifier =
                verifier.build().map_err(|error| rustls::Error::General(error.to_string()))?;
            ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()?
                .with_client_cert_verifier(verifier)
                .with_single_cert(identity.chain, identity.key)
        })?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificates })
    }

    /// Shakes hands. With the stream comes the subject of the client's certificate, if it showed
    /// one.
    pub(super) async fn accept(
        &self,
        socket: Faulty,
    ) -> io::Result<(TlsStream<Faulty>, Option<String>)> {
        let mut stream = self.acceptor.accept(socket).await?;
        let (socket, session) = stream.get_mut();
        socket.recover();
        let shown = session.peer_certificates().and_then(|chain| chain.first());
        let subject = shown.and_then(|certificate| self.certificates.subject_of(certificate));
        Ok((stream, subject))
    }
}
