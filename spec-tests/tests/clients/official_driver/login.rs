//! TLS, authentication and compression.

use std::collections::BTreeMap;

use bson::{Document, doc};
use cenote_endpoint::{Certificates, ListenOptions, ServerCertificate, Settings, TlsOptions};
use cenote_endpoint::{Endpoint, Topology, User};
use mongodb::Client;
use mongodb::error::ErrorKind;

use crate::official_driver::client::{birds, connect, ping, plain, secure, start};

const COMPRESSORS: [&str; 3] = ["snappy", "zlib", "zstd"];

#[tokio::test]
async fn scram_and_compression_over_tls() {
    let endpoint = secure(Topology::Standalone);
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1"] {
        for compressor in COMPRESSORS {
            let more = [format!("authMechanism={mechanism}"), format!("compressors={compressor}")];
            let client = connect(&endpoint.uri(), &more.each_ref().map(String::as_str)).await;
            assert_works_as("app", compressor, &client, &endpoint).await;
        }
    }
}

#[tokio::test]
async fn x509_and_compression_over_tls() {
    let user = User::x509(Certificates::CLIENT_SUBJECT);
    let settings = Settings { auth: true, users: vec![user], ..Settings::default() };
    let endpoint = start(settings, ListenOptions::with_tls());
    for compressor in COMPRESSORS {
        let more = format!("compressors={compressor}");
        let client = connect(&endpoint.uri(), &[&more]).await;
        assert_works_as(Certificates::CLIENT_SUBJECT, compressor, &client, &endpoint).await;
    }
}

async fn assert_works_as(user: &str, compressor: &str, client: &Client, endpoint: &Endpoint) {
    let status = doc! { "connectionStatus": 1 };
    let status = client.database("admin").run_command(status).await.expect("connectionStatus");
    let info = status.get_document("authInfo").expect("an authInfo");
    let users = info.get_array("authenticatedUsers").expect("a list");
    let names: Vec<_> =
        users.iter().map(|it| it.as_document().map(|it| it.get_str("user"))).collect();
    assert!(matches!(names[..], [Some(Ok(name))] if name == user), "{names:?}");

    let before = compressed(endpoint);
    birds(client).drop().await.expect("a drop");
    let songs = (0..50).map(|n| doc! { "_id": n, "song": "tweet ".repeat(100) });
    birds(client).insert_many(songs).await.expect("an insert");
    let mut found = birds(client).find(doc! {}).await.expect("a find");
    let mut count = 0;
    while found.advance().await.expect("a document") {
        let _: Document = found.deserialize_current().expect("a document");
        count += 1;
    }
    assert_eq!(count, 50);
    for (name, count) in compressed(endpoint) {
        let more = count - before.get(name).unwrap_or(&0);
        // Drop, insert and find, and nothing by another compressor.
        assert_eq!(more, if name == compressor { 3 } else { 0 }, "{name}");
    }
    assert!(compressed(endpoint).contains_key(compressor));
}

fn compressed(endpoint: &Endpoint) -> BTreeMap<&'static str, u64> {
    endpoint.with(|server, _| server.statistics()).compressed_commands
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let endpoint = secure(Topology::Standalone);
    let wrong = User::new("app", "wrong");
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1"] {
        let more = format!("authMechanism={mechanism}");
        let client = connect(&endpoint.uri_of(Some(&wrong)), &[&more]).await;
        let error = ping(&client).await.unwrap_err();
        assert!(matches!(*error.kind, ErrorKind::Authentication { .. }), "{error}");
    }
    assert_eq!(endpoint.with(|server, _| server.statistics()).failed_logins, 2);
}

/// The driver checks certificates, and the endpoint's bad ones are bad.
#[tokio::test]
async fn bad_certificates_are_refused() {
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
        let client = connect(&endpoint.uri(), &["serverSelectionTimeoutMS=1000"]).await;
        let error = ping(&client).await.unwrap_err();
        assert!(matches!(*error.kind, ErrorKind::ServerSelection { .. }), "{error}");
        assert!(error.to_string().contains("certificate"), "{certificate:?}: {error}");
    }
}

#[tokio::test]
async fn without_tls_and_users() {
    let endpoint = plain(Topology::Standalone);
    let client = connect(&endpoint.uri(), &[]).await;
    assert!(ping(&client).await.is_ok());
    assert!(compressed(&endpoint).is_empty(), "it was not requested");
}
