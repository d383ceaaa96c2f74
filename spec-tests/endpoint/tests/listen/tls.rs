//! TLS: trust, client certificates, and faults of the handshake.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use bson::rawdoc;
use cenote_endpoint::{
    Certificates, Endpoint, ListenOptions, ServerCertificate, Settings, TlsFault, TlsOptions, User,
};
use rustls::{CertificateError, Error};

use super::client::{connect, is_ok, ping, run, tls};

fn showing(certificate: ServerCertificate) -> Endpoint {
    let tls = TlsOptions { certificate, ..TlsOptions::default() };
    let options = ListenOptions { tls: Some(tls), ..ListenOptions::default() };
    Endpoint::start(Settings::default(), options).expect("it starts")
}

/// What a client makes of a server's certificate.
fn refusal(endpoint: &Endpoint, authority: &Certificates) -> Error {
    let stream = connect(endpoint).expect("it listens");
    let error = tls(stream, authority, "localhost", false).expect_err("a bad certificate");
    *error.into_inner().expect("a cause").downcast::<Error>().expect("of rustls")
}

#[test]
fn a_good_certificate_is_trusted_under_each_of_its_names() {
    let endpoint = showing(ServerCertificate::Good);
    let authority = endpoint.certificates().unwrap();
    for name in ["localhost", "127.0.0.1", "::1"] {
        let mut stream = tls(connect(&endpoint).unwrap(), authority, name, false).unwrap();
        assert!(is_ok(&ping(&mut stream).unwrap()));
    }
}

#[test]
fn bad_certificates_are_bad_for_the_reason_that_they_name() {
    let reason = |kind| {
        let endpoint = showing(kind);
        let error = refusal(&endpoint, endpoint.certificates().unwrap());
        let Error::InvalidCertificate(reason) = error else { panic!("{error}") };
        reason
    };
    let expired = reason(ServerCertificate::Expired);
    assert!(matches!(expired, CertificateError::ExpiredContext { .. }), "{expired:?}");
    let early = reason(ServerCertificate::NotYetValid);
    assert!(matches!(early, CertificateError::NotValidYetContext { .. }), "{early:?}");
    let elsewhere = reason(ServerCertificate::WrongHost);
    assert!(matches!(elsewhere, CertificateError::NotValidForNameContext { .. }), "{elsewhere:?}");
    assert_eq!(reason(ServerCertificate::SelfSigned), CertificateError::UnknownIssuer);
    assert_eq!(reason(ServerCertificate::ForeignAuthority), CertificateError::BadSignature);
}

/// So that one connection string can name both.
#[test]
fn an_endpoint_beside_another_one_has_its_authority() {
    let one = showing(ServerCertificate::Good);
    let options = ListenOptions::with_tls();
    let other = one.start_beside(Settings::default(), options).expect("it starts");
    let authority = one.certificates().unwrap();
    let mut stream = tls(connect(&other).unwrap(), authority, "localhost", false).unwrap();
    assert!(is_ok(&ping(&mut stream).unwrap()));
    assert_ne!(one.address(), other.address());
    // The files are there as long as one of them is.
    drop(one);
    assert!(other.certificates().unwrap().ca_file().exists());
    let plain = other.start_beside(Settings::default(), ListenOptions::default());
    assert!(plain.expect("it starts").certificates().is_none());
}

#[test]
fn another_endpoints_authority_is_not_trusted() {
    let (here, elsewhere) = (showing(ServerCertificate::Good), showing(ServerCertificate::Good));
    let reason = refusal(&here, elsewhere.certificates().unwrap());
    assert!(matches!(reason, Error::InvalidCertificate(_)), "{reason}");
}

#[test]
fn a_client_logs_in_with_its_certificate() {
    let settings = Settings {
        auth: true,
        users: vec![User::x509(Certificates::CLIENT_SUBJECT)],
        ..Settings::default()
    };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).unwrap();
    let authority = endpoint.certificates().unwrap();
    let login = rawdoc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
    for shows_certificate in [true, false] {
        let stream = connect(&endpoint).unwrap();
        let mut stream = tls(stream, authority, "localhost", shows_certificate).unwrap();
        assert!(is_ok(&run(&mut stream, &rawdoc! { "hello": 1 }, "admin").unwrap()));
        let reply = run(&mut stream, &login, "$external").unwrap();
        assert_eq!(is_ok(&reply), shows_certificate, "{reply:?}");
    }
}

#[test]
fn a_client_without_certificate_is_turned_away_if_one_is_required() {
    let tls_options = TlsOptions { requires_client_certificate: true, ..TlsOptions::default() };
    let options = ListenOptions { tls: Some(tls_options), ..ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options).unwrap();
    let authority = endpoint.certificates().unwrap();
    // With TLS 1.3 the client hears of it with the first bytes after its own handshake.
    let answer = |shows_certificate| {
        tls(connect(&endpoint).unwrap(), authority, "localhost", shows_certificate)
            .and_then(|mut stream| ping(&mut stream))
    };
    assert!(is_ok(&answer(true).unwrap()));
    assert!(answer(false).is_err());
    assert!(endpoint.uri().contains("tlsCertificateKeyFile="));
}

#[test]
fn a_client_without_tls_hears_nothing_of_the_server() {
    let endpoint = showing(ServerCertificate::Good);
    assert!(ping(&mut connect(&endpoint).unwrap()).is_err());
    assert_eq!(endpoint.with(|server, _| server.statistics()).accepted, 0);
}

#[test]
fn a_handshake_that_drips_is_a_handshake() {
    let endpoint = showing(ServerCertificate::Good);
    endpoint.set_tls_fault(Some(TlsFault::Drip { every: Duration::ZERO }));
    let authority = endpoint.certificates().unwrap();
    let mut stream = tls(connect(&endpoint).unwrap(), authority, "localhost", false).unwrap();
    assert!(is_ok(&ping(&mut stream).unwrap()));
}

#[test]
fn a_handshake_can_end_early() {
    let endpoint = showing(ServerCertificate::Good);
    let authority = endpoint.certificates().unwrap();
    for bytes in [0, 1, 100] {
        endpoint.set_tls_fault(Some(TlsFault::CloseAfter { bytes }));
        let error = tls(connect(&endpoint).unwrap(), authority, "localhost", false).unwrap_err();
        let kinds = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error.kind()), "{error:?}");
    }
    endpoint.set_tls_fault(Some(TlsFault::Garbage));
    let error = tls(connect(&endpoint).unwrap(), authority, "localhost", false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error:?}");
    endpoint.set_tls_fault(Some(TlsFault::Alert { description: 80 }));
    let error = tls(connect(&endpoint).unwrap(), authority, "localhost", false).unwrap_err();
    assert_eq!(error.to_string(), "received fatal alert: InternalError");
    endpoint.set_tls_fault(None);
    assert!(tls(connect(&endpoint).unwrap(), authority, "localhost", false).is_ok());
}

#[test]
fn a_handshake_can_stall() -> io::Result<()> {
    let endpoint = showing(ServerCertificate::Good);
    endpoint.set_tls_fault(Some(TlsFault::Stall));
    let mut stream = connect(&endpoint)?;
    stream.write_all(&[22, 3, 1, 0, 0])?;
    stream.set_nonblocking(true)?;
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    // It goes on until it is cleared.
    stream.set_nonblocking(false)?;
    endpoint.stop();
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    Ok(())
}
