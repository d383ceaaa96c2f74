//! TLS with this server, which has Python's.

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage, label};

use crate::secantus::certificates::Certificates;
use crate::secantus::open;
use crate::secantus::server::{ClientCertificate, Options, Server, Tls};

fn start(certificates: &Certificates, client: ClientCertificate) -> Server {
    Server::start(&Options { tls: Some(Tls { certificates, client }), ..Options::default() })
}

// ER-32: what TLS decides is never overload, and will be decided so again.
fn assert_refused_by_tls(error: &ConnectionError, stage: Stage) {
    assert_eq!((error.stage(), error.kind()), (stage, &Kind::Protocol), "{error}");
    assert_eq!(error.labels(RetryWrites::Enabled).count(), 0);
    assert!(!error.is_retryable());
}

#[test]
fn a_server_that_the_authority_vouches_for() {
    let certificates = Certificates::new("127.0.0.1");
    let server = start(&certificates, ClientCertificate::NotAsked);
    let mut connection = open(&server.uri(&certificates.trusted())).unwrap();
    connection.command("admin", &rawdoc! { "ping": 1 }).unwrap();
}

#[test]
fn a_server_that_another_authority_vouches_for() {
    let certificates = Certificates::new("127.0.0.1");
    let server = start(&certificates, ClientCertificate::NotAsked);
    let error = open(&server.uri(&Certificates::new("127.0.0.1").trusted())).unwrap_err();
    assert_refused_by_tls(&error, Stage::TlsCertificate);
}

#[test]
fn a_certificate_for_another_host() {
    let certificates = Certificates::new("elsewhere.example");
    let server = start(&certificates, ClientCertificate::NotAsked);
    let error = open(&server.uri(&certificates.trusted())).unwrap_err();
    assert_refused_by_tls(&error, Stage::TlsCertificate);
}

// TL-11.
#[test]
fn a_client_with_its_own_certificate() {
    let certificates = Certificates::new("127.0.0.1");
    let server = start(&certificates, ClientCertificate::Required);
    let mut connection = open(&server.uri(&certificates.with_client())).unwrap();
    connection.command("admin", &rawdoc! { "ping": 1 }).unwrap();
}

/// With TLS 1.3 the server says no when the client believes to be done.
#[test]
fn a_client_without_the_certificate_that_it_must_have() {
    let certificates = Certificates::new("127.0.0.1");
    let server = start(&certificates, ClientCertificate::Required);
    let error = open(&server.uri(&certificates.trusted())).unwrap_err();
    assert_refused_by_tls(&error, Stage::TlsIo);
    assert!(error.advice().unwrap().contains("tlsCertificateKeyFile"), "{error}");
}

// ER-33: to this server the first bytes of TLS are the length of a large message, for whose rest it
// waits.
#[test]
fn a_server_that_speaks_no_tls() {
    let certificates = Certificates::new("127.0.0.1");
    let query = format!("{}&connectTimeoutMS=250", certificates.trusted());
    let error = open(&Server::plain().uri(&query)).unwrap_err();
    assert_eq!(error.stage(), Stage::TlsIo);
    assert!(error.is_timeout(), "{error}");
    assert!(error.labels(RetryWrites::Disabled).any(|it| it == label::SYSTEM_OVERLOADED_ERROR));
}

#[test]
fn a_client_that_speaks_no_tls() {
    let certificates = Certificates::new("127.0.0.1");
    let server = start(&certificates, ClientCertificate::NotAsked);
    let error = open(&server.uri("")).unwrap_err();
    assert_eq!(error.stage(), Stage::Hello);
}
