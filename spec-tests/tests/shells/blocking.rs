//! The blocking client and the endpoint, on real sockets: what is agreed on, and which failure it is
//! when the endpoint misbehaves.

use bson::rawdoc;
use cenote::blocking::{Connection, Connector};
use cenote_core::error::label::{RETRYABLE_ERROR, SYSTEM_OVERLOADED_ERROR};
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};
use cenote_core::uri::{Compressor, ConnectionString, Mechanism};
use cenote_core::wire::Flags;
use cenote_endpoint::{
    Certificates, Endpoint, Fault, ListenAddress, ListenOptions, LoadBalanced, ReplicaSet, Script,
    ServerCertificate, Settings, TlsFault, TlsOptions, Topology, User,
};

const OVERLOAD: [&str; 2] = [SYSTEM_OVERLOADED_ERROR, RETRYABLE_ERROR];

fn start(settings: Settings, options: ListenOptions) -> Endpoint {
    Endpoint::start(settings, options).expect("an endpoint")
}

/// Connects with this connection string and more options, each ending in `&`.
fn open(uri: &str, more: &str) -> Result<Connection, ConnectionError> {
    let (hosts, options) = uri.split_once("/?").unwrap_or((uri.trim_end_matches('/'), ""));
    let uri = ConnectionString::parse(&format!("{hosts}/?{more}{options}"));
    let uri = uri.expect("a connection string");
    Connection::open(&uri, &uri.hosts[0])
}

fn ping(connection: &mut Connection) {
    connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
}

#[test]
fn a_user_of_each_mechanism_authenticates() {
    let users = vec![
        User::new("app", "pen/c:il"),
        User::new("old", "pencil").with_mechanisms(&[cenote_endpoint::Mechanism::ScramSha1]),
        User::plain("ldap", "pencil"),
        User::x509(Certificates::CLIENT_SUBJECT),
    ];
    let settings = Settings { auth: true, users: users.clone(), ..Settings::default() };
    let endpoint = start(settings, ListenOptions::with_tls());
    let mechanisms =
        [Mechanism::ScramSha256, Mechanism::ScramSha1, Mechanism::Plain, Mechanism::MongodbX509];
    for (user, mechanism) in users.iter().zip(mechanisms) {
        let mut connection = open(&endpoint.uri_of(Some(user)), "").unwrap();
        assert_eq!(connection.description().mechanism, Some(mechanism));
        ping(&mut connection);
    }
    let wrong = User::new("app", "wrong");
    let error = open(&endpoint.uri_of(Some(&wrong)), "").unwrap_err();
    assert_eq!(error.command_error().and_then(|it| it.code), Some(18), "{error}");
}

// CM-07 to CM-10: compressed is what may be, and both sides mean the same.
#[test]
fn what_is_agreed_is_compressed() {
    let users = vec![User::new("app", "pencil")];
    let endpoint =
        start(Settings { auth: true, users, ..Settings::default() }, ListenOptions::default());
    for name in ["snappy", "zlib", "zstd"] {
        let mut connection = open(&endpoint.uri(), &format!("compressors={name}&")).unwrap();
        assert_eq!(connection.description().compressor.map(Compressor::name), Some(name));
        let birds: Vec<_> = (0..500).map(|n| rawdoc! { "name": "wren ".repeat(n) }).collect();
        let insert = rawdoc! { "insert": name };
        let reply = connection.command_with("zoo", &insert, "documents", &birds).unwrap();
        assert_eq!(reply.get_i32("n").unwrap(), 500);
        let found = connection.command("zoo", &rawdoc! { "find": name, "batchSize": 500 }).unwrap();
        assert!(found.as_bytes().len() > 500_000);
        connection.command("admin", &rawdoc! { "hello": 1 }).unwrap();
        let compressed = endpoint.with(|server, _| server.statistics()).compressed_commands;
        assert_eq!(compressed.get(name), Some(&2), "insert and find, but not hello");
    }
}

// LB-10, LB-12.
#[test]
fn services_behind_a_load_balancer() {
    let topology = Topology::LoadBalanced(LoadBalanced { services: 2 });
    let endpoint = start(Settings { topology, ..Settings::default() }, ListenOptions::default());
    let service = || open(&endpoint.uri(), "").unwrap().description().service_id.unwrap();
    assert_ne!(service(), service());
}

// MS-09: each reply answers the one before.
#[test]
fn a_stream_goes_on() {
    let topology = Topology::ReplicaSet(ReplicaSet::primary("cenote"));
    let endpoint = start(Settings { topology, ..Settings::default() }, ListenOptions::default());
    let mut connection = open(&endpoint.uri(), "").unwrap();
    let hello = connection.command("admin", &rawdoc! { "hello": 1 }).unwrap();
    let version = hello.get_document("topologyVersion").unwrap().to_owned();
    let stream = rawdoc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 10_i64 };
    connection.send_command("admin", &stream, Flags::EXHAUST_ALLOWED).unwrap();
    for _ in 0..5 {
        assert!(connection.receive().unwrap().flags().more_to_come);
    }
    assert!(!connection.is_reusable());
}

#[cfg(unix)]
#[test]
fn a_unix_domain_socket() {
    let folder = tempfile::tempdir().unwrap();
    let place = ListenAddress::Unix { path: folder.path().join("cenote.sock") };
    let endpoint = start(Settings::default(), ListenOptions { place, ..ListenOptions::default() });
    let uri = endpoint.uri();
    ping(&mut open(&uri, "").unwrap());
    drop(endpoint);
    let gone = format!(
        "mongodb://{}%2Fcenote.sock",
        folder.path().display().to_string().replace('/', "%2F")
    );
    let error = open(&gone, "").unwrap_err();
    assert_eq!((error.stage(), error.kind()), (Stage::Tcp, &Kind::Network));
}

// ER-32: none of these is overload.
#[test]
fn bad_certificates() {
    for certificate in [
        ServerCertificate::Expired,
        ServerCertificate::NotYetValid,
        ServerCertificate::WrongHost,
        ServerCertificate::SelfSigned,
        ServerCertificate::ForeignAuthority,
    ] {
        let tls = Some(TlsOptions { certificate, ..TlsOptions::default() });
        let endpoint =
            start(Settings::default(), ListenOptions { tls, ..ListenOptions::default() });
        let error = open(&endpoint.uri(), "").unwrap_err();
        let expected = (Stage::TlsCertificate, &Kind::Protocol);
        assert_eq!((error.stage(), error.kind()), expected, "{certificate:?}: {error}");
        assert_eq!(error.labels(RetryWrites::Disabled).count(), 0);
    }
}

// ER-33: bytes that do not come are, garbage and alerts are not.
#[test]
fn tls_handshakes_that_go_wrong() {
    let endpoint = start(Settings::default(), ListenOptions::with_tls());
    let fail = |fault, more| {
        endpoint.set_tls_fault(Some(fault));
        open(&endpoint.uri(), more).unwrap_err()
    };
    let stalled = fail(TlsFault::Stall, "connectTimeoutMS=100&");
    assert!(stalled.stage() == Stage::TlsIo && stalled.is_timeout(), "{stalled}");
    let closed = fail(TlsFault::CloseAfter { bytes: 40 }, "");
    assert_eq!((closed.stage(), closed.kind()), (Stage::TlsIo, &Kind::Network), "{closed}");
    for error in [stalled, closed] {
        assert_eq!(error.labels(RetryWrites::Disabled).collect::<Vec<_>>(), OVERLOAD);
    }
    let garbage = fail(TlsFault::Garbage, "");
    assert_eq!(garbage.to_string(), "TLS handshake: the port speaks no TLS");
    let refused = fail(TlsFault::Alert { description: 80 }, "");
    assert_eq!(
        refused.to_string(),
        "TLS handshake: the server ended the TLS handshake: internal_error"
    );
    for error in [garbage, refused] {
        assert_eq!((error.stage(), error.kind()), (Stage::TlsIo, &Kind::Protocol), "{error}");
        assert_eq!(error.labels(RetryWrites::Disabled).count(), 0);
    }
    endpoint.set_tls_fault(None);
    ping(&mut open(&endpoint.uri(), "").unwrap());
}

// ER-30, MS-15: silence and ends may be overload, what is no message is not.
#[test]
fn hellos_that_go_wrong() {
    let endpoint = start(Settings::default(), ListenOptions::default());
    let fail = |fault, more| {
        let script = Script::new(fault).at_command("isMaster", 0).times(1);
        endpoint.with(|server, now| server.set_fault(now, script));
        let error = open(&endpoint.uri(), more).unwrap_err();
        assert_eq!(error.stage(), Stage::Hello, "{error}");
        error
    };
    for fault in [Fault::Close, Fault::Reset, Fault::HalfClose] {
        let error = fail(fault, "");
        assert_eq!(error.kind(), &Kind::Network, "{error}");
        assert_eq!(error.labels(RetryWrites::Disabled).collect::<Vec<_>>(), OVERLOAD);
    }
    let stalled = fail(Fault::Stall, "connectTimeoutMS=500&");
    assert!(stalled.is_timeout());
    assert_eq!(stalled.labels(RetryWrites::Disabled).collect::<Vec<_>>(), OVERLOAD);
    for fault in [
        Fault::Garbage { bytes: 100 },
        Fault::Length { value: -1 },
        Fault::Checksum,
        Fault::ResponseTo { off_by: 1 },
    ] {
        let error = fail(fault, "");
        assert_eq!(error.kind(), &Kind::Protocol, "{error}");
        assert_eq!(error.labels(RetryWrites::Disabled).count(), 0);
    }
    ping(&mut open(&endpoint.uri(), "").unwrap());
}

#[test]
fn an_unreadable_file_is_a_configuration_error() {
    let uri = ConnectionString::parse("mongodb://localhost/?tlsCAFile=%2Fnowhere").unwrap();
    let error = Connector::new(&uri).unwrap_err();
    assert_eq!((error.stage(), error.kind()), (Stage::TlsCertificate, &Kind::Configuration));
    assert!(error.reason().starts_with("tlsCAFile: "), "{error}");
}
