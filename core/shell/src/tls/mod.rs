//! TLS as the options of a connection string ask for it (feature `tls`), on whatever stream.

mod failure;
mod verifier;

use std::path::Path;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::TlsOptions;
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

pub use self::failure::handshake_failed;
pub(crate) use self::failure::{decided, tls_error};
use self::verifier::{Trusted, Verifier};

/// How to connect with TLS 1.2 or 1.3. Certificates and names are verified unless the connection
/// string says otherwise. There is no OCSP, because rustls has none. A certificate of an authority
/// serves as the server's own only if `tlsCAFile` lists it: such is the self-signed one of
/// `openssl req -x509`. Reads certificates and keys from their files, which blocks.
///
/// # Errors
///
/// What cannot be read, or is not what it should be, by the name of its option.
pub fn config(options: &TlsOptions) -> Result<ClientConfig, ConnectionError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(refused)?;
    let insecure = options.insecure == Some(true);
    let any_certificate = insecure || options.allow_invalid_certificates == Some(true);
    let any_name = insecure || options.allow_invalid_hostnames == Some(true);
    let verifier = if any_certificate {
        Verifier::AnyCertificate(provider)
    } else {
        let (roots, listed) = trusted(options.ca_file.as_deref())?;
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let authorities = authorities.build().map_err(refused)?;
        Verifier::Trusted(Trusted { authorities, listed, any_name })
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(match client_certificate(options)? {
        Some(certificate) => builder.with_client_cert_resolver(certificate),
        None => builder.with_no_client_auth(),
    })
}

/// The name to be verified: the server's, also through a proxy.
///
/// # Errors
///
/// An address that is neither a host name nor an IP address.
// TL-06, TL-10
pub fn server_name(address: &ServerAddress) -> Result<ServerName<'static>, ConnectionError> {
    ServerName::try_from(address.host().to_owned()).map_err(|_| {
        let reason = "TLS needs a host name or an IP address to verify";
        ConnectionError::configuration(Stage::TlsCertificate, reason)
    })
}

/// The authorities of `tlsCAFile` and the certificates in it, or the authorities that the system
/// trusts.
fn trusted(
    ca_file: Option<&str>,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), ConnectionError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca_file {
        let listed = certificates("tlsCAFile", file)?;
        for certificate in &listed {
            let added = roots.add(certificate.clone());
            added.map_err(|error| unusable("tlsCAFile", file, &error))?;
        }
        return Ok((roots, listed));
    }
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = "the system has no trusted certificates: name some with tlsCAFile";
        return Err(ConnectionError::configuration(Stage::TlsCertificate, reason));
    }
    Ok((roots, Vec::new()))
}

/// The client's certificate.
// TL-11
fn client_certificate(
    options: &TlsOptions,
) -> Result<Option<Arc<dyn ResolvesClientCert>>, ConnectionError> {
    const OPTION: &str = "tlsCertificateKeyFile";
    let Some(file) = &options.certificate_key_file else { return Ok(None) };
    if options.certificate_key_file_password.is_some() {
        let reason = "tlsCertificateKeyFilePassword: encrypted keys are not supported, give a \
                      file with a plain one";
        return Err(ConnectionError::configuration(Stage::TlsCertificate, reason));
    }
    let chain = certificates(OPTION, file)?;
    let key = PrivateKeyDer::from_pem_file(file).map_err(|error| unusable(OPTION, file, &error))?;
    let provider: &CryptoProvider = &ring::default_provider();
    let certified = CertifiedKey::from_der(chain, key, provider)
        .map_err(|error| unusable(OPTION, file, &error))?;
    Ok(Some(Arc::new(SingleCertAndKey::from(certified))))
}

fn certificates(option: &str, file: &str) -> Result<Vec<CertificateDer<'static>>, ConnectionError> {
    let certificates = CertificateDer::pem_file_iter(Path::new(file))
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(option, file, &error))?;
    if certificates.is_empty() {
        return Err(unusable(option, file, &"it holds no certificate"));
    }
    Ok(certificates)
}

fn unusable(option: &str, file: &str, error: &dyn std::fmt::Display) -> ConnectionError {
    let reason = format!("{option}: {file}: {error}");
    ConnectionError::configuration(Stage::TlsCertificate, &reason)
}

/// What TLS itself refuses before anything was sent.
pub fn refused(error: impl std::fmt::Display) -> ConnectionError {
    ConnectionError::configuration(Stage::TlsCertificate, &error.to_string())
}
