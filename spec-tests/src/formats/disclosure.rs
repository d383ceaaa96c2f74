//! Plays `connection-string/tests/credential-disclosure`: connection strings with a secret where it belongs, and where a
//! slip of the pen puts it. Neither the secret nor its percent-encoded form may be seen, whatever becomes of them.
//!
//! On `core` that is what the parser returns, on the shells what building a client returns. A name server on the loopback
//! knows none of the hosts.

use std::error::Error;
use std::time::Duration;

use cenote_conform::{Document, Unreadable};
use cenote_core::uri::ConnectionString;
use cenote_endpoint::NameServer;
use cenote_test_runtimes::{ClientSetup, NameService};
use serde::Deserialize;

use super::outcome::Outcome;
use super::play::NO_TEST;
use super::target::Target;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    description: String,
    uri: String,
}

/// In lower case, as written and percent-encoded.
const SECRETS: [&str; 2] =
    ["sentinelpassword1234", "%53%45%4e%54%49%4e%45%4c%70%61%73%73%77%6f%72%64%31%32%33%34"];

/// Plays what was read from the file.
///
/// # Errors
///
/// When it is not of this format, or a connection string has no secret.
pub(super) fn play_document(
    document: &Document,
    target: Target,
) -> Result<Vec<Outcome>, Unreadable> {
    let file: File = document.parse()?;
    if file.tests.is_empty() {
        return Err(document.refuse("tests", NO_TEST));
    }
    if let Some(index) = file.tests.iter().position(|test| !discloses(&test.uri)) {
        return Err(document.refuse(&format!("tests/{index}/uri"), "there is no secret in it"));
    }
    let names = NameServer::start();
    let outcome = |test: Test| {
        let names = names.as_ref().map_err(ToString::to_string);
        let verdict = names.and_then(|names| judge(&test.uri, target, names)).into();
        let file = document.path().to_owned();
        Outcome { file, target, description: test.description, verdict }
    };
    Ok(file.tests.into_iter().map(outcome).collect())
}

fn judge(uri: &str, target: Target, names: &NameServer) -> Result<(), String> {
    let shown = if target.is_simulated() { parsed(uri) } else { built(uri, target, names)? };
    if discloses(&shown) { Err(format!("the secret is disclosed: {shown}")) } else { Ok(()) }
}

fn discloses(text: &str) -> bool {
    let text = text.to_lowercase();
    SECRETS.iter().any(|secret| text.contains(secret))
}

fn parsed(uri: &str) -> String {
    match ConnectionString::parse(uri) {
        Ok(parsed) => {
            let warnings: Vec<_> = parsed.warnings().iter().map(ToString::to_string).collect();
            format!("{parsed:?} {warnings:?}")
        }
        Err(error) => chain(&error),
    }
}

fn built(uri: &str, target: Target, names: &NameServer) -> Result<String, String> {
    let names = Some(NameService::new(names.address(), Duration::from_secs(60)));
    let setup = ClientSetup { names, ..ClientSetup::default() };
    Ok(match target.shell()?.build_client(uri, setup) {
        Ok(client) => {
            let shown = format!("{:?}", client.servers());
            client.close();
            shown
        }
        Err(error) => chain(&error),
    })
}

/// The error and its sources, as users and programmers see them.
fn chain(error: &dyn Error) -> String {
    let mut shown = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        shown += &format!("{error} {error:?} ");
        next = error.source();
    }
    shown
}
