//! SCRAM's test plan: which mechanism a user gets, and which forms of a password are the same.

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri;
use cenote_endpoint::Mechanism::{ScramSha1, ScramSha256};
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{pool, refusal};

on_all_runtimes!(
    a_mechanism_is_named_or_negotiated,
    a_mechanism_that_a_user_does_not_have,
    passwords_are_normalized,
);

const NAMED: [(&str, uri::Mechanism); 2] =
    [("SCRAM-SHA-1", uri::Mechanism::ScramSha1), ("SCRAM-SHA-256", uri::Mechanism::ScramSha256)];

/// Of the users `sha1`, `sha256` and `both`, whose passwords are their names, and of two whose names are letters
/// that SASLprep replaces.
fn server() -> Endpoint {
    let users = vec![
        User::new("sha1", "sha1").with_mechanisms(&[ScramSha1]),
        User::new("sha256", "sha256").with_mechanisms(&[ScramSha256]),
        User::new("both", "both").with_mechanisms(&[ScramSha1, ScramSha256]),
        User::new("IX", "IX").with_mechanisms(&[ScramSha256]),
        User::new("\u{2168}", "\u{2163}").with_mechanisms(&[ScramSha256]),
    ];
    let settings = Settings { auth: true, users, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

fn uri(endpoint: &Endpoint, credential: &str, mechanism: &str) -> String {
    let uri = format!("mongodb://{credential}@{}/", endpoint.address());
    if mechanism.is_empty() { uri } else { format!("{uri}?authMechanism={mechanism}") }
}

/// Authenticates, and runs a command that needs that. Returns how it was done.
fn log_in(shell: Shell, uri: &str) -> Option<uri::Mechanism> {
    let (pool, _) = pool(shell, uri);
    let mut connection = pool.check_out().unwrap_or_else(|error| panic!("{uri}: {error}"));
    let reply = connection.command("admin", &rawdoc! { "listCollections": 1 });
    assert!(reply.is_ok(), "{uri}: {reply:?}");
    connection.description().mechanism
}

/// The first two steps of the plan.
fn a_mechanism_is_named_or_negotiated(shell: Shell) {
    let endpoint = server();
    let [sha1, sha256] = NAMED;
    for (user, negotiated, named) in [
        ("sha1", sha1.1, vec![sha1]),
        ("sha256", sha256.1, vec![sha256]),
        ("both", sha256.1, NAMED.into()),
    ] {
        let credential = format!("{user}:{user}");
        assert_eq!(log_in(shell, &uri(&endpoint, &credential, "")), Some(negotiated), "{user}");
        for (name, mechanism) in named {
            let uri = uri(&endpoint, &credential, name);
            assert_eq!(log_in(shell, &uri), Some(mechanism), "{user}");
        }
    }
}

/// The third step: all of these are errors of one kind.
// AU-12
fn a_mechanism_that_a_user_does_not_have(shell: Shell) {
    let endpoint = server();
    let error_of = |credential: &str, mechanism: &str| -> ConnectionError {
        refusal(&pool(shell, &uri(&endpoint, credential, mechanism)).0)
    };
    for error in [
        error_of("sha1:sha1", "SCRAM-SHA-256"),
        error_of("sha256:sha256", "SCRAM-SHA-1"),
        error_of("both:eraser", ""),
        error_of("none:none", ""),
    ] {
        assert_eq!(error.stage(), Stage::Authentication, "{error}");
        assert_eq!(error.command_error().and_then(|it| it.code), Some(18), "{error}");
    }
}

/// The fourth step, with the connection strings of the plan.
fn passwords_are_normalized(shell: Shell) {
    let endpoint = server();
    for credential in ["IX:IX", "IX:I%C2%ADX", "%E2%85%A8:IV", "%E2%85%A8:I%C2%ADV"] {
        for mechanism in ["", "SCRAM-SHA-256"] {
            let uri = uri(&endpoint, credential, mechanism);
            assert_eq!(log_in(shell, &uri), Some(uri::Mechanism::ScramSha256), "{credential}");
        }
    }
}
