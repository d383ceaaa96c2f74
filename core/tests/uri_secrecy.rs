//! Secrets of a connection string are never shown, whatever becomes of it.

#![cfg(feature = "std")]

use std::collections::BTreeSet;

use cenote_core::uri::{ConnectionString, Secret, UriError};
use proptest::prelude::*;

/// Stands wherever a secret stands.
const MARK: &str = "hunter2hunter2";

/// Everything that is visible of the outcome.
fn shown(outcome: &Result<ConnectionString, UriError>) -> String {
    match outcome {
        Ok(parsed) => {
            let warnings: Vec<_> = parsed.warnings().iter().map(ToString::to_string).collect();
            format!("{parsed:?} {parsed:#?} {warnings:?}")
        }
        Err(error) => format!("{error} {error:?} {error:#?}"),
    }
}

/// Connection strings for each kind of error, with a secret where it hurts.
const BROKEN: [(&str, &str); 29] = [
    ("AuthSourceEmpty", "mongodb://u:hunter2hunter2@a/?authSource="),
    ("Conflict", "mongodb://u:hunter2hunter2@a/?loadBalanced=true&replicaSet=r"),
    ("Credential", "mongodb://u:hunter2hunter2@a/?authMechanism=MONGODB-X509"),
    ("Database", "mongodb://u:p@a/b c?tlsCertificateKeyFilePassword=hunter2hunter2"),
    ("Encoding", "mongodb://u:%hunter2hunter2@a"),
    ("Host", "mongodb://u:hunter2hunter2"),
    ("NoHost", "mongodb://u:hunter2hunter2@"),
    ("NotAPair", "mongodb://u:p@ss?hunter2hunter2@a"),
    ("NotInUri", "mongodb+srv://u:hunter2hunter2@a/?srvHostValidator=hunter2hunter2"),
    ("OfPrimary", "mongodb://u:hunter2hunter2@a/?readPreferenceTags=a:hunter2hunter2"),
    ("Pool", "mongodb://u:hunter2hunter2@a/?minPoolSize=9&maxPoolSize=8"),
    ("ProxyCredentialHalf", "mongodb://a/?proxyHost=p&proxyPassword=hunter2hunter2"),
    ("ProxyHostMissing", "mongodb://a/?proxyPassword=hunter2hunter2"),
    ("ProxyRepeated", "mongodb://a/?proxyPassword=hunter2hunter2&proxyPassword=x"),
    ("Scheme", "mongodb:/u:hunter2hunter2@a"),
    ("SeveralHosts", "mongodb://u:hunter2hunter2@a,b/?directConnection=true"),
    ("SrvAllowedHostsSuffix", "mongodb+srv://a/?srvAllowedHostsSuffix=hunter2hunter2"),
    ("SrvHost", "mongodb+srv://u:hunter2hunter2@[::1]"),
    ("SrvOnly", "mongodb://u:hunter2hunter2@a/?srvMaxHosts=1"),
    ("SrvPort", "mongodb+srv://u:hunter2hunter2@a:5"),
    ("SrvServiceName", "mongodb+srv://a/?srvServiceName=hunter2hunter2-"),
    ("SrvSeveralHosts", "mongodb+srv://u:hunter2hunter2@a,b"),
    ("TlsDisagrees", "mongodb://u:hunter2hunter2@a/?tls=true&ssl=false"),
    ("UnknownMechanism", "mongodb://u:p@a/?authMechanism=hunter2hunter2"),
    ("Unsafe", "mongodb://u:hunter2hunter2@a/?tls=hunter2hunter2"),
    ("Userinfo", "mongodb://u:@hunter2hunter2@a"),
    ("UserinfoCut", "mongodb://u:/hunter2hunter2@a"),
    ("UserinfoCut", "mongodb://u:?hunter2hunter2@a"),
    ("UserinfoCut", "mongodb://u:1/hunter2hunter2@a/?w=1"),
];

// LG-56
#[test]
fn no_kind_of_error_shows_a_secret() {
    let mut kinds = BTreeSet::new();
    for (kind, uri) in BROKEN {
        let outcome = ConnectionString::parse(uri);
        let debug = format!("{:?}", outcome.as_ref().expect_err(uri));
        let seen = debug.split([' ', '(']).next();
        assert_eq!(seen, Some(kind), "{uri}: {debug}");
        assert!(!shown(&outcome).contains(MARK), "{uri}: {}", shown(&outcome));
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 27, "each kind of error has its line above");
}

/// Secrets that are in their place, and secrets that an unescaped character cut in two.
const READ: [&str; 10] = [
    "mongodb://hunter2hunter2:p@a",
    "mongodb://u:hunter2hunter2@a",
    "mongodb://a/?tlsCertificateKeyFilePassword=hunter2hunter2",
    "mongodb://a/?tlsCertificateKeyFilePassword=x&hunter2hunter2=y&hunter2hunter2=z",
    "mongodb://a/?proxyHost=p&proxyUsername=u&proxyPassword=hunter2hunter2",
    "mongodb://a/?proxyHost=p&proxyUsername=u&proxyPassword=x&hunter2hunter2=y",
    "mongodb://u:p@a/?authMechanism=MONGODB-AWS\
     &authMechanismProperties=AWS_SESSION_TOKEN:hunter2hunter2",
    "mongodb://u:p@a/?authMechanism=MONGODB-AWS\
     &authMechanismProperties=AWS_SESSION_TOKEN:x,hunter2hunter2",
    "mongodb://u:1?hunter2hunter2=x@a",
    "mongodb://u:p@s?hunter2hunter2=x@a",
];

#[test]
fn no_result_shows_a_secret() {
    for uri in READ {
        let outcome = ConnectionString::parse(uri);
        assert!(outcome.is_ok(), "{uri}: {outcome:?}");
        assert!(!shown(&outcome).contains(MARK), "{uri}: {}", shown(&outcome));
    }
}

/// Text that has to do with connection strings more often than chance would have it.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "mongodb://",
        "u:p@",
        "[::1]",
        "%2Ftmp%2Fa.sock",
        "%",
        "%C3",
        "?",
        "/",
        "&",
        "=",
        ":",
        ",",
        "@",
        "maxPoolSize=5",
        "authMechanism=MONGODB-OIDC",
        "authMechanismProperties=",
        "A:b",
        "ENVIRONMENT:azure",
        "readPreferenceTags=a:b",
        "compressors=zlib",
        "tls=true",
        "é",
        "９",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24)
        .prop_map(|pieces| pieces.concat())
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

proptest! {
    /// An encoded password comes back as it was and is not shown, whatever follows it.
    #[test]
    fn an_encoded_password_is_kept_and_hidden(
        before in any::<String>(), after in any::<String>(), rest in pieces(),
    ) {
        let password = format!("{before}{MARK}{after}");
        let uri = format!("mongodb://u:{}@db", encoded(&password));
        let outcome = ConnectionString::parse(&uri);
        prop_assert!(!shown(&outcome).contains(MARK));
        let kept = outcome.unwrap().credential.and_then(|credential| credential.password);
        prop_assert_eq!(kept.as_ref().map(Secret::expose), Some(password.as_str()));

        for uri in [format!("{uri}/?{rest}"), format!("{uri}{rest}")] {
            let outcome = ConnectionString::parse(&uri);
            prop_assert!(!shown(&outcome).contains(MARK), "{}: {}", uri, shown(&outcome));
        }
    }

    /// A password in which something was forgotten to be encoded is not shown either.
    #[test]
    fn a_password_with_an_unescaped_character_is_hidden(
        before in "[a-z0-9]{0,4}", odd in "[/@:#%\\[\\], &=]{0,3}", after in "[a-z0-9 /@:,]{0,4}",
    ) {
        let uri = format!("mongodb://u:{before}{odd}{MARK}{after}@db.example.com/shop?w=1");
        let outcome = ConnectionString::parse(&uri);
        prop_assert!(!shown(&outcome).contains(MARK), "{}: {}", uri, shown(&outcome));
    }
}
