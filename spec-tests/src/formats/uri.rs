//! Plays the official files about connection strings: the folders `uri-options`,
//! `connection-string` and `auth/tests/legacy`, which share one format.
//!
//! A test gives a connection string and says whether it is valid, whether it causes warnings, and
//! what it has to mean. What a test leaves out or gives as `null` it does not ask about; the one
//! exception is `credential`, where `null` asks for none.

mod seen;

use std::path::Path;

use cenote_conform::{Document, Unreadable};

use cenote_core::uri::{ConnectionString, Mechanism};
use cenote_mio::{Connector as _, MongoConnector};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub(super) use self::seen::option;
use super::outcome::{Outcome, Verdict};
use super::play::NO_TEST;
use super::target::Target;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tests: Vec<Test>,
    /// Not of the official format: the rules that the tests are about (docs/audit/scenarios.md).
    #[serde(default, rename = "requirements")]
    _requirements: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    description: String,
    uri: String,
    valid: bool,
    warning: Option<bool>,
    hosts: Option<Vec<Value>>,
    auth: Option<Map<String, Value>>,
    options: Option<Map<String, Value>>,
    /// The outer option: whether the test says anything about it.
    #[serde(default, deserialize_with = "present")]
    credential: Option<Option<Map<String, Value>>>,
}

fn present<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<Map<String, Value>>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// A test that this parser cannot pass.
struct Exception {
    /// The end of the file's path, whether it is JSON or YAML.
    file: &'static str,
    /// The end of its connection string.
    uri: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: [Exception; 1] = [Exception {
    file: "auth/tests/legacy/connection-string",
    uri: ":pass@localhost.com/?authMechanism=MONGODB-AWS",
    reason: "the file contradicts itself: other tests accept a user name and a password for \
                 this mechanism, this one wants them refused",
}];

/// Plays one file, its tests in their order.
///
/// # Errors
///
/// When it cannot be read, or has a field that is not known here.
pub fn play(path: &Path) -> Result<Vec<Outcome>, Unreadable> {
    play_document(&Document::read(path)?)
}

/// Plays what was read from a file.
///
/// # Errors
///
/// When it has a field that is not known here.
pub fn play_document(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    let path = document.path();
    let file: File = document.parse()?;
    if file.tests.is_empty() {
        return Err(document.refuse("tests", NO_TEST));
    }
    let outcome = |test: Test| {
        let verdict = judge(exception(path, &test.uri), play_test(&test));
        let (file, target) = (path.to_owned(), Target::Core);
        Outcome { file, target, description: test.description, verdict }
    };
    Ok(file.tests.into_iter().map(outcome).collect())
}

fn exception(path: &Path, uri: &str) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|exception| {
        path.with_extension("").ends_with(exception.file) && uri.ends_with(exception.uri)
    })
}

/// An exception that is none any more has to go: it would hide the next failure.
fn judge(exception: Option<&Exception>, played: Result<(), String>) -> Verdict {
    match (exception, played) {
        (None, played) => played.into(),
        (Some(exception), Err(_)) => Verdict::NotApplicable(exception.reason.to_owned()),
        (Some(_), Ok(())) => Verdict::Failed("listed as an exception, but it passes".to_owned()),
    }
}

fn play_test(test: &Test) -> Result<(), String> {
    let parsed = match (ConnectionString::parse(&test.uri), test.valid) {
        (Ok(parsed), true) => parsed,
        (Err(_), false) => return Ok(()),
        // Whether there is a callback for tokens is known when the client is built.
        (Ok(parsed), false) if lacks_callback(&parsed) => return Ok(()),
        (Ok(_), false) => return Err("expected an error, got none".to_owned()),
        (Err(error), true) => return Err(format!("expected no error, got {error}")),
    };
    check_warnings(test, &parsed)?;
    if let Some(hosts) = &test.hosts {
        same("hosts", &Value::Array(hosts.clone()), &seen::hosts(&parsed, hosts))?;
    }
    if let Some(auth) = &test.auth {
        same("auth", &Value::Object(auth.clone()), &seen::auth(&parsed))?;
    }
    if let Some(credential) = &test.credential {
        let expected = credential.clone().map_or(Value::Null, Value::Object);
        same("credential", &expected, &seen::credential(&parsed))?;
    }
    for (name, expected) in test.options.iter().flatten() {
        let name = name.to_ascii_lowercase();
        let seen = option(&parsed, &name).ok_or(format!("no such option here: {name}"))?;
        same(&name, expected, &seen)?;
    }
    Ok(())
}

/// Whether no client can be built for it without a callback for access tokens.
fn lacks_callback(parsed: &ConnectionString) -> bool {
    let mechanism = parsed.credential.as_ref().and_then(|credential| credential.mechanism);
    mechanism == Some(Mechanism::MongodbOidc)
        && MongoConnector::new(parsed).is_ok_and(|connector| connector.check().is_err())
}

fn check_warnings(test: &Test, parsed: &ConnectionString) -> Result<(), String> {
    let warnings: Vec<_> = parsed.warnings().iter().map(ToString::to_string).collect();
    match (test.warning, warnings.is_empty()) {
        (Some(true), true) => Err("expected a warning, got none".to_owned()),
        (Some(false), false) => Err(format!("expected no warning, got {warnings:?}")),
        (Some(true), false) | (Some(false), true) | (None, _) => Ok(()),
    }
}

fn same(what: &str, expected: &Value, seen: &Value) -> Result<(), String> {
    if expected == seen { Ok(()) } else { Err(format!("{what}: expected {expected}, got {seen}")) }
}
