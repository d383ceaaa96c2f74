//! TLS as the options of a connection string ask for it (feature `tls`), on whatever stream.

mod failure;
mod pem;
mod source;
mod unparsed;
mod verifier;

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::TlsOptions;
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore};

pub use self::failure::handshake_failed;
pub(crate) use self::failure::{decided, tls_error};
use self::pem::PemFile;
pub(crate) use self::source::TlsSource;
use self::verifier::{Trusted, Verifier};

/// How to connect with TLS 1.2 or 1.3. Certificates and names are verified unless the connection
/// string says otherwise. There is no OCSP, because rustls has none. A certificate of an authority
/// serves as the server's own only if `tlsCAFile` lists it: such is the self-signed one of
/// `openssl req -x509`. Reads certificates and keys from their files, which blocks.
///
/// # Errors
///
/// What cannot be read, or is not what it should be, by the name of its option.
pub fn config(
    options: &TlsOptions,
    provider: Arc<CryptoProvider>,
) -> Result<ClientConfig, ConnectionError> {
    let certificate = client_certificate(options, &provider)?;
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
    Ok(match certificate {
        Some(certificate) => builder.with_client_cert_resolver(certificate),
        None => builder.with_no_client_auth(),
    })
}

/// The cryptography of TLS where the application chooses none: the [default](CryptoProvider::get_default) of the process,
/// or else `ring` (feature `ring`).
///
/// # Errors
///
/// There is neither.
pub fn default_provider() -> Result<Arc<CryptoProvider>, ConnectionError> {
    let of_process = CryptoProvider::get_default().cloned();
    of_process.or_else(built_in).ok_or_else(|| {
        let reason = "there is no cryptography for TLS: give the builder a `crypto_provider` or a `tls_config`, install a \
                      default of the process with `CryptoProvider::install_default`, or enable the feature `ring`";
        ConnectionError::configuration(Stage::TlsIo, reason)
    })
}

#[cfg(feature = "ring")]
fn built_in() -> Option<Arc<CryptoProvider>> {
    Some(Arc::new(rustls::crypto::ring::default_provider()))
}

#[cfg(not(feature = "ring"))]
const fn built_in() -> Option<Arc<CryptoProvider>> {
    None
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
    if let Some(path) = ca_file {
        let file = PemFile::read("tlsCAFile", path)?;
        let listed = file.certificates()?;
        for certificate in &listed {
            let added = roots.add(certificate.clone());
            added.map_err(|_| file.unusable("a certificate in it is malformed"))?;
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
    provider: &CryptoProvider,
) -> Result<Option<Arc<dyn ResolvesClientCert>>, ConnectionError> {
    const OPTION: &str = "tlsCertificateKeyFile";
    let Some(path) = &options.certificate_key_file else { return Ok(None) };
    if options.certificate_key_file_password.is_some() {
        let reason = "tlsCertificateKeyFilePassword: encrypted keys are not supported, give a \
                      file with a plain one";
        return Err(ConnectionError::configuration(Stage::TlsCertificate, reason));
    }
    let file = PemFile::read(OPTION, path)?;
    let (chain, key) = (file.certificates()?, file.key()?);
    let key = provider.key_provider.load_private_key(key).map_err(|_| {
        file.unusable(
            "TLS cannot sign with its key: use RSA of 2048 to 4096 bits, ECDSA of P-256 or P-384, or Ed25519",
        )
    })?;
    // A certificate that is not parsed here, as those of X.509 version 1, is the server's to judge.
    let certified = CertifiedKey::new(chain, key);
    if certified.keys_match() == Err(InconsistentKeys::KeyMismatch.into()) {
        return Err(file.unusable("its key is not that of its first certificate"));
    }
    Ok(Some(Arc::new(SingleCertAndKey::from(certified))))
}

/// What TLS itself refuses before anything was sent.
pub fn refused(error: impl std::fmt::Display) -> ConnectionError {
    ConnectionError::configuration(Stage::TlsCertificate, &error.to_string())
}
