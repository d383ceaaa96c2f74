//! Failures while a connection is established, ordered from the server: which stage, which kind,
//! and what follows from them.

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::label::{RETRYABLE_ERROR, RETRYABLE_WRITE_ERROR, SYSTEM_OVERLOADED_ERROR};
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};

use crate::secantus::open;
use crate::secantus::server::{Options, Server};

const HELLO: [&str; 3] = ["hello", "isMaster", "ismaster"];
// What a failure that may be overload carries (ER-30, ER-21).
const OVERLOAD: [&str; 3] = [SYSTEM_OVERLOADED_ERROR, RETRYABLE_ERROR, RETRYABLE_WRITE_ERROR];

fn labels(error: &ConnectionError) -> Vec<&str> {
    error.labels(RetryWrites::Enabled).collect()
}

/// A server without users, where hello fails for the application `fails` alone.
fn fail_hello(data: RawDocumentBuf, query: &str) -> ConnectionError {
    let server = Server::plain();
    server.fail(&HELLO, data);
    assert!(open(&server.uri("appname=works")).is_ok(), "others are spared");
    open(&server.uri(&format!("appname=fails{query}"))).expect_err("a failure")
}

// ER-36: the server's refusal is no network error.
#[test]
fn hello_is_refused() {
    let error = fail_hello(rawdoc! { "errorCode": 91 }, "");
    assert_eq!(error.stage(), Stage::Hello);
    assert!(matches!(error.kind(), Kind::Command(refusal) if refusal.code == Some(91)));
    assert!(error.is_retryable());
    assert!(!labels(&error).contains(&SYSTEM_OVERLOADED_ERROR));
}

// T-59: the server's own labels are passed on.
#[test]
fn hello_is_refused_with_labels() {
    let data = rawdoc! { "errorCode": 462, "errorLabels": [SYSTEM_OVERLOADED_ERROR, "Other"] };
    let error = fail_hello(data, "");
    assert_eq!(error.command_error().and_then(|it| it.code), Some(462));
    assert_eq!(labels(&error), [SYSTEM_OVERLOADED_ERROR, "Other"]);
    assert!(error.is_overload());
}

// ER-30, ER-34.
#[test]
fn the_connection_is_closed_at_hello() {
    let error = fail_hello(rawdoc! { "closeConnection": true }, "");
    assert_eq!((error.stage(), error.kind()), (Stage::Hello, &Kind::Network));
    assert_eq!(labels(&error), OVERLOAD);
    assert!(error.is_overload());
}

// ER-30, ER-37.
#[test]
fn hello_takes_too_long() {
    let data = rawdoc! { "blockConnection": true, "blockTimeMS": 30_000 };
    let error = fail_hello(data, "&connectTimeoutMS=500");
    assert_eq!(error.stage(), Stage::Hello);
    assert!(error.is_timeout(), "{error}");
    assert_eq!(labels(&error), OVERLOAD);
}

/// A server where saslContinue fails for the application `fails` alone.
fn fail_authentication(data: RawDocumentBuf, query: &str) -> ConnectionError {
    let create = rawdoc! { "createUser": "user", "pwd": "pencil", "roles": ["root"] };
    let server = Server::with_users(&[("admin", create)], &Options::default());
    let mut orders = open(&server.uri_as("user:pencil", "appname=works")).expect("a connection");
    let mut data = data;
    data.append(bson::raw::cstr!("failCommands"), bson::rawbson!(["saslContinue"]));
    data.append(bson::raw::cstr!("appName"), "fails");
    let command = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    orders.command("admin", &command).expect("a fail point");
    assert!(open(&server.uri_as("user:pencil", "appname=works")).is_ok(), "others are spared");
    open(&server.uri_as("user:pencil", &format!("appname=fails{query}"))).expect_err("a failure")
}

#[test]
fn authentication_is_refused() {
    let error = fail_authentication(rawdoc! { "errorCode": 11600 }, "");
    assert_eq!(error.stage(), Stage::Authentication);
    assert_eq!(error.command_error().and_then(|it| it.code), Some(11600));
    assert!(!labels(&error).contains(&SYSTEM_OVERLOADED_ERROR));
}

// ER-31, ER-35: after hello it is no overload.
#[test]
fn the_connection_is_closed_while_authenticating() {
    let error = fail_authentication(rawdoc! { "closeConnection": true }, "");
    assert_eq!((error.stage(), error.kind()), (Stage::Authentication, &Kind::Network));
    assert_eq!(labels(&error), [RETRYABLE_WRITE_ERROR]);
    assert!(!error.is_overload());
}

#[test]
fn authentication_takes_too_long() {
    let data = rawdoc! { "blockConnection": true, "blockTimeMS": 30_000 };
    let error = fail_authentication(data, "&connectTimeoutMS=2000");
    assert_eq!(error.stage(), Stage::Authentication);
    assert!(error.is_timeout(), "{error}");
    assert_eq!(labels(&error), [RETRYABLE_WRITE_ERROR]);
}

// T-46: a late reply makes the connection useless, and it knows that.
#[test]
fn a_command_takes_too_long() {
    let server = Server::plain();
    server.fail(&["ping"], rawdoc! { "blockConnection": true, "blockTimeMS": 30_000 });
    let mut connection = open(&server.uri("appname=fails&socketTimeoutMS=500")).unwrap();
    let error = connection.command("admin", &rawdoc! { "ping": 1 }).unwrap_err();
    assert!(error.is_timeout() && error.stage() == Stage::Operation, "{error}");
    assert!(!connection.is_reusable() && !error.leaves_connection_healthy());
}

#[test]
fn the_connection_is_closed_in_use() {
    let server = Server::plain();
    server.fail(&["find"], rawdoc! { "closeConnection": true });
    let mut connection = open(&server.uri("appname=fails")).unwrap();
    let error = connection.command("zoo", &rawdoc! { "find": "birds" }).unwrap_err();
    assert_eq!((error.stage(), error.kind()), (Stage::Operation, &Kind::Network));
    assert!(!connection.is_reusable());
}
