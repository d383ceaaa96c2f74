//! The server's side of TLS.

use std::io;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS12;
use rustls::{ALL_VERSIONS, RootCertStore, ServerConfig};
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
    /// Whether it speaks TLS 1.2 alone.
    pub only_tls_1_2: bool,
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
        let of_process = CryptoProvider::get_default().cloned();
        let provider = of_process.unwrap_or_else(|| Arc::new(ring::default_provider()));
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
            // Whether it is parsed, and fits the key, is the client's to find out.
            let key = provider.key_provider.load_private_key(identity.key)?;
            let certified = SingleCertAndKey::from(CertifiedKey::new(identity.chain, key));
            let versions: &[_] = if options.only_tls_1_2 { &[&TLS12] } else { ALL_VERSIONS };
            let config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(versions)?
                .with_client_cert_verifier(verifier)
                .with_cert_resolver(Arc::new(certified));
            Ok(config)
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
