//! Which servers SRV records may name where a connection string or an embedder says so.

#![cfg(feature = "std")]

use cenote_core::uri::srv::{SrvAnswers, SrvError, SrvRecord};
use cenote_core::uri::{ConnectionString, SuffixProblem, UriError};

fn parse(uri: &str) -> ConnectionString {
    ConnectionString::parse(uri).expect("a connection string")
}

fn answer(target: &str) -> SrvAnswers {
    SrvAnswers { srv: Ok(vec![SrvRecord::new(target, 1)]), txt: Ok(Vec::new()) }
}

fn resolve(uri: &str, target: &str) -> Result<ConnectionString, SrvError> {
    parse(uri).resolve(&answer(target), || 0)
}

#[test]
fn suffixes_that_are_refused() {
    let suffix = |problem| UriError::SrvAllowedHostsSuffix { problem };
    for (options, expected) in [
        ("srvAllowedHostsSuffix=", suffix(SuffixProblem::Empty)),
        ("srvAllowedHostsSuffix=..", suffix(SuffixProblem::Empty)),
        ("srvAllowedHostsSuffix=.com.", suffix(SuffixProblem::SingleLabel)),
        ("srvHostValidator=true", UriError::NotInUri { option: "srvHostValidator" }),
    ] {
        let uri = format!("mongodb+srv://a.b.c/?{options}");
        assert_eq!(ConnectionString::parse(&uri), Err(expected), "{uri}");
    }
    let of = |suffix: &str| {
        let srv = parse("mongodb+srv://a.b.c").srv.expect("the scheme says so");
        srv.with_allowed_hosts_suffix(suffix)
    };
    assert_eq!(of("com"), Err(suffix(SuffixProblem::SingleLabel)));
    // Encoded, it is shorter.
    let hidden =
        of("\u{ad}.com").expect("two labels").encode_names(|name| name.replace('\u{ad}', ""));
    assert_eq!(hidden, Err(suffix(SuffixProblem::SingleLabel)));
}

#[test]
fn an_allowed_suffix_takes_the_place_of_the_domain() {
    for (host, suffix, target, is_allowed) in [
        ("blogs.mongodb.com", "evil.net", "db.evil.net", true),
        ("blogs.mongodb.com", ".Evil.NET.", "DB.evil.net.", true),
        ("blogs.mongodb.com", "my_domain.net", "db.my_domain.net", true),
        ("blogs.mongodb.com", "evil.net", "evil.net", false),
        ("blogs.mongodb.com", "evil.net", "db.eevil.net", false),
        ("blogs.mongodb.com", "evil.net", "db.mongodb.com", false),
        ("mongo.local", "mongo.local", "mongo.local", false),
        ("localhost", "LOCAL", "db.local", true),
        ("localhost", "mail", "mail", false),
        ("mongo.local", "a.mongo.local", "mongo.local", false),
        ("blogs.mongodb.com", "blogs.mongodb.com", "a.blogs.mongodb.com", true),
    ] {
        let uri = format!("mongodb+srv://{host}/?srvAllowedHostsSuffix={suffix}");
        let resolved = resolve(&uri, target);
        assert_eq!(resolved.is_ok(), is_allowed, "{suffix} {target}: {resolved:?}");
    }
    for name in "test localhost invalid example local internal corp home mail".split(' ') {
        let uri = format!("mongodb+srv://a.b.c/?srvAllowedHostsSuffix={name}");
        let target = format!("db.{name}");
        assert!(resolve(&uri, &target).is_ok(), "{name}");
    }
}

/// As UTS #46 encodes `bücher`.
#[test]
fn names_are_compared_as_name_servers_have_them() {
    let encode = |name: &str| name.replace("bücher", "xn--bcher-kva");
    let server = "db.xn--bcher-kva.example";
    for uri in [
        "mongodb+srv://cluster.Bücher.example",
        "mongodb+srv://a.b.c/?srvAllowedHostsSuffix=B%C3%BCcher.example",
    ] {
        let mut uri = parse(uri);
        let srv = uri.srv.take().expect("the scheme says so");
        uri.srv = Some(srv.encode_names(encode).expect("two labels"));
        let resolved = uri.resolve(&answer(server), || 0).expect("it is below the domain");
        assert_eq!(resolved.hosts[0].host(), server);
    }
}
