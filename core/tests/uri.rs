//! What a connection string means, rule by rule: one line for each, with the requirement's id.

#![cfg(feature = "std")]

use std::time::Duration;

use cenote_core::{
    address::{AddressError, ServerAddress},
    uri::{
        Compressor, ConnectionString, Mechanism, ReadPreferenceMode, Secret, ServerMonitoringMode,
        WriteConcern,
    },
};

fn parse(uri: &str) -> ConnectionString {
    ConnectionString::parse(uri).unwrap_or_else(|error| panic!("{uri}: {error}"))
}

#[test]
fn hosts_are_read() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("OP-47", "mongodb://db", &["db:27017"]),
        ("OP-47", "mongodb://db:1", &["db:1"]),
        ("OP-47", "mongodb://db:65535/", &["db:65535"]),
        ("OP-46", "mongodb://a,b:2,c:3/", &["a:27017", "b:2", "c:3"]),
        ("OP-46", "mongodb://10.0.0.7:28000", &["10.0.0.7:28000"]),
        ("OP-46", "mongodb://[2001:DB8:0:0::7]", &["[2001:db8::7]:27017"]),
        ("OP-46", "mongodb://[fe80::1]:5,x", &["[fe80::1]:5", "x:27017"]),
        ("OP-46", "mongodb://[fe80::]:5", &["[fe80::]:5"]),
        ("OP-46", "mongodb://%2Frun%2Fdb%2Fmain.sock", &["/run/db/main.sock"]),
        ("OP-46", "mongodb://main.sock", &["main.sock:27017"]),
        ("OP-48", "mongodb://DB.Example.COM", &["db.example.com:27017"]),
        ("OP-48", "mongodb://BÜRO.example", &["büro.example:27017"]),
        ("OP-48", "mongodb://%2FRun%2FDB.sock", &["/Run/DB.sock"]),
        ("OP-44", "mongodb://db?appname=a/b", &["db:27017"]),
        ("OP-44", "mongodb://u:p@db?tlsCAFile=/etc/ca.pem", &["db:27017"]),
        ("OP-44", "mongodb://db/?", &["db:27017"]),
    ];
    for (rule, uri, expected) in cases {
        let seen: Vec<_> = parse(uri).hosts.iter().map(ToString::to_string).collect();
        assert_eq!(seen, *expected, "{rule} {uri}");
    }
}

#[test]
fn accessors_leave_brackets_and_missing_ports_out() {
    let address = ServerAddress::tcp("[::1]", 5).unwrap();
    assert_eq!((address.host(), address.port()), ("::1", Some(5)));
    let address = ServerAddress::unix("/x.sock").unwrap();
    assert_eq!((address.host(), address.port()), ("/x.sock", None));
    assert_eq!(ServerAddress::tcp("db", 0), Err(AddressError::Port));
}

/// What DNS lets a name have.
#[test]
fn a_host_may_have_253_characters() {
    let longest = "ü".repeat(ServerAddress::MAX_HOST_LENGTH);
    assert_eq!(ServerAddress::tcp(&longest, 1).unwrap().host(), longest);
    assert_eq!(ServerAddress::tcp(&(longest + "x"), 1), Err(AddressError::TooLong));
}

// OP-26: of 128 bytes.
const LONGEST_NAME: &str = "appname=\
    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

// OP-01, OP-13, TL-02
#[test]
fn options_are_read_without_a_warning() {
    type Holds = fn(&ConnectionString) -> bool;
    let cases: &[(&str, &str, Holds)] = &[
        ("OP-02", "maxPoolSize=0", |it| it.pool.max_pool_size == Some(0)),
        ("OP-03", "minPoolSize=100", |it| it.pool.min_pool_size == Some(100)),
        ("OP-04", "minPoolSize=500&maxPoolSize=0", |it| it.pool.min_pool_size == Some(500)),
        ("OP-05", "maxIdleTimeMS=0", |it| it.pool.max_idle_time == Some(Duration::ZERO)),
        ("OP-06", "maxConnecting=1", |it| it.pool.max_connecting == Some(1)),
        ("OP-07", "waitQueueTimeoutMS=0", |it| it.pool.wait_queue_timeout == Some(Duration::ZERO)),
        ("OP-18", "connectTimeoutMS=5", |it| it.timeouts.connect == Some(Duration::from_millis(5))),
        ("OP-19", "socketTimeoutMS=5", |it| it.timeouts.socket == Some(Duration::from_millis(5))),
        ("OP-19", "socketTimeoutMS=0", |it| it.timeouts.socket == Some(Duration::ZERO)),
        ("OP-20", "timeoutMS=4294967296", |it| {
            it.timeouts.operation == Some(Duration::from_millis(1 << 32))
        }),
        ("OP-21", "serverSelectionTimeoutMS=1", |it| {
            it.topology.server_selection_timeout == Some(Duration::from_millis(1))
        }),
        ("OP-22", "heartbeatFrequencyMS=500", |it| {
            it.monitoring.heartbeat_frequency == Some(Duration::from_millis(500))
        }),
        ("OP-23", "loadBalanced=true", |it| it.pool.load_balanced == Some(true)),
        ("OP-24", "loadBalanced=false&replicaSet=rs", |it| {
            it.topology.replica_set.as_deref() == Some("rs")
        }),
        ("OP-25", "directConnection=true", |it| it.topology.direct_connection == Some(true)),
        ("OP-26", "appname=billing%20job", |it| it.app_name.as_deref() == Some("billing job")),
        ("OP-28", "zlibCompressionLevel=-1", |it| {
            it.compression.zlib_compression_level == Some(-1)
        }),
        ("OP-29", "maxAdaptiveRetries=0&enableOverloadRetargeting=true", |it| {
            it.retries.max_adaptive_retries == Some(0)
                && it.retries.enable_overload_retargeting == Some(true)
        }),
        ("OP-30", "serverMonitoringMode=poll", |it| {
            it.monitoring.server_monitoring_mode == Some(ServerMonitoringMode::Poll)
        }),
        ("OP-31", "retryReads=false&retryWrites=false", |it| {
            (it.retries.retry_reads, it.retries.retry_writes) == (Some(false), Some(false))
        }),
        ("OP-39", "MAXPOOLSIZE=7", |it| it.pool.max_pool_size == Some(7)),
        ("OP-40", "replicaSet=a=b", |it| it.topology.replica_set.as_deref() == Some("a=b")),
        ("OP-40", "replicaSet=%E2%82%AC", |it| it.topology.replica_set.as_deref() == Some("€")),
        ("OP-50", "replicaSet=a+b;c", |it| it.topology.replica_set.as_deref() == Some("a+b;c")),
        ("TL-01", "tlsCAFile=ca.pem", |it| it.tls.enabled() && it.tls.tls.is_none()),
        ("TL-01", "tlsCAFile=ca.pem&tls=false", |it| !it.tls.enabled()),
        ("TL-01", "appname=a", |it| !it.tls.enabled()),
        ("TL-03", "tlsAllowInvalidCertificates=true", |it| {
            it.tls.allow_invalid_certificates == Some(true)
        }),
        ("TL-04", "ssl=true&tls=true&ssl=true", |it| it.tls.tls == Some(true)),
        ("SX-01", "proxyHost=px", |it| it.proxy.as_ref().is_some_and(|px| px.port.is_none())),
        ("SX-02", "proxyHost=px&proxyUsername=&proxyPassword=", |it| {
            it.proxy.as_ref().is_some_and(|proxy| proxy.credential.is_none())
        }),
        ("SX-02", "proxyHost=px&proxyUsername=u&proxyPassword=p", |it| {
            let credential = it.proxy.as_ref().and_then(|proxy| proxy.credential.as_ref());
            credential.is_some_and(|credential| credential.password.expose() == "p")
        }),
        ("OP-36", "w=0", |it| it.read_write.write_concern == Some(WriteConcern::Members(0))),
        ("OP-36", "w=near", |it| {
            it.read_write.write_concern == Some(WriteConcern::Named("near".to_owned()))
        }),
        ("OP-51", "readPreference=nearest&readPreferenceTags=a:b:c&readPreferenceTags=", |it| {
            let sets = &it.read_write.read_preference_tags;
            it.read_write.read_preference == Some(ReadPreferenceMode::Nearest)
                && sets[0]["a"] == "b:c"
                && sets[1].is_empty()
        }),
        ("OP-36", "maxStalenessSeconds=-1", |it| it.read_write.max_staleness.is_none()),
        ("OP-36", "readPreference=primary&maxStalenessSeconds=-1&readPreferenceTags=", |it| {
            it.read_write.max_staleness.is_none()
        }),
        ("OP-36", "readPreference=secondary&maxStalenessSeconds=90", |it| {
            it.read_write.max_staleness == Some(Duration::from_secs(90))
        }),
        ("OP-36", "readPreference=nearest&maxStalenessSeconds=2147483647", |it| {
            it.read_write.max_staleness == Some(Duration::from_secs(2_147_483_647))
        }),
        ("OP-26", LONGEST_NAME, |it| {
            it.app_name.as_deref() == LONGEST_NAME.strip_prefix("appname=")
        }),
        ("AU-06", "authSource=x", |it| it.credential.is_none()),
    ];
    for (rule, options, holds) in cases {
        let parsed = parse(&format!("mongodb://db/?{options}"));
        assert_eq!(parsed.warnings(), [], "{rule} {options}");
        assert!(holds(&parsed), "{rule} {options}: {parsed:?}");
    }
}

// OP-27, CM-12
#[test]
fn a_compressor_that_is_not_built_in_is_reported() {
    let uri = parse("mongodb://db/?compressors=zstd,brotli,zlib,snappy,zstd");
    let all = vec![Compressor::Zstd, Compressor::Zlib, Compressor::Snappy];
    assert_eq!(uri.compression.compressors.as_ref(), Some(&all));
    let built = [cfg!(feature = "zstd"), cfg!(feature = "zlib"), cfg!(feature = "snappy")];
    let not_offered = |name| format!("{name} is not offered, because the feature `{name}` is off");
    let mut expected =
        ["entry 2 is none of snappy, zlib, zstd; it is left out".to_owned()].to_vec();
    for (compressor, is_built) in all.iter().zip(built) {
        assert_eq!(compressor.is_built(), is_built, "{compressor:?}");
        if !is_built {
            expected.push(not_offered(compressor.name()));
        }
    }
    let mut warnings: Vec<_> = uri.warnings().iter().map(|it| it.problem().to_string()).collect();
    warnings.sort();
    expected.sort();
    assert_eq!(warnings, expected);
}

#[test]
fn what_is_ignored_is_said() {
    let too_long = format!("appname={}x", "é".repeat(64));
    // The warning is `{option}: {problem}`; `not …` stands for `the value is not …; it is ignored`.
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "OP-35",
            "maxPolSize=5",
            &["maxPolSize: no such option, did you mean maxPoolSize? It is ignored"],
        ),
        // OP-14
        ("OP-17", "waitQueueMultiple=5", &["waitQueueMultiple: no such option; it is ignored"]),
        ("OP-32", "apiVersion=1", &["apiVersion: no such option; it is ignored"]),
        ("OP-35", "x%20y=5", &["option 1: no such option; it is ignored"]),
        ("OP-36", "maxPoolSize=-1", &["maxPoolSize: not a whole number from 0 to 2147483647"]),
        (
            "OP-33",
            "maxPoolSize=2147483648",
            &["maxPoolSize: not a whole number from 0 to 2147483647"],
        ),
        ("OP-36", "minPoolSize=%2B5", &["minPoolSize: not a whole number from 0 to 2147483647"]),
        ("OP-37", "maxConnecting=0", &["maxConnecting: not a whole number from 1 to 2147483647"]),
        ("OP-38", "maxIdleTimeMS=", &["maxIdleTimeMS: not a whole number from 0 to 2147483647"]),
        (
            "OP-21",
            "serverSelectionTimeoutMS=0",
            &["serverSelectionTimeoutMS: not a whole number from 1 to 2147483647"],
        ),
        (
            "OP-22",
            "heartbeatFrequencyMS=499",
            &["heartbeatFrequencyMS: not a whole number from 500 to 2147483647"],
        ),
        (
            "OP-29",
            "maxAdaptiveRetries=-1&enableOverloadRetargeting=often",
            &[
                "maxAdaptiveRetries: not a whole number from 0 to 2147483647",
                "enableOverloadRetargeting: not `true` or `false`",
            ],
        ),
        (
            "OP-55",
            "connectTimeoutMS=soon",
            &["connectTimeoutMS: not a whole number from 0 to 2147483647"],
        ),
        (
            "OP-55",
            "heartbeatFrequencyMS=-2",
            &["heartbeatFrequencyMS: not a whole number from 500 to 2147483647"],
        ),
        ("OP-20", "timeoutMS=-1", &["timeoutMS: not a whole number from 0 to 9223372036854775807"]),
        ("OP-36", "proxyHost=p&proxyPort=0", &["proxyPort: not a whole number from 1 to 65535"]),
        ("OP-36", "w=-1", &["w: not a number of members or a write concern's name"]),
        ("OP-36", "w=", &["w: not a number of members or a write concern's name"]),
        (
            "OP-36",
            "maxStalenessSeconds=89",
            &["maxStalenessSeconds: not a whole number from 90 to 2147483647"],
        ),
        ("OP-26", &too_long, &["appname: not a text of 1 to 128 bytes"]),
        ("OP-38", "replicaSet=", &["replicaSet: not a text of at least one byte"]),
        (
            "OP-28",
            "zlibCompressionLevel=10",
            &["zlibCompressionLevel: not a whole number from -1 to 9"],
        ),
        (
            "OP-30",
            "serverMonitoringMode=Poll",
            &["serverMonitoringMode: not one of auto, stream, poll"],
        ),
        ("OP-38", "journal=", &["journal: not `true` or `false`"]),
        ("TL-05", "tlsInsecure=maybe", &["tlsInsecure: not `true` or `false`"]),
        (
            "OP-41",
            "loadBalanced=yes",
            &["loadBalanced: not written `true` or `false`; it is read as `true`"],
        ),
        ("OP-41", "tls=-1", &["tls: not written `true` or `false`; it is read as `false`"]),
        ("OP-42", "appname=a&appname=b", &["appname: given more than once; the first one counts"]),
        ("OP-43", "j=true", &["j: an old name; it is applied as journal"]),
        (
            "OP-43",
            "wtimeout=5&wTimeoutMS=9",
            &["wtimeout: an old name of wTimeoutMS, which is given too; it is ignored"],
        ),
        (
            "OP-51",
            "readPreferenceTags=dc",
            &["readPreferenceTags: not a list of `name:value` pairs separated by commas"],
        ),
        (
            "AU-06",
            "authMechanismProperties=SERVICE_NAME:x",
            &["authMechanismProperties: does nothing without a credential; it is ignored"],
        ),
        (
            "in the order of the text",
            "b=1&&minPoolSize=x&a=2&",
            &[
                "b: no such option; it is ignored",
                "option 2: nothing between two `&`; it is skipped",
                "minPoolSize: not a whole number from 0 to 2147483647",
                "a: no such option; it is ignored",
                "option 5: nothing between two `&`; it is skipped",
            ],
        ),
    ];
    for (rule, options, expected) in cases {
        let parsed = parse(&format!("mongodb://db/?{options}"));
        let seen: Vec<_> = parsed.warnings().iter().map(ToString::to_string).collect();
        let expected: Vec<_> = expected.iter().map(|warning| in_full(warning)).collect();
        assert_eq!(seen, expected, "{rule} {options}");
    }
}

fn in_full(warning: &str) -> String {
    match warning.split_once(": not ") {
        Some((_, rest)) if rest.contains("; it is") => warning.to_owned(),
        Some((option, rest)) => format!("{option}: the value is not {rest}; it is ignored"),
        None => warning.to_owned(),
    }
}

#[test]
fn a_repeated_option_keeps_its_first_value_and_a_renamed_one_its_new() {
    assert_eq!(parse("mongodb://db/?appname=a&appname=b").app_name.as_deref(), Some("a"));
    assert_eq!(parse("mongodb://db/?j=true").read_write.journal, Some(true));
    let parsed = parse("mongodb://db/?wtimeout=5&wTimeoutMS=9");
    assert_eq!(parsed.read_write.write_timeout, Some(Duration::from_millis(9)));
}

// AU-05
#[test]
fn credentials_are_read() {
    type Parts<'a> = (Option<Mechanism>, Option<&'a str>, Option<&'a str>, &'a str);
    let plain = Some(Mechanism::Plain);
    let cases: &[(&str, &str, Parts<'_>)] = &[
        ("AU-10", "u:p@db", (None, Some("u"), Some("p"), "admin")),
        ("AU-38", "u:p@db/shop", (None, Some("u"), Some("p"), "shop")),
        ("AU-38", "u:p@db/shop?authSource=hr", (None, Some("u"), Some("p"), "hr")),
        ("AU-10", "u:p@db/?authMechanism=DEFAULT", (None, Some("u"), Some("p"), "admin")),
        ("OP-45", "u@db", (None, Some("u"), None, "admin")),
        ("OP-45", "u:@db", (None, Some("u"), Some(""), "admin")),
        ("OP-45", "a%40b:c%3A%2F%3f@db", (None, Some("a@b"), Some("c:/?"), "admin")),
        (
            "AU-38",
            "u:p@db/?authMechanism=SCRAM-SHA-256",
            (Some(Mechanism::ScramSha256), Some("u"), Some("p"), "admin"),
        ),
        (
            "AU-46",
            "db/shop?authMechanism=MONGODB-X509",
            (Some(Mechanism::MongodbX509), None, None, "$external"),
        ),
        ("AU-51", "u:p@db/?authMechanism=PLAIN", (plain, Some("u"), Some("p"), "$external")),
        ("CF-47", "u:p@db/ldap?authMechanism=PLAIN", (plain, Some("u"), Some("p"), "ldap")),
        (
            "AU-55",
            "u@db/?authMechanism=GSSAPI",
            (Some(Mechanism::Gssapi), Some("u"), None, "$external"),
        ),
        (
            "AU-55",
            "db/?authMechanism=MONGODB-AWS",
            (Some(Mechanism::MongodbAws), None, None, "$external"),
        ),
    ];
    for (rule, rest, expected) in cases {
        let parsed = parse(&format!("mongodb://{rest}"));
        let it = parsed.credential.as_ref().expect(rest);
        let password = it.password.as_ref().map(Secret::expose);
        let seen = (it.mechanism, it.username.as_deref(), password, it.source.as_str());
        assert_eq!(seen, *expected, "{rule} {rest}");
        assert_eq!(parsed.warnings(), [], "{rule} {rest}");
    }
}

// CM-04
#[test]
fn compressors_have_the_numbers_of_the_wire() {
    let all = [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];
    assert_eq!(all.map(Compressor::id), [1, 2, 3]);
}

// OP-49
#[test]
fn a_database_alone_is_no_credential() {
    let parsed = parse("mongodb://db/shop");
    assert_eq!((parsed.database.as_deref(), parsed.credential), (Some("shop"), None));
}

// AU-07
#[test]
fn names_of_mechanism_properties_have_no_case() {
    let parsed = parse(
        "mongodb://db/?authMechanism=MONGODB-OIDC\
         &authMechanismProperties=token_resource:api://x,Environment:azure",
    );
    let properties = parsed.credential.expect("it names a mechanism").mechanism_properties;
    assert_eq!(properties["TOKEN_RESOURCE"].expose(), "api://x");
    assert_eq!(properties["ENVIRONMENT"].expose(), "azure");
}

#[test]
fn ten_thousand_characters_are_read_like_ten() {
    let long = "x".repeat(10_000);
    let parsed = parse(&format!("mongodb://{long}:{long}@db/{long}?replicaSet={long}&{long}=1"));
    let password = parsed.credential.as_ref().and_then(|it| it.password.as_ref());
    assert_eq!(password.map(|it| it.expose().len()), Some(10_000));
    assert_eq!(parsed.warnings()[0].to_string(), "option 2: no such option; it is ignored");
    let many = vec!["db"; 10_000].join(",");
    assert_eq!(parse(&format!("mongodb://{many}")).hosts.len(), 10_000);
}
