//! Verifying servers as the connection string asks for it: `tlsCAFile`, `tlsInsecure`,
//! `tlsAllowInvalidCertificates`, `tlsAllowInvalidHostnames`.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::failure::is_authority;
use super::unparsed;

/// The server has to have the key that belongs to the certificate that it shows.
#[derive(Debug)]
pub(super) enum Verifier {
    /// Any certificate, and any issuer.
    AnyCertificate(Arc<CryptoProvider>),
    /// One that a trusted authority issued, or that is listed itself.
    Trusted(Trusted),
}

/// What is trusted, and whether the name matters.
#[derive(Debug)]
pub(super) struct Trusted {
    pub(super) authorities: Arc<WebPkiServerVerifier>,
    /// The certificates of `tlsCAFile`.
    pub(super) listed: Vec<CertificateDer<'static>>,
    pub(super) any_name: bool,
}

impl Trusted {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verify_at = |time| {
            let verifier = &self.authorities;
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, time)
        };
        match verify_at(now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            // Authorities do not serve as servers, unless exactly this certificate is listed, as
            // OpenSSL has it.
            Err(Error::InvalidCertificate(error))
                if is_authority(&error) && self.listed.contains(end_entity) =>
            {
                // The dates are verified before, as the end of time shows.
                if !matches!(verify_at(END_OF_TIME), Err(error) if has_expired(&error)) {
                    return Err(error.into());
                }
                if !self.any_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }
}

/// After the end of every certificate.
const END_OF_TIME: UnixTime = UnixTime::since_unix_epoch(Duration::MAX);

fn has_expired(error: &Error) -> bool {
    use CertificateError::{Expired, ExpiredContext};

    matches!(error, Error::InvalidCertificate(Expired | ExpiredContext { .. }))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self {
            Self::AnyCertificate(_) => Ok(ServerCertVerified::assertion()),
            Self::Trusted(trusted) => {
                trusted.verify(end_entity, intermediates, server_name, ocsp_response, now)
            }
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
                verify_tls12_signature(message, certificate, signature, algorithms).or_else(
                    |error| unparsed::verify(message, certificate, signature, algorithms, error),
                )
            }
            Self::Trusted(trusted) => {
                trusted.authorities.verify_tls12_signature(message, certificate, signature)
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
                verify_tls13_signature(message, certificate, signature, algorithms).or_else(
                    |error| {
                        let key = unparsed::public_key(certificate).ok_or(error)?;
                        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
                    },
                )
            }
            Self::Trusted(trusted) => {
                trusted.authorities.verify_tls13_signature(message, certificate, signature)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Self::AnyCertificate(provider) => {
                provider.signature_verification_algorithms.supported_schemes()
            }
            Self::Trusted(trusted) => trusted.authorities.supported_verify_schemes(),
        }
    }
}
