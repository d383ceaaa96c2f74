//! Verifying less than TLS should, as the connection string asks for it: `tlsInsecure`,
//! `tlsAllowInvalidCertificates`, `tlsAllowInvalidHostnames`.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Accepts what a careful client would refuse. The server still has to have the key that belongs to
/// what it shows.
#[derive(Debug)]
pub(super) enum Lenient {
    /// Any certificate, and any issuer.
    AnyCertificate(Arc<CryptoProvider>),
    /// A good certificate, but of another host.
    AnyName(Arc<WebPkiServerVerifier>),
}

impl Lenient {
    pub(super) fn any_certificate(provider: Arc<CryptoProvider>) -> Self {
        Self::AnyCertificate(provider)
    }

    pub(super) fn any_name(verifier: Arc<WebPkiServerVerifier>) -> Self {
        Self::AnyName(verifier)
    }
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Self::AnyName(verifier) = self else { return Ok(ServerCertVerified::assertion()) };
        let verdict =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::AnyCertificate(provider) => {
                let algorithms = &provider.signature_verification_algorithms;
                verify_tls12_signature(message, certificate, signature, algorithms)
            }
            Self::AnyName(verifier) => {
                verifier.verify_tls12_signature(message, certificate, signature)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::AnyCertificate(provider) => {
                let algorithms = &provider.signature_verification_algorithms;
                verify_tls13_signature(message, certificate, signature, algorithms)
            }
            Self::AnyName(verifier) => {
                verifier.verify_tls13_signature(message, certificate, signature)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Self::AnyCertificate(provider) => {
                provider.signature_verification_algorithms.supported_schemes()
            }
            Self::AnyName(verifier) => verifier.supported_verify_schemes(),
        }
    }
}
