//! Which connection strings are errors, rule by rule: one line for each, with the requirement's id.

#![cfg(feature = "std")]

use cenote_core::{
    address::AddressError,
    pool::InvalidOptions,
    uri::{ConnectionString, CredentialProblem, Expected, Mechanism, UriError, UriPart},
};

fn refused(rule: &str, uri: &str, expected: UriError) {
    assert_eq!(ConnectionString::parse(uri), Err(expected), "{rule} {uri}");
}

#[test]
fn scheme_and_hosts() {
    let host = |position, error| UriError::Host { position, error };
    let long = format!("mongodb://{}", "x".repeat(10_000));
    let cases = [
        ("OP-34", "", UriError::Scheme),
        ("OP-34", "MongoDB://db", UriError::Scheme),
        ("OP-34", "http://db", UriError::Scheme),
        ("OP-34", "mongodb://", UriError::NoHost),
        ("OP-34", "mongodb:///shop", UriError::NoHost),
        ("OP-34", "mongodb://u:p@", UriError::NoHost),
        ("OP-46", "mongodb://a,,b", host(2, AddressError::Empty)),
        ("OP-46", "mongodb://:27017", host(1, AddressError::Empty)),
        ("OP-47", "mongodb://a,b:0", host(2, AddressError::Port)),
        ("OP-47", "mongodb://db:", host(1, AddressError::Port)),
        ("OP-47", "mongodb://db:+1", host(1, AddressError::Port)),
        ("OP-47", "mongodb://db:65536", host(1, AddressError::Port)),
        ("OP-47", "mongodb://db:99999999999999999999999", host(1, AddressError::Port)),
        ("OP-47", "mongodb://db:１", host(1, AddressError::Port)),
        ("OP-47", "mongodb://a:1:2", host(1, AddressError::Colons)),
        ("OP-46", "mongodb://::1", host(1, AddressError::Colons)),
        ("OP-46", "mongodb://[::1", host(1, AddressError::Ipv6)),
        ("OP-46", "mongodb://[::1]x:5", host(1, AddressError::Ipv6)),
        ("OP-46", "mongodb://[fe80::1%25eth0]", host(1, AddressError::Ipv6)),
        ("OP-46", "mongodb://[%3A%3A1]", host(1, AddressError::Ipv6)),
        ("OP-46", "mongodb://d%62.example", host(1, AddressError::Character('%'))),
        ("OP-46", "mongodb://a,d%62.sock", host(2, AddressError::Character('%'))),
        ("OP-46", "mongodb://my db", host(1, AddressError::Character(' '))),
        ("OP-46", "mongodb://%2Frun%2Fdb", host(1, AddressError::Character('%'))),
        ("OP-46", "mongodb://%2Frun%2Fdb.sock:5", host(1, AddressError::Character('%'))),
        ("OP-46", "mongodb://%2Frun%2Fdb%01.sock", host(1, AddressError::Socket)),
        ("OP-46", &long, host(1, AddressError::TooLong)),
    ];
    for (rule, uri, expected) in cases {
        refused(rule, uri, expected);
    }
}

#[test]
fn userinfo_and_escapes() {
    let encoding = |place| UriError::Encoding { place };
    let cases = [
        ("OP-45", "mongodb://u:p/w@db", UriError::UserinfoCut),
        ("OP-45", "mongodb://u/x:p@db/", UriError::UserinfoCut),
        ("OP-45", "mongodb://u:p?w@db", UriError::UserinfoCut),
        ("OP-45", "mongodb://?:p@db", UriError::UserinfoCut),
        ("OP-45", "mongodb://u:p@w@db", UriError::Userinfo { character: '@' }),
        ("OP-45", "mongodb://u:p:w@db", UriError::Userinfo { character: ':' }),
        ("OP-45", "mongodb://u%:p@db", encoding(UriPart::Username)),
        ("OP-45", "mongodb://u:p%2@db", encoding(UriPart::Password)),
        ("OP-45", "mongodb://u:%+1@db", encoding(UriPart::Password)),
        ("OP-45", "mongodb://u:%é@db", encoding(UriPart::Password)),
        ("OP-33", "mongodb://u:%FF@db", encoding(UriPart::Password)),
        ("OP-33", "mongodb://a,b%C3%28.sock", encoding(UriPart::Host(2))),
        ("OP-49", "mongodb://db/%80", encoding(UriPart::Database)),
        ("OP-33", "mongodb://db/?w=1&appname=%C0%AF", encoding(UriPart::Option(2))),
    ];
    for (rule, uri, expected) in cases {
        refused(rule, uri, expected);
    }
}

#[test]
fn databases() {
    let cases = [
        ("mongodb://db/a/b", '/'),
        ("mongodb://db/a%2Fb", '/'),
        ("mongodb://db/a%5Cb", '\\'),
        ("mongodb://db/a%20b", ' '),
        ("mongodb://db/a%22b", '"'),
        ("mongodb://db/$external", '$'),
        ("mongodb://db/a%00b", '\0'),
    ];
    for (uri, character) in cases {
        refused("OP-49", uri, UriError::Database { character });
    }
}

#[test]
fn options() {
    let several = |option| UriError::SeveralHosts { option, hosts: 2 };
    let conflict = |first, second| UriError::Conflict { first, second };
    let of_primary = |option| UriError::OfPrimary { option };
    let no_proxy = |option| UriError::ProxyHostMissing { option };
    let min_above_max = |min, max| UriError::Pool(InvalidOptions::MinAboveMax { min, max });
    let unsafe_without = |option, expected| UriError::Unsafe { option, expected };
    let text = Expected::Text { max_bytes: usize::MAX };
    let (balanced, direct) = ("loadBalanced=true", "directConnection=true");
    let cases = [
        ("OP-40", "w=1&journal", UriError::NotAPair { position: 2 }),
        ("OP-40", "=1", UriError::NotAPair { position: 1 }),
        ("OP-53", "srvMaxHosts=0", UriError::SrvOnly { option: "srvMaxHosts" }),
        ("OP-25", direct, several("directConnection")),
        ("OP-24", balanced, several("loadBalanced")),
        ("OP-24", "replicaSet=r&loadBalanced=true", conflict(balanced, "replicaSet")),
        ("OP-24", "directConnection=true&loadBalanced=true", conflict(balanced, direct)),
        (
            "TL-03",
            "tlsAllowInvalidHostnames=x&tlsInsecure=false",
            conflict("tlsInsecure", "tlsAllowInvalidHostnames"),
        ),
        ("TL-02", "tls=true%20", unsafe_without("tls", Expected::Boolean)),
        ("TL-02", "ssl=", unsafe_without("ssl", Expected::Boolean)),
        ("TL-02", "tlsCAFile=", unsafe_without("tlsCAFile", text)),
        ("TL-02", "tlsCertificateKeyFile=", unsafe_without("tlsCertificateKeyFile", text)),
        ("TL-02", "tlsCAFile=-----BEGIN", unsafe_without("tlsCAFile", Expected::Path)),
        ("TL-02", "tlsCAFile=a%0Ab", unsafe_without("tlsCAFile", Expected::Path)),
        ("TL-04", "tls=true&ssl=false", UriError::TlsDisagrees),
        ("TL-04", "tls=true&tls=false", UriError::TlsDisagrees),
        ("SX-02", "proxyPort=5", no_proxy("proxyPort")),
        ("SX-02", "proxyHost=", no_proxy("proxyHost")),
        ("SX-02", "proxyHost=p&proxyUsername=u", UriError::ProxyCredentialHalf),
        ("SX-08", "proxyHost=p&PROXYHOST=p", UriError::ProxyRepeated { option: "proxyHost" }),
        ("OP-03", "minPoolSize=9&maxPoolSize=8", min_above_max(9, 8)),
        ("OP-04", "minPoolSize=101", min_above_max(101, 100)),
        ("OP-54", "authSource=", UriError::AuthSourceEmpty),
        ("AU-08", "authMechanism=MONGODB-CR", UriError::UnknownMechanism),
        ("of the primary", "maxStalenessSeconds=120", of_primary("maxStalenessSeconds")),
        (
            "of the primary",
            "readPreference=primary&maxStalenessSeconds=120",
            of_primary("maxStalenessSeconds"),
        ),
        (
            "of the primary",
            "readPreferenceTags=&readPreferenceTags=a:b",
            of_primary("readPreferenceTags"),
        ),
    ];
    for (rule, options, expected) in cases {
        refused(rule, &format!("mongodb://a,b/?{options}"), expected);
    }
}

#[test]
fn credentials_that_do_not_fit_the_mechanism() {
    use CredentialProblem::{
        ContainsNul, PasswordGiven, PasswordMissing, PropertyInvalid, PropertyMissing,
        PropertyUnknown, PropertyUseless, SourceNotExternal, UsernameGiven, UsernameMissing,
    };
    use Mechanism::{Gssapi, MongodbAws, MongodbOidc, MongodbX509, Plain, ScramSha1, ScramSha256};

    let canonicalize = PropertyInvalid {
        name: "CANONICALIZE_HOST_NAME",
        known: &["none", "forward", "forwardAndReverse", "true", "false"],
    };
    let unknown = PropertyUnknown { position: 1, known: &[] };
    // The mechanism is added to the options.
    let cases = [
        ("AU-06", "@a/?", None, UsernameMissing),
        ("AU-06", ":p@a/?", None, UsernameMissing),
        ("AU-10", "a/?authMechanism=DEFAULT", None, UsernameMissing),
        ("AU-38", "u@a/?", Some(ScramSha1), PasswordMissing),
        ("AU-38", ":p@a/?", Some(ScramSha256), UsernameMissing),
        ("AU-38", "u:p@a/?authMechanismProperties=X:1", None, unknown),
        ("AU-46", ":@a/?", Some(MongodbX509), PasswordGiven),
        ("AU-46", "a/?authSource=admin", Some(MongodbX509), SourceNotExternal),
        ("AU-51", "u@a/?", Some(Plain), PasswordMissing),
        ("AU-51", "u%00:p@a/?", Some(Plain), ContainsNul),
        ("AU-51", "u:%00@a/?", Some(Plain), ContainsNul),
        (
            "AU-07",
            "u@a/?authMechanismProperties=canonicalize_host_name:x",
            Some(Gssapi),
            canonicalize,
        ),
        ("AU-55", "u@a/?", Some(MongodbAws), PasswordMissing),
        (
            "AU-55",
            "a/?authMechanismProperties=AWS_SESSION_TOKEN:t",
            Some(MongodbAws),
            UsernameMissing,
        ),
        (
            "AU-55",
            "a/?authMechanismProperties=TOKEN_RESOURCE:x",
            Some(MongodbOidc),
            PropertyMissing { name: "ENVIRONMENT" },
        ),
        (
            "AU-55",
            "a/?authMechanismProperties=ENVIRONMENT:gcp",
            Some(MongodbOidc),
            PropertyMissing { name: "TOKEN_RESOURCE" },
        ),
        (
            "AU-55",
            "a/?authMechanismProperties=ENVIRONMENT:k8s,TOKEN_RESOURCE:x",
            Some(MongodbOidc),
            PropertyUseless { name: "TOKEN_RESOURCE" },
        ),
        (
            "AU-55",
            "u@a/?authMechanismProperties=ENVIRONMENT:test",
            Some(MongodbOidc),
            UsernameGiven,
        ),
    ];
    for (rule, rest, mechanism, problem) in cases {
        let named = mechanism.map(|it: Mechanism| format!("&authMechanism={}", it.name()));
        let uri = format!("mongodb://{rest}{}", named.unwrap_or_default()).replace("?&", "?");
        refused(rule, &uri, UriError::Credential { mechanism, problem });
    }
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let cases = [
        (
            "mongodb+srv://c.example.com:27017",
            "`mongodb+srv://` has no port, because the SRV records name the ports: remove it",
        ),
        ("mongodb://a,b:x", "host 2: the port is not a whole number from 1 to 65535"),
        ("mongodb://u:p@w@db", "the user name or password holds an unescaped `@`: write it as %40"),
        (
            "mongodb://u@db/?authMechanism=PLAIN",
            "PLAIN: a password is missing: write `user:password@` before the hosts",
        ),
        (
            "mongodb://@db",
            "the default authentication: a user name is missing: write `user:password@` before \
             the hosts",
        ),
    ];
    for (uri, message) in cases {
        assert_eq!(uri.parse::<ConnectionString>().unwrap_err().to_string(), message, "{uri}");
    }
}
