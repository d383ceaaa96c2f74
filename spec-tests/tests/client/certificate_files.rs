//! Certificates and keys in files: what is read, and what is said of the rest.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_endpoint::{Endpoint, Identity, ListenOptions, Settings, TlsOptions};
use cenote_shell::connection::operation::OperationOptions;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::tempdir;

use crate::shells::{ClientSetup, Shell, on_all_runtimes};

on_all_runtimes!(
    what_is_wrong_with_a_file_is_said_without_its_bytes,
    a_malformed_authority_is_refused,
    what_can_be_read_is_read,
    files_that_change_are_read_again,
    a_certificate_of_version_1_will_do_where_any_does,
);

/// A certificate and its key.
fn pem() -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a host");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

fn uri(endpoint: &Endpoint, option: &str, file: &Path) -> String {
    let file = file.to_str().expect("UTF-8").replace('/', "%2F");
    let limits = "serverSelectionTimeoutMS=5000&connectTimeoutMS=4000";
    format!("mongodb://{}/?tls=true&{limits}&{option}={file}", endpoint.address())
}

/// All texts of an error.
fn texts(error: &dyn Error) -> String {
    let mut texts = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(texts, " {error} {error:?} {error:#?}");
        source = error.source();
    }
    texts
}

/// Eight bytes of it, as they are or as numbers.
fn shows(texts: &str, secret: &str) -> bool {
    secret.as_bytes().windows(8).any(|piece| {
        let plain = String::from_utf8_lossy(piece);
        let numbers: Vec<_> = piece.iter().map(ToString::to_string).collect();
        texts.contains(&*plain) || texts.contains(&numbers.join(", "))
    })
}

fn what_is_wrong_with_a_file_is_said_without_its_bytes(shell: Shell) {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("a port");
    let folder = tempdir().expect("a folder");
    let (certificate, key) = pem();
    let whole = format!("{certificate}{key}");
    let secret: String = key.lines().filter(|line| !line.starts_with('-')).collect();
    let in_key = |from: &str, to: &str| format!("{certificate}{}", key.replacen(from, to, 1));
    let one_line = "the file is one line: were its line breaks replaced by `\\n` or blanks?";
    let encrypted =
        "its key is encrypted, which is not supported: `openssl pkey` writes a plain one";
    let damaged = [
        (whole.replace('\n', "\\n"), one_line),
        (whole.replace('\n', " "), one_line),
        (in_key("-----END PRIVATE KEY-----", ""), "a section has no end"),
        (in_key("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----"), "is damaged"),
        (in_key(&secret[8..16], "!!!!!!!!"), "is damaged: it is not base64"),
        (in_key(&secret[8..16], ""), "TLS cannot sign with its key"),
        (whole.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), encrypted),
        (certificate.clone(), "it holds no private key, which has to be in the same file"),
        (key.clone(), "it holds no certificate"),
        (format!("{}{key}", pem().0), "its key is not that of its first certificate"),
        (whole.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), "it holds a TRUSTED CERTIFICATE"),
    ];
    for (number, (text, reason)) in damaged.iter().enumerate() {
        let file = folder.path().join(format!("{number}.pem"));
        fs::write(&file, text).expect("a file");
        let uri = uri(&endpoint, "tlsCertificateKeyFile", &file);
        let error = shell.build_client(&uri, ClientSetup::default()).err().expect("it is damaged");
        let begin = format!("tlsCertificateKeyFile: {}: ", file.display());
        assert!(
            error.to_string().contains(&begin) && error.to_string().contains(reason),
            "{error}"
        );
        assert!(!shows(&texts(&error), &secret), "{reason}: {error:?}");
        // As a file of authorities it is no better, or holds nothing secret.
        let uri = uri.replace("tlsCertificateKeyFile", "tlsCAFile");
        if let Err(error) = shell.build_client(&uri, ClientSetup::default()) {
            assert!(!shows(&texts(&error), &secret), "{reason}: {error:?}");
        }
    }
}

/// A section that is whole, of what is no certificate.
fn a_malformed_authority_is_refused(shell: Shell) {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("a port");
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    let text = "-----BEGIN CERTIFICATE-----\nbm90IFguNTA5\n-----END CERTIFICATE-----\n";
    fs::write(&file, text).expect("a file");
    let uri = uri(&endpoint, "tlsCAFile", &file);
    let error = shell.build_client(&uri, ClientSetup::default()).err().expect("it is none");
    assert!(error.to_string().contains("a certificate in it is malformed"), "{error}");
}

fn can_ping(shell: Shell, uri: &str) -> bool {
    let client = shell.build_client(uri, ClientSetup::default()).expect("it is read");
    let is_served = client.command("admin", &rawdoc! { "ping": 1 }).is_ok();
    client.close();
    is_served
}

/// With a byte order mark and the line ends of Windows, and in DER.
fn what_can_be_read_is_read(shell: Shell) {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("a port");
    let authority = endpoint.certificates().expect("with TLS").ca_file();
    let pem = fs::read_to_string(authority).expect("a file");
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    let marked = format!("\u{feff}{}", pem.replace('\n', "\r\n"));
    let folder = tempdir().expect("a folder");
    for (name, bytes) in [("marked.pem", marked.as_bytes()), ("ca.der", &*der)] {
        let file = folder.path().join(name);
        fs::write(&file, bytes).expect("a file");
        assert!(can_ping(shell, &uri(&endpoint, "tlsCAFile", &file)), "{name}");
    }
}

fn files_that_change_are_read_again(shell: Shell) {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("a port");
    let authority = endpoint.certificates().expect("with TLS").ca_file();
    let authority = fs::read_to_string(authority).expect("a file");
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    fs::write(&file, pem().0).expect("a file");
    let uri = format!("{}&heartbeatFrequencyMS=500", uri(&endpoint, "tlsCAFile", &file));
    let client = shell.build_client(&uri, ClientSetup::default()).expect("it is read");
    let soon = OperationOptions::new().with_timeout(Duration::from_millis(300));
    assert!(client.command_with("admin", &rawdoc! { "ping": 1 }, soon).is_err());
    fs::write(&file, authority).expect("a file");
    let held = client.check_out(&Selector::Primary).expect("its authority is listed now");
    // What cannot be read changes nothing.
    fs::write(&file, "-----BEGIN CERTIFICATE-----").expect("a file");
    client.check_out(&Selector::Primary).expect("another connection");
    fs::remove_file(&file).expect("a file");
    drop(held);
    client.close();
}

/// The server has to have its key all the same.
// Reports rustls#1298, rustls#2364, webpki#29, sqlx#3091, mqttui#142, dbx#8741 (mended): a certificate of version 1 is refused
// where none is verified.
fn a_certificate_of_version_1_will_do_where_any_does(shell: Shell) {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("client.pem");
    fs::write(&file, format!("{VERSION_1}{KEY_OF_VERSION_1}")).expect("a file");
    let (_, other) = pem();
    for (key, is_right) in [(KEY_OF_VERSION_1, true), (&*other, false)] {
        let chain = vec![CertificateDer::from_pem_slice(VERSION_1.as_bytes()).expect("it is")];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        let identity = Some(Arc::new(Identity { chain, key }));
        for only_tls_1_2 in [false, true] {
            let tls = Some(TlsOptions { only_tls_1_2, ..TlsOptions::default() });
            let identity = identity.clone();
            let options = ListenOptions { identity, tls, ..ListenOptions::with_tls() };
            let endpoint = Endpoint::start(Settings::default(), options).expect("it starts");
            let listed = uri(&endpoint, "tlsCAFile", &file);
            let insecure = format!("{listed}&tlsInsecure=true");
            let soon = |uri: &str| uri.replace("SelectionTimeoutMS=5000", "SelectionTimeoutMS=300");
            assert_eq!(
                can_ping(shell, &if is_right { insecure } else { soon(&insecure) }),
                is_right
            );
            assert!(!can_ping(shell, &soon(&listed)), "it names no host");
        }
    }
    // As the client's own it is the server's to judge.
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("a port");
    let uri = uri(&endpoint, "tlsCertificateKeyFile", &file);
    shell.build_client(&uri, ClientSetup::default()).expect("a client").close();
}

/// What `openssl x509 -req` makes without extensions.
const VERSION_1: &str = "-----BEGIN CERTIFICATE-----
MIIBIjCByQIUT/a/7zJN2oLoWxOynhEBU+3qvsgwCgYIKoZIzj0EAwIwEzERMA8G
A1UEAwwIdmVyc2lvbjEwIBcNMjYxMTI4MTI1NDQ2WhgPMjEyNjExMDQxMjU0NDZa
MBMxETAPBgNVBAMMCHZlcnNpb24xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
0vf3dZfWPzQp2uwNR/Nh3WLd6QQddIvlfp8/3gxA51iDJj0XphdGFGKrN2HkYThT
wwAiVPBxjP4NXePykAEwejAKBggqhkjOPQQDAgNIADBFAiADj/6+w9p8iiJXZQcQ
khEoIhqoyEDn/H8Od4savp+oEAIhANdspRLAVKBUzTbI09V7/cxv1V4wDG8Y3w5t
ru0bA+DX
-----END CERTIFICATE-----
";
const KEY_OF_VERSION_1: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgpb3LG/Mk47bEiKjJ
7XPNHakcAcFq88PVQxhk3FIVOkuhRANCAATS9/d1l9Y/NCna7A1H82HdYt3pBB10
i+V+nz/eDEDnWIMmPRemF0YUYqs3YeRhOFPDACJU8HGM/g1d4/KQATB6
-----END PRIVATE KEY-----
";
