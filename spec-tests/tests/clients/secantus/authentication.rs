//! Authentication by this server, whose code for it shares nothing with ours.

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};
use cenote_core::uri::Mechanism;

use crate::secantus::certificates::Certificates;
use crate::secantus::open;
use crate::secantus::server::{ClientCertificate, Options, Server, Tls};

fn user(name: &str, password: &str, mechanisms: &[&str]) -> (&'static str, RawDocumentBuf) {
    let mechanisms: bson::raw::RawArrayBuf = mechanisms.iter().copied().collect();
    let roles = bson::rawbson!([{ "role": "root", "db": "admin" }]);
    let create = rawdoc! {
        "createUser": name, "pwd": password, "roles": roles, "mechanisms": mechanisms,
    };
    ("admin", create)
}

fn users() -> Server {
    let both = ["SCRAM-SHA-1", "SCRAM-SHA-256"];
    let (_, elsewhere) = user("elsewhere", "pencil", &both);
    let users = [
        user("both", "pencil", &both),
        user("new", "pencil", &["SCRAM-SHA-256"]),
        user("old", "pencil", &["SCRAM-SHA-1"]),
        user("o d:d", "p,=:@/ n", &both),
        user("wide", "\u{2168}", &["SCRAM-SHA-256"]),
        ("shop", elsewhere),
    ];
    Server::with_users(&users, &Options::default())
}

// AU-10, AU-20 to AU-22, AU-30, AU-32: the server confirms the user afterwards.
#[test]
fn scram() {
    let server = users();
    let cases = [
        ("both:pencil", "authMechanism=SCRAM-SHA-256", Mechanism::ScramSha256, "both"),
        ("both:pencil", "authMechanism=SCRAM-SHA-1", Mechanism::ScramSha1, "both"),
        ("both:pencil", "", Mechanism::ScramSha256, "both"),
        ("new:pencil", "", Mechanism::ScramSha256, "new"),
        ("old:pencil", "authMechanism=SCRAM-SHA-1", Mechanism::ScramSha1, "old"),
        // No comma and no `=` in the name: this server does not undo their escapes, for others
        // neither.
        ("o%20d%3Ad:p%2C%3D%3A%40%2F%20n", "", Mechanism::ScramSha256, "o d:d"),
        // SASLprep makes two letters of the Roman numeral.
        ("wide:IX", "", Mechanism::ScramSha256, "wide"),
        ("elsewhere:pencil", "authSource=shop", Mechanism::ScramSha256, "elsewhere"),
    ];
    for (userinfo, query, mechanism, name) in cases {
        let mut connection = open(&server.uri_as(userinfo, query)).unwrap();
        assert_eq!(connection.description().mechanism, Some(mechanism), "{userinfo}");
        let status = connection.command("admin", &rawdoc! { "connectionStatus": 1 }).unwrap();
        let info = status.get_document("authInfo").unwrap();
        let users = info.get_array("authenticatedUsers").unwrap();
        let user = users.into_iter().next().unwrap().unwrap().as_document().unwrap();
        assert_eq!(user.get_str("user").ok(), Some(name));
    }
}

// AU-12, ER-31: no is no, and the time for it is after hello.
#[test]
fn who_is_nobody_stays_out() {
    let server = users();
    for userinfo in ["both:wrong", "nobody:pencil", "elsewhere:pencil"] {
        for mechanism in ["SCRAM-SHA-1", "SCRAM-SHA-256"] {
            let query = format!("authMechanism={mechanism}");
            let error = open(&server.uri_as(userinfo, &query)).unwrap_err();
            assert_is_no(&error);
        }
    }
    // Without authentication hello succeeds, and nothing else.
    let mut connection = open(&server.uri("")).unwrap();
    let error = connection.command("admin", &rawdoc! { "listDatabases": 1 }).unwrap_err();
    assert_eq!(error.command_error().and_then(|it| it.code), Some(13));
}

fn assert_is_no(error: &ConnectionError) {
    assert_eq!(error.stage(), Stage::Authentication, "{error}");
    assert!(matches!(error.kind(), Kind::Command(refusal) if refusal.code == Some(18)), "{error}");
    assert_eq!(error.labels(RetryWrites::Enabled).count(), 0);
    assert!(!error.is_retryable());
}

// AU-45 to AU-47, TL-11.
#[test]
fn x509() {
    let certificates = Certificates::new("127.0.0.1");
    let create = rawdoc! {
        "createUser": Certificates::CLIENT,
        "roles": [{ "role": "root", "db": "admin" }],
        "mechanisms": ["MONGODB-X509"],
    };
    let client = ClientCertificate::Optional;
    let tls = Some(Tls { certificates: &certificates, client });
    let options = Options { tls, ..Options::default() };
    let server = Server::with_users(&[("$external", create)], &options);

    let query = format!("{}&authMechanism=MONGODB-X509", certificates.with_client());
    let mut connection = open(&server.uri(&query)).unwrap();
    assert_eq!(connection.description().mechanism, Some(Mechanism::MongodbX509));
    connection.command("admin", &rawdoc! { "listDatabases": 1 }).unwrap();

    let query = format!("{}&authMechanism=MONGODB-X509", certificates.trusted());
    assert_is_no(&open(&server.uri(&query)).unwrap_err());
}
