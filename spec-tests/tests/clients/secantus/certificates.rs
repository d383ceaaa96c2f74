//! A throw-away authority and what it signs, as files.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use tempfile::TempDir;

pub(crate) struct Certificates(TempDir);

impl Certificates {
    /// A server's certificate for `host`, and one for a client.
    pub(crate) fn new(host: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut authority = CertificateParams::default();
        authority.distinguished_name = named("authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("an authority");
        fs::write(folder.path().join("ca.pem"), authority.pem()).expect("a file");

        let mut server = CertificateParams::new([host.to_owned()]).expect("a host");
        server.distinguished_name = named("server");
        server.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        let (certificate, key) = sign(&server, &authority);
        fs::write(folder.path().join("server.pem"), certificate.pem()).expect("a file");
        fs::write(folder.path().join("server.key"), key.serialize_pem()).expect("a file");

        let mut client = CertificateParams::default();
        client.distinguished_name = named("client");
        client.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let (certificate, key) = sign(&client, &authority);
        let both = certificate.pem() + &key.serialize_pem();
        fs::write(folder.path().join("client.pem"), both).expect("a file");
        Self(folder)
    }

    /// The subject of the client's certificate, as RFC 2253 writes it.
    pub(crate) const CLIENT: &str = "CN=client,O=Cenote";

    pub(crate) fn ca_file(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    pub(crate) fn server_file(&self) -> PathBuf {
        self.0.path().join("server.pem")
    }

    pub(crate) fn server_key_file(&self) -> PathBuf {
        self.0.path().join("server.key")
    }

    /// `tls`, and `tlsCAFile` with the authority to trust.
    pub(crate) fn trusted(&self) -> String {
        format!("tls=true&tlsCAFile={}", escaped(&self.ca_file()))
    }

    /// As [`trusted`](Self::trusted), with the client's own certificate.
    pub(crate) fn with_client(&self) -> String {
        let file = escaped(&self.0.path().join("client.pem"));
        format!("{}&tlsCertificateKeyFile={file}", self.trusted())
    }
}

fn escaped(path: &Path) -> String {
    path.to_str().expect("a temporary folder in UTF-8").replace('/', "%2F")
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Cenote");
    name.push(DnType::CommonName, common_name);
    name
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn sign(
    params: &CertificateParams,
    authority: &CertifiedIssuer<'static, KeyPair>,
) -> (Certificate, KeyPair) {
    let key = key();
    (params.signed_by(&key, authority).expect("a certificate"), key)
}
