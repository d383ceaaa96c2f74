//! What goes wrong while a connection is established: at which stage, and with which labels.

use std::time::Duration;

use cenote::endpoint::{
    Ending, Endpoint, Fault, ListenOptions, ScramFault, Script, ServerCertificate, Settings,
    TlsFault, TlsOptions, User,
};
use cenote_core::error::{ConnectionError, Kind, Stage};

use crate::world::{at, closed, ping, plain, pool, refusal, set, tls, with};

/// The stage, whether it is a timeout, and whether it may be overload.
fn verdict(error: &ConnectionError) -> (Stage, bool, bool) {
    (error.stage(), error.is_timeout(), error.is_overload())
}

#[tokio::test]
async fn nobody_there() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    set(&endpoint, Script::new(Fault::Refuse));
    assert_eq!(verdict(&refusal(&pool).await), (Stage::Tcp, false, true));
    assert_eq!(closed(&events), ["error"]);
    endpoint.with(cenote::endpoint::Server::clear_faults);
    assert!(ping(&pool).await, "the pool is as it was");
}

#[tokio::test]
async fn a_name_that_does_not_exist() {
    let (pool, _) = pool("mongodb://nobody.invalid/");
    assert_eq!(verdict(&refusal(&pool).await), (Stage::Dns, false, false));
}

#[tokio::test]
async fn a_server_that_stalls_stage_by_stage() {
    let settings =
        Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
    let endpoint = tls(settings);
    // Long enough to get to the stage that stalls, on any machine.
    let uri = with(&endpoint.uri(), "connectTimeoutMS=2000");
    let (pool, _) = pool(&uri);
    assert!(ping(&pool).await);
    let refused = |command: &'static str| {
        set(&endpoint, at(Fault::Stall, command));
        let (pool, _) = crate::world::pool(&uri);
        async move { verdict(&refusal(&pool).await) }
    };
    assert_eq!(refused("saslContinue").await, (Stage::Authentication, true, false));
    assert_eq!(refused("isMaster").await, (Stage::Hello, true, true));
    endpoint.with(cenote::endpoint::Server::clear_faults);
    endpoint.set_tls_fault(Some(TlsFault::Stall));
    let (stalled, _) = crate::world::pool(&uri);
    assert_eq!(verdict(&refusal(&stalled).await), (Stage::TlsIo, true, true));
}

#[tokio::test]
async fn handshakes_of_tls_that_end_early() {
    let endpoint = tls(Settings::default());
    for bytes in [0, 1, 100] {
        endpoint.set_tls_fault(Some(TlsFault::CloseAfter { bytes }));
        let error = refusal(&pool(&endpoint.uri()).0).await;
        assert_eq!(verdict(&error), (Stage::TlsIo, false, true), "{error}");
    }
    endpoint.set_tls_fault(Some(TlsFault::Garbage));
    let error = refusal(&pool(&endpoint.uri()).0).await;
    assert_eq!(verdict(&error), (Stage::TlsCertificate, false, false), "{error}");
}

#[tokio::test]
async fn certificates_that_are_not_to_be_trusted() {
    for certificate in [
        ServerCertificate::Expired,
        ServerCertificate::NotYetValid,
        ServerCertificate::WrongHost,
        ServerCertificate::SelfSigned,
        ServerCertificate::ForeignAuthority,
    ] {
        let tls = TlsOptions { certificate, ..TlsOptions::default() };
        let options = ListenOptions { tls: Some(tls), ..ListenOptions::default() };
        let endpoint = Endpoint::start(Settings::default(), options).unwrap();
        let error = refusal(&pool(&endpoint.uri()).0).await;
        assert_eq!(verdict(&error), (Stage::TlsCertificate, false, false), "{certificate:?}");

        // Whoever asks for it by name is let through, and by the right name only.
        let by_certificate = with(&endpoint.uri(), "tlsAllowInvalidCertificates=true");
        assert!(ping(&pool(&by_certificate).0).await, "{certificate:?}");
        assert!(ping(&pool(&with(&endpoint.uri(), "tlsInsecure=true")).0).await);
        let by_name = pool(&with(&endpoint.uri(), "tlsAllowInvalidHostnames=true")).0;
        if certificate == ServerCertificate::WrongHost {
            assert!(ping(&by_name).await);
        } else {
            assert_eq!(refusal(&by_name).await.stage(), Stage::TlsCertificate);
        }
    }
}

#[tokio::test]
async fn replies_that_are_none() {
    let endpoint = plain();
    // A bomb takes its time to make, on a busy machine and without optimisation.
    let uri = with(&endpoint.uri(), "connectTimeoutMS=60000");
    for (fault, kind) in [
        (Fault::Close, Kind::Network),
        (Fault::Reset, Kind::Network),
        (Fault::HalfClose, Kind::Network),
        (Fault::Cut { bytes: 20, then: Ending::Close }, Kind::Network),
        (Fault::Garbage { bytes: 4096 }, Kind::Protocol),
        (Fault::Length { value: -1 }, Kind::Protocol),
        (Fault::Length { value: i32::MAX }, Kind::Protocol),
        (Fault::OpCode { value: 1 }, Kind::Protocol),
        (Fault::Checksum, Kind::Protocol),
        (Fault::ResponseTo { off_by: 1 }, Kind::Protocol),
        (Fault::CompressorId { value: 200 }, Kind::Protocol),
        (Fault::Bomb { bytes: 50_000_000, claimed: None }, Kind::Protocol),
        (Fault::Bomb { bytes: 50_000_000, claimed: Some(1000) }, Kind::Protocol),
        (Fault::DeepBson { levels: 100_000 }, Kind::Protocol),
    ] {
        let text = format!("{fault:?}");
        set(&endpoint, at(fault, "isMaster"));
        let error = refusal(&pool(&uri).0).await;
        assert_eq!((error.stage(), error.kind()), (Stage::Hello, &kind), "{text}: {error}");
        assert_eq!(error.is_overload(), kind == Kind::Network, "{text}");
    }
    set(&endpoint, at(Fault::Drip { bytes: 7, every: Duration::from_millis(1) }, "isMaster"));
    assert!(ping(&pool(&endpoint.uri()).0).await, "slow is not wrong");
}

#[tokio::test]
async fn logins_in_which_the_server_cheats() {
    let settings =
        Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
    let endpoint = tls(settings);
    for fault in [
        ScramFault::WrongSignature,
        ScramFault::Iterations(4095),
        ScramFault::TruncatedNonce,
        ScramFault::ForeignNonce,
        ScramFault::Endless,
        ScramFault::NoSignature,
        ScramFault::Error,
    ] {
        set(&endpoint, Script::new(Fault::Scram(fault)));
        let error = refusal(&pool(&endpoint.uri()).0).await;
        assert_eq!(verdict(&error), (Stage::Authentication, false, false), "{fault:?}: {error}");
        assert_eq!(error.kind(), &Kind::Protocol, "{fault:?}: {error}");
    }
}
