//! What fails with this server's TLS, which is Python's. What succeeds is in `authentication` and `proxy`.

use cenote_core::error::{Kind, RetryWrites, Stage, label};

use crate::secantus::certificates::Certificates;
use crate::secantus::open;
use crate::secantus::server::{ClientCertificate, Options, Server, Tls};

fn start(certificates: &Certificates, client: ClientCertificate) -> Server {
    Server::start(&Options { tls: Some(Tls { certificates, client }), ..Options::default() })
}

/// With TLS 1.3 the server says no when the client believes to be done.
// ER-32: what TLS decides is never overload, and will be decided so again.
#[test]
fn a_client_without_the_certificate_that_it_must_have() {
    let certificates = Certificates::new("127.0.0.1");
    let server = start(&certificates, ClientCertificate::Required);
    let error = open(&server.uri(&certificates.trusted())).unwrap_err();
    assert_eq!((error.stage(), error.kind()), (Stage::TlsIo, &Kind::Protocol), "{error}");
    assert_eq!(error.labels(RetryWrites::Enabled).count(), 0);
    assert!(!error.is_retryable());
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
