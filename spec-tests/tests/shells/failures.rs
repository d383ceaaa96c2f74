//! What goes wrong while a connection is established: at which stage, and with which labels.

use std::time::Duration;

use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};
use cenote_endpoint::{
    Ending, Endpoint, Fault, ListenOptions, ScramFault, Script, ServerCertificate, Settings,
    TlsFault, TlsOptions, User,
};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{at, closed, ping, plain, pool, refusal, set, tls, with};

on_all_runtimes!(
    no_server_listens,
    a_name_that_does_not_exist,
    a_server_that_stalls_stage_by_stage,
    handshakes_of_tls_that_end_early,
    handshakes_of_tls_that_the_server_refuses,
    a_client_certificate_that_the_server_misses,
    untrusted_certificates,
    invalid_replies,
    hostile_texts_in_each_field,
    servers_that_cheat_during_scram,
    wire_versions_that_do_not_overlap,
    a_command_of_the_handshake_has_its_own_time,
);

/// The stage, whether it is a timeout, and whether it may be overload.
fn verdict(error: &ConnectionError) -> (Stage, bool, bool) {
    (error.stage(), error.is_timeout(), error.is_overload())
}

// ER-30
fn no_server_listens(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri());
    set(&endpoint, Script::new(Fault::Refuse));
    assert_eq!(verdict(&refusal(&pool)), (Stage::Tcp, false, true));
    assert_eq!(closed(&events, 1), ["error"]);
    endpoint.with(cenote_endpoint::Server::clear_faults);
    assert!(ping(&pool), "the pool is as it was");
}

// ER-32
fn a_name_that_does_not_exist(shell: Shell) {
    let (pool, _) = pool(shell, "mongodb://absent.invalid/");
    assert_eq!(verdict(&refusal(&pool)), (Stage::Dns, false, false));
}

// OP-18, ER-31, CS-03, AU-04
fn a_server_that_stalls_stage_by_stage(shell: Shell) {
    let settings =
        Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
    let endpoint = tls(settings);
    // Long enough to reach the stage that stalls, on any machine.
    let uri = with(&endpoint.uri(), "connectTimeoutMS=2000");
    let (pool, _) = pool(shell, &uri);
    assert!(ping(&pool));
    let refused = |command: &'static str| {
        set(&endpoint, at(Fault::Stall, command));
        let (pool, _) = crate::world::pool(shell, &uri);
        verdict(&refusal(&pool))
    };
    assert_eq!(refused("saslContinue"), (Stage::Authentication, true, false));
    assert_eq!(refused("isMaster"), (Stage::Hello, true, true));
    endpoint.with(cenote_endpoint::Server::clear_faults);
    endpoint.set_tls_fault(Some(TlsFault::Stall));
    let (stalled, _) = crate::world::pool(shell, &uri);
    assert_eq!(verdict(&refusal(&stalled)), (Stage::TlsIo, true, true));
}

// ER-33, TL-08, PS-12: each has the one permit, and leaves it.
fn handshakes_of_tls_that_end_early(shell: Shell) {
    let endpoint = tls(Settings::default());
    let uri = with(&endpoint.uri(), "maxConnecting=1&waitQueueTimeoutMS=10000");
    let (pool, _) = pool(shell, &uri);
    for bytes in [0, 1, 100] {
        endpoint.set_tls_fault(Some(TlsFault::CloseAfter { bytes }));
        let error = refusal(&pool);
        assert_eq!(verdict(&error), (Stage::TlsIo, false, true), "{error}");
    }
}

/// Why no connection with TLS is established: not a network error, and not the server's certificate.
fn refused_by_tls(shell: Shell, uri: &str) -> ConnectionError {
    let error = refusal(&pool(shell, uri).0);
    assert_eq!(verdict(&error), (Stage::TlsIo, false, false), "{error}");
    assert_eq!(error.kind(), &Kind::Protocol, "{error}");
    assert_eq!(error.labels(RetryWrites::Enabled).count(), 0, "{error}");
    assert!(!error.is_retryable(), "{error}");
    error
}

// Reports llama_index#9191, twikoo#722: the error does not say that it was the server that ended TLS, with `internal_error`.
fn handshakes_of_tls_that_the_server_refuses(shell: Shell) {
    let endpoint = tls(Settings::default());
    let refused = |fault| {
        endpoint.set_tls_fault(Some(fault));
        let error = refused_by_tls(shell, &endpoint.uri());
        (error.reason().to_owned(), error.advice().expect("there is some"))
    };
    for (description, name, names_the_option) in [
        (80, "internal_error", false),
        (112, "unrecognized_name", false),
        (70, "protocol_version", false),
        (116, "certificate_required", true),
        (48, "unknown_ca", true),
    ] {
        let (reason, advice) = refused(TlsFault::Alert { description });
        assert_eq!(reason, format!("the server ended the TLS handshake: {name}"));
        assert_eq!(advice.contains("tlsCertificateKeyFile"), names_the_option, "{name}: {advice}");
        assert!(!advice.contains("tls=true"), "{name}: {advice}");
    }
    let (reason, advice) = refused(TlsFault::Garbage);
    assert_eq!(reason, "the port speaks no TLS");
    assert!(advice.contains("leave tls=true out"), "{advice}");
}

/// With TLS 1.3 the server refuses when the client believes to be done, and awaits the reply to hello.
fn a_client_certificate_that_the_server_misses(shell: Shell) {
    let tls = TlsOptions { requires_client_certificate: true, ..TlsOptions::default() };
    let options = ListenOptions { tls: Some(tls), ..ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options).expect("it works");
    let uri = endpoint.uri();
    let (without, _) = uri.split_once("&tlsCertificateKeyFile=").expect("it is in there");
    for _ in 0..10 {
        let error = refused_by_tls(shell, without);
        assert_eq!(error.reason(), "the server ended the TLS handshake: certificate_required");
    }
}

// ER-32, TL-02, TL-08
fn untrusted_certificates(shell: Shell) {
    for certificate in [
        ServerCertificate::Expired,
        ServerCertificate::NotYetValid,
        ServerCertificate::WrongHost,
        ServerCertificate::SelfSigned,
        ServerCertificate::ForeignAuthority,
    ] {
        let tls = TlsOptions { certificate, ..TlsOptions::default() };
        let options = ListenOptions { tls: Some(tls), ..ListenOptions::default() };
        let endpoint = Endpoint::start(Settings::default(), options).expect("it works");
        let error = refusal(&pool(shell, &endpoint.uri()).0);
        assert_eq!(verdict(&error), (Stage::TlsCertificate, false, false), "{certificate:?}");

        // Only a connection by the right name is accepted.
        let by_certificate = with(&endpoint.uri(), "tlsAllowInvalidCertificates=true");
        assert!(ping(&pool(shell, &by_certificate).0), "{certificate:?}");
        assert!(ping(&pool(shell, &with(&endpoint.uri(), "tlsInsecure=true")).0));
        let by_name = pool(shell, &with(&endpoint.uri(), "tlsAllowInvalidHostnames=true")).0;
        if certificate == ServerCertificate::WrongHost {
            assert!(ping(&by_name));
        } else {
            assert_eq!(refusal(&by_name).stage(), Stage::TlsCertificate);
        }
    }
}

// ER-30, CM-13, MS-01, MS-14
fn invalid_replies(shell: Shell) {
    let endpoint = plain();
    // A decompression bomb takes long to make on a busy machine, without optimisation.
    let uri = with(&endpoint.uri(), "connectTimeoutMS=60000");
    for (fault, kind) in [
        (Fault::Close, Kind::Network),
        (Fault::Reset, Kind::Network),
        (Fault::HalfClose, Kind::Network),
        (Fault::Cut { bytes: 20, then: Ending::Close }, Kind::Network),
        (Fault::Garbage { bytes: 4096 }, Kind::Protocol),
        (Fault::Length { value: -1 }, Kind::Protocol),
        (Fault::Length { value: i32::MAX }, Kind::Protocol),
        (Fault::Length { value: 2 << 20 }, Kind::Protocol),
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
        let error = refusal(&pool(shell, &uri).0);
        assert_eq!((error.stage(), error.kind()), (Stage::Hello, &kind), "{text}: {error}");
        assert_eq!(error.is_overload(), kind == Kind::Network, "{text}");
    }
    let settings = Settings { auth: true, users: vec![User::new("a", "b")], ..Settings::default() };
    let logins = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    set(&logins, at(Fault::Length { value: 2 << 20 }, "saslContinue"));
    let error = refusal(&pool(shell, &format!("mongodb://a:b@{}/", logins.address())).0);
    assert_eq!((error.stage(), error.kind()), (Stage::Authentication, &Kind::Protocol), "{error}");
    set(&endpoint, at(Fault::Drip { bytes: 7, every: Duration::from_millis(1) }, "isMaster"));
    assert!(ping(&pool(shell, &endpoint.uri()).0), "slow is not wrong");
}

/// A hello is taken as it is, and an error is one line.
fn hostile_texts_in_each_field(shell: Shell) {
    let endpoint = plain();
    for _ in 0..20 {
        set(&endpoint, at(Fault::HostileTexts { fails: false }, "isMaster"));
        let (pool, _) = pool(shell, &endpoint.uri());
        assert!(ping(&pool));
        set(&endpoint, at(Fault::HostileTexts { fails: true }, "isMaster"));
        let error = refusal(&crate::world::pool(shell, &endpoint.uri()).0);
        assert_eq!(error.stage(), Stage::Hello, "{error}");
        assert!(matches!(error.kind(), Kind::Command(_)), "{error}");
        for shown in [error.to_string(), format!("{error:?}")] {
            assert!(!shown.contains(char::is_control) && shown.len() < 20_000, "{shown}");
        }
    }
}

// AU-33, AU-37
fn servers_that_cheat_during_scram(shell: Shell) {
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
        let error = refusal(&pool(shell, &endpoint.uri()).0);
        assert_eq!(verdict(&error), (Stage::Authentication, false, false), "{fault:?}: {error}");
        assert_eq!(error.kind(), &Kind::Protocol, "{fault:?}: {error}");
    }
}

// Before authentication.
fn wire_versions_that_do_not_overlap(shell: Shell) {
    for (wire_versions, text) in [
        (0..=8, "reports wire version 8, but this version of Cenote requires at least 9"),
        (30..=40, "requires wire version 30, but this version of Cenote only supports up to 29."),
    ] {
        let users = vec![User::new("app", "pencil")];
        let settings = Settings { auth: true, users, wire_versions, ..Settings::default() };
        let endpoint = tls(settings);
        let error = refusal(&pool(shell, &endpoint.uri()).0);
        assert_eq!((error.stage(), error.kind()), (Stage::Hello, &Kind::Configuration), "{error}");
        let text = format!("Server at {} {text}", endpoint.address());
        assert!(error.to_string().contains(&text), "{error}");
        let commands = endpoint.with(|server, _| server.statistics()).commands;
        assert_eq!(commands.get("saslContinue"), None);
    }
}

// OP-20, ES-06
// HS-09, CS-06, CS-07: besides `connectTimeoutMS`, each command of the handshake has its own time; with `timeoutMS` only
// that of the connection, however short the caller's is.
fn a_command_of_the_handshake_has_its_own_time(shell: Shell) {
    let endpoint = plain();
    set(&endpoint, at(Fault::Stall, "isMaster"));
    for (options, milliseconds) in [
        ("connectTimeoutMS=60000&socketTimeoutMS=600", 600),
        ("connectTimeoutMS=900&socketTimeoutMS=60000", 900),
        ("connectTimeoutMS=900&socketTimeoutMS=600&timeoutMS=60000", 900),
    ] {
        let error = refusal(&pool(shell, &with(&endpoint.uri(), options)).0);
        assert_eq!(error.stage(), Stage::Hello, "{options}: {error}");
        let Kind::NetworkTimeout { after } = *error.kind() else { panic!("{options}: {error}") };
        assert_eq!(after, Duration::from_millis(milliseconds), "{options}: {error}");
    }
}
