//! A server whose certificate is self-signed and that of an authority, as `openssl req -x509` makes
//! it: whether `tlsCAFile` lists it decides.

use std::fs;
use std::sync::Arc;

use cenote_core::error::Stage;
use cenote_endpoint::{Endpoint, Identity, ListenOptions, Settings};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair,
    date_time_ymd,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tempfile::TempDir;

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{ping, pool, refusal, with};

on_all_runtimes!(
    listed_it_is_accepted,
    not_listed_it_is_refused,
    listed_and_expired_it_is_refused,
    listed_and_not_valid_yet_it_is_refused,
    listed_and_of_another_host_it_is_refused,
    with_another_of_its_name_and_key_listed_it_is_refused,
);

fn params() -> CertificateParams {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a host");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "server");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn signed(params: &CertificateParams, key: &KeyPair) -> Certificate {
    params.self_signed(key).expect("a certificate")
}

/// A server that shows the first certificate, and a file that lists the second one. The last is the
/// connection string with both.
fn server(shown: &Certificate, key: &KeyPair, listed: &Certificate) -> (Endpoint, TempDir, String) {
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let identity = Arc::new(Identity { chain: vec![shown.der().clone()], key });
    let options = ListenOptions { identity: Some(identity), ..ListenOptions::with_tls() };
    let endpoint = Endpoint::start(Settings::default(), options).expect("it starts");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    fs::write(&file, listed.pem()).expect("a file");
    let file = file.to_str().expect("UTF-8").replace('/', "%2F");
    let uri = format!("mongodb://{}/?tls=true&tlsCAFile={file}", endpoint.address());
    (endpoint, folder, uri)
}

/// Why such a server is refused although its certificate is listed, and what happens if names do not
/// matter.
fn refused_although_listed(shell: Shell, params: &CertificateParams) -> (String, bool) {
    let key = key();
    let certificate = signed(params, &key);
    let (_endpoint, _folder, uri) = server(&certificate, &key, &certificate);
    let any_name = pool(shell, &with(&uri, "tlsAllowInvalidHostnames=true")).0;
    (refused(shell, &uri), any_name.check_out().is_ok())
}

fn refused(shell: Shell, uri: &str) -> String {
    let error = refusal(&pool(shell, uri).0);
    assert_eq!(error.stage(), Stage::TlsCertificate, "{error}");
    error.reason().to_owned()
}

fn listed_it_is_accepted(shell: Shell) {
    let key = key();
    let certificate = signed(&params(), &key);
    let (_endpoint, _folder, uri) = server(&certificate, &key, &certificate);
    assert!(ping(&pool(shell, &uri).0));
}

const NOT_LISTED: &str = "the server's certificate is that of an authority itself (CA:TRUE), and \
                          tlsCAFile does not list exactly that one";

fn not_listed_it_is_refused(shell: Shell) {
    let key = key();
    let certificate = signed(&params(), &key);
    let (_endpoint, _folder, uri) = server(&certificate, &key, &signed(&params(), &self::key()));
    assert_eq!(refused(shell, &uri), NOT_LISTED);
}

fn with_another_of_its_name_and_key_listed_it_is_refused(shell: Shell) {
    let key = key();
    let certificate = signed(&params(), &key);
    let mut params = params();
    params.not_after = date_time_ymd(3000, 1, 1);
    let (_endpoint, _folder, uri) = server(&certificate, &key, &signed(&params, &key));
    assert_eq!(refused(shell, &uri), NOT_LISTED);
}

fn listed_and_expired_it_is_refused(shell: Shell) {
    let mut params = params();
    params.not_after = date_time_ymd(2001, 1, 1);
    let (reason, any_name) = refused_although_listed(shell, &params);
    assert!(reason.starts_with("the server's certificate has expired, "), "{reason}");
    assert!(!any_name);
}

fn listed_and_not_valid_yet_it_is_refused(shell: Shell) {
    let mut params = params();
    params.not_before = date_time_ymd(4000, 1, 1);
    let (reason, any_name) = refused_although_listed(shell, &params);
    assert!(reason.starts_with("the server's certificate is not valid yet, "), "{reason}");
    assert!(!any_name);
}

fn listed_and_of_another_host_it_is_refused(shell: Shell) {
    let mut params = params();
    params.subject_alt_names.clear();
    let (reason, any_name) = refused_although_listed(shell, &params);
    assert_eq!(
        reason,
        "the server's certificate is not valid for name `127.0.0.1`, and names no host \
         (subjectAltName)"
    );
    assert!(any_name);
}
