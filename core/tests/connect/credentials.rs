//! What a credential has to be.

use std::sync::Arc;

use bson::doc;
use cenote_core::connect::{Establish, ScramCache, ServerApi};
use cenote_core::error::{Kind, Stage};
use cenote_core::uri::{Compressor, Credential, Mechanism, Secret};

use crate::connect::conversations::{names, play};
use crate::connect::server::{Server, converse, nonces, options};

// AU-07, AU-55: before anything is sent.
#[test]
fn what_is_not_spoken_is_a_configuration_error() {
    let cases = [
        ("mongodb://u:p@db/?authMechanism=GSSAPI", "the mechanism GSSAPI is not supported"),
        (
            "mongodb://db/?authMechanism=MONGODB-AWS",
            "MONGODB-AWS needs an access key ID as the user name and a secret access key as the password: environment \
             variables and metadata services are not asked",
        ),
        ("mongodb://u@db", "SCRAM-SHA-256 needs a password"),
        (
            "mongodb://u:%07@db/?authMechanism=SCRAM-SHA-256",
            "the password has characters that SASLprep prohibits",
        ),
    ];
    for (uri, reason) in cases {
        let error = Establish::new(Arc::new(options(uri)), nonces()).unwrap_err();
        assert_eq!(error.to_string(), format!("authentication: {reason}"));
        assert_eq!(error.kind(), &Kind::Configuration);
    }
}

// AU-07, AU-38, AU-46, AU-51: a credential need not come from a connection string.
#[test]
fn a_credential_that_cannot_be_used() {
    let password = || Some(Secret::from("pencil".to_owned()));
    let property = || Secret::from("x".to_owned());
    let x509 = Credential::new(Some(Mechanism::MongodbX509), "$external");
    let mut with_password = x509.clone();
    with_password.password = password();
    let elsewhere = Credential::new(Some(Mechanism::MongodbX509), "admin");
    let mut with_property = x509.clone();
    with_property.mechanism_properties.insert("SERVICE_NAME", property());
    let mut nameless = Credential::new(None, "admin");
    nameless.password = password();
    let mut empty_name = nameless.clone();
    empty_name.username = Some(String::new());
    let mut separator = Credential::of_user("u", "\0", "$external");
    separator.mechanism = Some(Mechanism::Plain);
    let cases = [
        (separator, "user name and password must not contain NUL with PLAIN"),
        (with_password, "MONGODB-X509 takes no password"),
        (elsewhere, "MONGODB-X509 has users in $external only"),
        (with_property, "SCRAM, X.509 and PLAIN have no mechanism properties"),
        (nameless, "SCRAM-SHA-256 needs a user name"),
        (empty_name, "SCRAM-SHA-256 needs a user name"),
    ];
    let mut options = options("mongodb://db");
    options.credential = Some(x509);
    assert!(Establish::new(Arc::new(options.clone()), nonces()).is_ok());
    for (credential, reason) in cases {
        options.credential = Some(credential);
        let error = Establish::new(Arc::new(options.clone()), nonces()).unwrap_err();
        assert_eq!(error.to_string(), format!("authentication: {reason}"));
    }
}

// HS-43, AU-11: what only one mechanism cannot take is a matter for when that one is chosen.
#[test]
fn a_password_that_cannot_be_prepared_is_one_for_sha_1() {
    let uri = "mongodb://user:%07@db";
    let outcome = play(uri, Server::new(Mechanism::ScramSha1));
    assert_eq!(names(&outcome.commands), ["isMaster", "saslStart", "saslContinue"]);
    assert!(outcome.commands[0].contains_key("speculativeAuthenticate"));
    let error = outcome.result.unwrap_err();
    assert_eq!(error.command_error().and_then(|it| it.code), Some(18), "it is the wrong one");

    let mut server = Server::new(Mechanism::ScramSha256);
    server.hello.insert("saslSupportedMechs", ["SCRAM-SHA-256"].as_slice());
    let outcome = play(uri, server);
    assert!(outcome.handshaken.is_some());
    let error = outcome.result.unwrap_err();
    assert_eq!((error.stage(), error.kind()), (Stage::Authentication, &Kind::Configuration));
    assert_eq!(error.reason(), "the password has characters that SASLprep prohibits");
}

/// A document that has to grow leaves a copy of the password behind; debug builds look.
#[test]
fn names_of_any_length_have_room() {
    let long = "x".repeat(100_000);
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let uri =
            format!("mongodb://{long}:{long}@db/?authSource={long}&authMechanism={mechanism}");
        let mut options = options(&uri);
        options.server_api =
            Some(ServerApi { strict: Some(true), deprecation_errors: Some(false) });
        options.compressors = vec![Compressor::Zstd; 10_000];
        let establish = Establish::new(Arc::new(options), nonces()).unwrap();
        let outcome = converse(establish, &mut ScramCache::default(), |_| doc! { "ok": 1 });
        assert_eq!(names(&outcome.commands), ["hello", "saslStart"]);
        assert!(outcome.commands.iter().all(|command| command.contains_key("apiVersion")));
    }
}
