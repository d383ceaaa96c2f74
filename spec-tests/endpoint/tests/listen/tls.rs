//! TLS: trust, and handshakes that stall. Client certificates and other faults are tested through the shells.

use std::io::{self, ErrorKind, Read, Write};

use cenote_endpoint::{
    Certificates, Endpoint, ListenOptions, ServerCertificate, Settings, TlsFault, TlsOptions,
};
use rustls::{CertificateError, Error};

use super::client::{connect, is_ok, ping, tls};

fn showing(certificate: ServerCertificate) -> Endpoint {
    let tls = TlsOptions { certificate, ..TlsOptions::default() };
    let options = ListenOptions { tls: Some(tls), ..ListenOptions::default() };
    Endpoint::start(Settings::default(), options).expect("it starts")
}

/// What a client makes of a server's certificate.
fn refusal(endpoint: &Endpoint, authority: &Certificates) -> Error {
    let stream = connect(endpoint).expect("it listens");
    let error = tls(stream, authority, "localhost").expect_err("a bad certificate");
    *error.into_inner().expect("a cause").downcast::<Error>().expect("of rustls")
}

#[test]
fn a_good_certificate_is_trusted_under_each_of_its_names() {
    let endpoint = showing(ServerCertificate::Good);
    let authority = endpoint.certificates().unwrap();
    for name in ["localhost", "127.0.0.1", "::1"] {
        let mut stream = tls(connect(&endpoint).unwrap(), authority, name).unwrap();
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
    let mut stream = tls(connect(&other).unwrap(), authority, "localhost").unwrap();
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
fn a_client_without_tls_hears_nothing_of_the_server() {
    let endpoint = showing(ServerCertificate::Good);
    assert!(ping(&mut connect(&endpoint).unwrap()).is_err());
    assert_eq!(endpoint.with(|server, _| server.statistics()).accepted, 0);
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
