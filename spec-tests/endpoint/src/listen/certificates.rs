//! A throw-away certificate authority, and what it signs.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use thiserror::Error;

/// The names in a server certificate, unless it is for the wrong host.
const SERVER_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A throw-away certificate authority for one endpoint. Its files are removed when it is dropped.
///
/// Its folder holds `ca.pem`, which is what `tlsCAFile` wants, and `client.pem`, which is what
/// `tlsCertificateKeyFile` wants. Only the owner can read keys.
pub struct Certificates {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
    client: CertificateDer<'static>,
}

/// The certificate that a server presents, and what is wrong with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerCertificate {
    /// Valid for localhost, 127.0.0.1 and ::1.
    #[default]
    Good,
    /// Its validity has ended.
    Expired,
    /// Its validity has not begun.
    NotYetValid,
    /// It is for another host.
    WrongHost,
    /// It is self-signed.
    SelfSigned,
    /// Another authority of the same name signed it.
    ForeignAuthority,
}

/// A certificate, with the key that belongs to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those between it and the authority, if there are any.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
}

/// Certificates could not be made or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// Making or signing one failed.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// TLS does not take them.
    #[error("cannot use the certificates")]
    Use(#[from] rustls::Error),
    /// Its file could not be written.
    #[error("cannot write certificates to a temporary folder")]
    Write(#[from] io::Error),
}

impl Certificates {
    /// The subject of the client certificate as the server spells it, and hence the name of the
    /// user that logs in with it.
    pub const CLIENT_SUBJECT: &'static str = "CN=client,OU=Tests,O=Cenote";

    /// Makes the authority and the client's certificate, and writes their files.
    ///
    /// # Errors
    ///
    /// When the temporary folder cannot be written.
    pub fn new() -> Result<Self, CertificateError> {
        let issuer = authority()?;
        let (client, key) = sign(&client_params(), &issuer)?;
        let folder = tempfile::Builder::new().prefix("cenote-").tempdir()?;
        fs::write(folder.path().join("ca.pem"), issuer.pem())?;
        let both = format!("{}{}", client.pem(), key.serialize_pem());
        write_secret(&folder.path().join("client.pem"), &both)?;
        Ok(Self { folder, issuer, client: client.der().clone() })
    }

    /// `tlsCAFile`: the authority's certificate.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// `tlsCertificateKeyFile`: the client's certificate and its key, which has no password.
    #[must_use]
    pub fn client_file(&self) -> PathBuf {
        self.folder.path().join("client.pem")
    }

    /// The authority's certificate.
    #[must_use]
    pub fn authority(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// The subject of a certificate that a client showed and the authority signed.
    pub(super) fn subject_of(&self, certificate: &CertificateDer<'_>) -> Option<String> {
        (*certificate == self.client).then(|| Self::CLIENT_SUBJECT.to_owned())
    }

    /// Makes a server certificate of this kind.
    ///
    /// # Errors
    ///
    /// When it cannot be made or signed.
    pub fn server(&self, kind: ServerCertificate) -> Result<Identity, CertificateError> {
        let elsewhere = ["elsewhere.example"];
        let names =
            if kind == ServerCertificate::WrongHost { &elsewhere[..] } else { &SERVER_NAMES };
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = name(&[(DnType::CommonName, "endpoint")]);
        params.use_authority_key_identifier_extension = true;
        params.key_usages.push(KeyUsagePurpose::DigitalSignature);
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        if kind == ServerCertificate::Expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        if kind == ServerCertificate::NotYetValid {
            params.not_before = date_time_ymd(4000, 1, 1);
        }
        let (certificate, key) = match kind {
            ServerCertificate::SelfSigned => {
                let key = KeyPair::generate()?;
                (params.self_signed(&key)?, key)
            }
            ServerCertificate::ForeignAuthority => sign(&params, &authority()?)?,
            ServerCertificate::Good
            | ServerCertificate::Expired
            | ServerCertificate::NotYetValid
            | ServerCertificate::WrongHost => sign(&params, &self.issuer)?,
        };
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(Identity { chain: vec![certificate.der().clone()], key })
    }
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").field("folder", &self.folder.path()).finish_non_exhaustive()
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name =
        name(&[(DnType::OrganizationName, "Cenote"), (DnType::CommonName, "throw-away CA")]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// Its subject is [`Certificates::CLIENT_SUBJECT`], which RFC 2253 writes backwards.
fn client_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(&[
        (DnType::OrganizationName, "Cenote"),
        (DnType::OrganizationalUnitName, "Tests"),
        (DnType::CommonName, "client"),
    ]);
    params.use_authority_key_identifier_extension = true;
    params.key_usages.push(KeyUsagePurpose::DigitalSignature);
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    params
}

fn name(parts: &[(DnType, &str)]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in parts {
        name.push(kind.clone(), *value);
    }
    name
}

fn sign(
    params: &CertificateParams,
    issuer: &CertifiedIssuer<'static, KeyPair>,
) -> Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, issuer)?, key))
}

fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
