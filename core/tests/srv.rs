//! `mongodb+srv://`: which names are looked up, and what follows from the answers.

#![cfg(feature = "std")]

use cenote_core::uri::srv::{LookupError, SrvAnswers, SrvError, SrvRecord, TxtRecord};
use cenote_core::uri::{ConnectionString, CredentialProblem, Mechanism, UriError};

fn answers(targets: &[(&str, u16)], txt: &[&str]) -> SrvAnswers {
    let record = |&(target, port): &(&str, u16)| SrvRecord::new(target, port);
    SrvAnswers {
        srv: Ok(targets.iter().map(record).collect()),
        txt: Ok(txt.iter().copied().map(TxtRecord::from).collect()),
    }
}

fn resolve(uri: &str, answers: &SrvAnswers) -> Result<ConnectionString, SrvError> {
    ConnectionString::parse(uri).expect("a connection string").resolve(answers, || 0)
}

fn hosts(uri: &ConnectionString) -> Vec<String> {
    uri.hosts.iter().map(ToString::to_string).collect()
}

const ONE: &[(&str, u16)] = &[("a.example.com.", 27017)];

// OP-53, TL-01, SV-08
#[test]
fn the_names_to_look_up() {
    for (uri, srv_name, txt_name, domain) in [
        (
            "mongodb+srv://a.b.example.com",
            "_mongodb._tcp.a.b.example.com",
            "a.b.example.com",
            "b.example.com",
        ),
        (
            "mongodb+srv://A.B.Example.com./shop",
            "_mongodb._tcp.a.b.example.com",
            "a.b.example.com",
            "b.example.com",
        ),
        ("mongodb+srv://u:p@c.x.y/?srvServiceName=my-db", "_my-db._tcp.c.x.y", "c.x.y", "x.y"),
        ("mongodb+srv://mongo.local", "_mongodb._tcp.mongo.local", "mongo.local", "mongo.local"),
        ("mongodb+srv://localhost", "_mongodb._tcp.localhost", "localhost", "localhost"),
    ] {
        let parsed = ConnectionString::parse(uri).expect("a connection string");
        let srv = parsed.srv.as_ref().expect("the scheme says so");
        assert_eq!((&*srv.srv_name(), srv.txt_name(), srv.domain()), (srv_name, txt_name, domain));
        assert!(parsed.hosts.is_empty() && parsed.tls.enabled(), "{uri}");
    }
}

// OP-53, SV-02
#[test]
fn what_is_refused_before_any_look_up() {
    let conflict = |first, second| UriError::Conflict { first, second };
    let long = format!("mongodb+srv://a.b.c/?srvServiceName={}", "x".repeat(63));
    for (uri, expected) in [
        ("mongodb+srv://", UriError::NoHost),
        ("mongodb+srv://a.b.c,d.e.f", UriError::SrvSeveralHosts),
        ("mongodb+srv://a.b.c:27017", UriError::SrvPort),
        ("mongodb+srv://192.0.2.7", UriError::SrvHost),
        ("mongodb+srv://[::1]", UriError::SrvHost),
        ("mongodb+srv://%2Ftmp%2Fdb.sock", UriError::SrvHost),
        ("mongodb+srv://a.b.c/?srvServiceName=", UriError::SrvServiceName),
        ("mongodb+srv://a.b.c/?srvServiceName=-x", UriError::SrvServiceName),
        ("mongodb+srv://a.b.c/?srvServiceName=x--y", UriError::SrvServiceName),
        ("mongodb+srv://a.b.c/?srvServiceName=123", UriError::SrvServiceName),
        ("mongodb+srv://a.b.c/?srvServiceName=my.db", UriError::SrvServiceName),
        (&long, UriError::SrvServiceName),
        (
            "mongodb+srv://a.b.c/?srvMaxHosts=1&replicaSet=rs0",
            conflict("srvMaxHosts", "replicaSet"),
        ),
        (
            "mongodb+srv://a.b.c/?srvMaxHosts=1&loadBalanced=true",
            conflict("srvMaxHosts", "loadBalanced=true"),
        ),
        (
            "mongodb+srv://a.b.c/?directConnection=true",
            conflict("mongodb+srv://", "directConnection=true"),
        ),
    ] {
        assert_eq!(ConnectionString::parse(uri), Err(expected), "{uri}");
    }
}

/// The prose tests 1 to 4 of the specification.
// SV-03
#[test]
fn servers_are_below_the_domain() {
    for (host, target, is_below) in [
        ("localhost", "a.localhost", true),
        ("localhost", "a.b.localhost", true),
        ("mongo.local", "a.mongo.local", true),
        ("blogs.mongodb.com", "a.b.mongodb.com", true),
        ("blogs.mongodb.com", "blogs.mongodb.com", true),
        ("localhost", "localhost.mongodb", false),
        ("mongo.local", "test_1.evil.local", false),
        ("blogs.mongodb.com", "blogs.evil.com", false),
        ("localhost", "localhost", false),
        ("mongo.local", "mongo.local", false),
        ("blogs.mongodb.com", "mongodb.com", false),
        ("blogs.mongodb.com", ".mongodb.com", false),
        ("localhost", "test_1.cluster_1localhost", false),
        ("mongo.local", "test_1.my_hostmongo.local", false),
        ("blogs.mongodb.com", "cluster.testmongodb.com", false),
    ] {
        let resolved = resolve(&format!("mongodb+srv://{host}"), &answers(&[(target, 1)], &[]));
        match resolved {
            Ok(uri) => {
                assert!(is_below && hosts(&uri) == [format!("{target}:1")], "{host} {target}");
            }
            Err(error) => {
                assert!(!is_below, "{error}");
                let SrvError::OutsideDomain { host: its, target: named, .. } = &error else {
                    panic!("{error}");
                };
                assert_eq!((&**its, &**named), (host, target));
            }
        }
    }
}

#[test]
fn servers_that_differ_in_case_are_one() {
    let found = answers(
        &[("B.Example.com.", 1), ("a.example.com", 1), ("b.EXAMPLE.com", 1), ("b.example.com", 2)],
        &[],
    );
    let uri = resolve("mongodb+srv://SHOP.Example.COM", &found).expect("hosts");
    assert_eq!(hosts(&uri), ["b.example.com:1", "a.example.com:1", "b.example.com:2"]);
}

// OP-53, SV-07
#[test]
fn as_many_as_srv_max_hosts_by_chance() {
    let targets: Vec<_> = (1..=9).map(|port| ("a.example.com", port)).collect();
    let found = answers(&targets, &[]);
    let chosen = |count: u32, seed: u64| {
        let uri = format!("mongodb+srv://shop.example.com/?srvMaxHosts={count}");
        let mut next = seed;
        let random = || {
            next = next
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            next >> 33
        };
        let uri = ConnectionString::parse(&uri).expect("a connection string");
        hosts(&uri.resolve(&found, random).expect("hosts"))
    };
    for count in [0, 9, 10, 2_147_483_647] {
        let in_order: Vec<_> = (1..=9).map(|port| format!("a.example.com:{port}")).collect();
        assert_eq!(chosen(count, 7), in_order, "{count}");
    }
    let mut ever = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let three = chosen(3, seed);
        assert_eq!(three, chosen(3, seed), "the same numbers, the same choice");
        assert_eq!(three.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        ever.extend(three);
    }
    assert_eq!(ever.len(), 9, "each has its chance");
}

// OP-53, SV-06
#[test]
fn the_txt_record_sets_what_the_connection_string_does_not() {
    let txt = "authSource=thatDB&replicaSet=rs0&loadBalanced=false";
    let of = |options: &str| {
        let uri = format!("mongodb+srv://u:p@shop.example.com/mine?{options}");
        resolve(&uri, &answers(ONE, &[txt])).expect("hosts")
    };
    let source = |uri: &ConnectionString| uri.credential.as_ref().map(|it| it.source.clone());
    let uri = of("");
    assert_eq!(source(&uri).as_deref(), Some("thatDB"));
    assert_eq!(uri.topology.replica_set.as_deref(), Some("rs0"));
    assert_eq!((uri.topology.load_balanced, uri.pool.load_balanced), (Some(false), Some(false)));
    let uri = of("authSource=other&replicaSet=rs1");
    assert_eq!(source(&uri).as_deref(), Some("other"));
    assert_eq!(uri.topology.replica_set.as_deref(), Some("rs1"));
    assert!(uri.warnings().is_empty());
    assert!(!of("tls=false").tls.enabled());
}

#[test]
fn values_of_the_txt_record_that_mean_nothing_are_warned_of() {
    let uri = resolve("mongodb+srv://shop.example.com", &answers(ONE, &["loadBalanced=maybe&&"]));
    let uri = uri.expect("hosts");
    let warnings: Vec<_> = uri.warnings().iter().map(ToString::to_string).collect();
    let boolean = "TXT record: loadBalanced: the value is not `true` or `false`; it is ignored";
    assert!(warnings.iter().any(|warning| warning == boolean), "{warnings:?}");
    assert_eq!(uri.topology.load_balanced, None);
}

#[test]
fn a_connection_string_with_hosts_stays_as_it_is() {
    let uri = ConnectionString::parse("mongodb://a,b").expect("a connection string");
    assert_eq!(uri.clone().resolve(&answers(ONE, &["replicaSet=rs0"]), || 0), Ok(uri));
}

/// Each names the host, what is wrong and what to do, and nothing of the credential.
// SV-04
#[test]
fn bad_answers() {
    let of = |uri: &str, answers: &SrvAnswers| {
        let uri = uri.replace("+srv://", "+srv://bob:hunter2@");
        let error = resolve(&uri, answers).expect_err(&uri);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        error.to_string()
    };
    let shop = "mongodb+srv://shop.example.com";
    let advice =
        "check the host and srvServiceName, or write `mongodb://` if it is a server itself";
    let no_srv = |error| SrvAnswers { srv: Err(error), txt: Ok(Vec::new()) };
    let no_txt = |error| SrvAnswers { txt: Err(error), ..answers(ONE, &[]) };
    let timeout = || LookupError::TimedOut { after: std::time::Duration::from_secs(10) };
    let way = "check the name servers and the way to them";
    let name = "no servers for shop.example.com: SRV records of _mongodb._tcp.shop.example.com";
    let latin = TxtRecord { strings: vec![vec![0xE9]] };
    for (uri, found, expected) in [
        (shop, no_srv(LookupError::NotFound), format!("{name}: the name does not exist: {advice}")),
        (shop, answers(&[], &[]), format!("{name}: the name has no such records: {advice}")),
        (shop, no_srv(timeout()), format!("{name}: no name server answered within 10s: {way}")),
        (shop, no_srv(LookupError::Failed("refused\nforged".to_owned())), format!("{name}: refused forged: {way}")),
        (
            shop,
            no_txt(timeout()),
            format!("no options for shop.example.com: its TXT record: no name server answered within 10s: {way}"),
        ),
        (
            shop,
            answers(&[("db.evil.com.", 1)], &[]),
            "an SRV record of shop.example.com names db.evil.com., which is not below example.com: correct the \
             record, and do not trust the name server before you know where it comes from"
                .to_owned(),
        ),
        (
            shop,
            answers(&[("a.example.com.", 0)], &[]),
            "an SRV record of shop.example.com names a.example.com. with port 0: the port is not a whole number \
             from 1 to 65535: correct the record"
                .to_owned(),
        ),
        (
            shop,
            answers(&[(".", 1)], &[]),
            "an SRV record of shop.example.com names . with port 1: the host is empty: write a host name, an IP \
             address or the path of a socket: correct the record"
                .to_owned(),
        ),
        (
            shop,
            answers(ONE, &["replicaSet=rs0", "authSource=x"]),
            "shop.example.com has 2 TXT records, but may have one: write all options into it, joined by `&`".to_owned(),
        ),
        (
            shop,
            answers(ONE, &["replicaSet=rs0&ssl=false"]),
            "the TXT record of shop.example.com sets ssl, but may only set authSource, replicaSet and loadBalanced: \
             remove it there, and write it into the connection string if it is needed"
                .to_owned(),
        ),
        (
            shop,
            answers(ONE, &["authSource"]),
            "the TXT record of shop.example.com: option 1 is not of the form `name=value`: write a name, `=` and a \
             value"
                .to_owned(),
        ),
        (
            shop,
            SrvAnswers { txt: Ok(vec![latin]), ..answers(ONE, &[]) },
            "the TXT record of shop.example.com is not UTF-8: correct the record".to_owned(),
        ),
        (
            shop,
            answers(&[("a.example.com", 1), ("b.example.com", 1)], &["loadBalanced=true"]),
            "shop.example.com, with its SRV and TXT records: loadBalanced=true needs exactly one host, but there \
             are 2: remove it or the others"
                .to_owned(),
        ),
        (
            "mongodb+srv://shop.example.com/?srvMaxHosts=1",
            answers(ONE, &["replicaSet=rs0"]),
            "shop.example.com, with its SRV and TXT records: srvMaxHosts and replicaSet exclude each other: remove \
             one of them"
                .to_owned(),
        ),
    ] {
        assert_eq!(of(uri, &found), expected);
    }
    // A name that has no TXT record is the usual case.
    for none in [LookupError::NotFound, LookupError::NoRecords] {
        assert!(resolve(shop, &no_txt(none)).is_ok());
    }
}

#[test]
fn an_auth_source_that_the_mechanism_cannot_have() {
    let uri = "mongodb+srv://shop.example.com/?authMechanism=MONGODB-X509";
    let error = UriError::Credential {
        mechanism: Some(Mechanism::MongodbX509),
        problem: CredentialProblem::SourceNotExternal,
    };
    let host = "shop.example.com".to_owned();
    let refused = resolve(uri, &answers(ONE, &["authSource=shop"]));
    assert_eq!(refused, Err(SrvError::Options { host, error }));
    assert!(resolve(uri, &answers(ONE, &["authSource=$external"])).is_ok());
}
