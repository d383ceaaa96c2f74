//! Proxies that do what they should, and others.

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ProxyStep, Socks5};
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};
use cenote_core::uri::{ConnectionString, ProxyCredential};

const NO_LOGIN: [u8; 2] = [5, 0];
const LOGIN: [u8; 2] = [5, 2];
const WELCOME: [u8; 2] = [1, 0];
const CONNECTED: [u8; 10] = [5, 0, 0, 1, 127, 0, 0, 1, 4, 56];

fn credential(username: &str, password: &str) -> ProxyCredential {
    let uri =
        format!("mongodb://db/?proxyHost=p&proxyUsername={username}&proxyPassword={password}");
    let proxy = ConnectionString::parse(&uri).expect(&uri).proxy;
    proxy.and_then(|proxy| proxy.credential).expect("both are given")
}

fn server(address: &str) -> ServerAddress {
    address.parse().expect(address)
}

/// Everything sent, and how it ends, when the proxy answers each time in pieces of that size.
fn play(
    mut socks5: Socks5,
    answers: &[&[u8]],
    piece: usize,
) -> (Vec<Vec<u8>>, Result<(), ConnectionError>) {
    let (mut sent, mut answers) = (Vec::new(), answers.iter());
    loop {
        match socks5.next_step() {
            Ok(ProxyStep::Send(bytes)) => sent.push(bytes.as_slice().to_vec()),
            Ok(ProxyStep::Receive) => {
                for bytes in answers.next().expect("enough answers").chunks(piece) {
                    assert_eq!(socks5.received(bytes), bytes.len());
                }
            }
            Ok(ProxyStep::Connected) => {
                assert_eq!(socks5.received(b"for the server"), 0);
                return (sent, Ok(()));
            }
            Err(error) => {
                assert_eq!(error.stage(), Stage::Proxy);
                assert_eq!(error.labels(RetryWrites::Disabled).count(), 0, "ER-32, SX-06");
                return (sent, Err(error));
            }
        }
    }
}

// SX-03, SX-04
#[test]
fn names_and_addresses() {
    let cases: [(&str, &[u8]); 3] = [
        ("db.example.com:27018", b"\x05\x01\x00\x03\x0edb.example.com\x69\x8a"),
        ("10.1.2.3", b"\x05\x01\x00\x01\x0a\x01\x02\x03\x69\x89"),
        ("[::1]", b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x69\x89"),
    ];
    for (address, request) in cases {
        for piece in [1, 2, 3, 100] {
            let socks5 = Socks5::new(&server(address), None).unwrap();
            let (sent, outcome) = play(socks5, &[&NO_LOGIN, &CONNECTED], piece);
            assert!(outcome.is_ok());
            assert_eq!(sent, [&[5, 1, 0], request]);
        }
    }
}

#[test]
fn with_a_login() {
    let credential = credential("user", "pencil");
    let make = || Socks5::new(&server("10.1.2.3"), Some(&credential)).unwrap();
    let request = b"\x05\x01\x00\x01\x0a\x01\x02\x03\x69\x89".to_vec();
    let (sent, outcome) = play(make(), &[&LOGIN, &WELCOME, &CONNECTED], 1);
    assert!(outcome.is_ok());
    assert_eq!(sent, [vec![5, 2, 0, 2], b"\x01\x04user\x06pencil".to_vec(), request.clone()]);
    let (sent, outcome) = play(make(), &[&NO_LOGIN, &CONNECTED], 1);
    assert!(outcome.is_ok());
    assert_eq!(sent, [vec![5, 2, 0, 2], request], "which the proxy need not ask for");
}

/// The address in the answer may be of each type; what follows it is not the proxy's.
// SX-05
#[test]
fn answers_of_all_lengths() {
    let mut named = vec![5, 0, 0, 3, 255];
    named.extend([b'x'; 255 + 2]);
    let mut ipv6 = vec![5, 0, 0, 4];
    ipv6.extend([0; 16 + 2]);
    for answer in [&[5, 0, 0, 3, 0, 0, 0][..], &named, &ipv6, &CONNECTED] {
        let mut socks5 = Socks5::new(&server("db"), None).unwrap();
        let _ = socks5.next_step();
        assert_eq!(socks5.received(&NO_LOGIN), 2);
        let _ = socks5.next_step();
        let more = [answer, b"more"].concat();
        assert_eq!(socks5.received(&more), answer.len());
        assert!(matches!(socks5.next_step(), Ok(ProxyStep::Connected)));
    }
}

/// Whether there is a login, what the proxy answers, and what is wrong with it.
type Case<'a> = (bool, &'a [&'a [u8]], (Kind, &'a str));

// SX-06
#[test]
fn refusals_and_nonsense() {
    let credential = credential("user", "pencil");
    let network = |reason| (Kind::Network, reason);
    let protocol = |reason| (Kind::Protocol, reason);
    let cannot = "the proxy cannot connect to the server: ";
    let cases: [Case<'_>; 14] = [
        (false, &[&[5, 0xFF]], network("the proxy asks for a user name and password")),
        (
            true,
            &[&[5, 0xFF]],
            network("the proxy accepts neither no login nor user name and password"),
        ),
        (true, &[&LOGIN, &[1, 1]], network("the proxy refuses the user name or password")),
        (false, &[&NO_LOGIN, &[5, 1]], network("general failure (code 1)")),
        (false, &[&NO_LOGIN, &[5, 5, 0, 1]], network("connection refused (code 5)")),
        (false, &[&NO_LOGIN, &[5, 200]], network("unknown reason (code 200)")),
        (false, &[&[4, 0]], protocol("not a SOCKS5 proxy: version 4 instead of 5")),
        (false, &[b"HTTP/1.1"], protocol("not a SOCKS5 proxy: version 72 instead of 5")),
        (false, &[&LOGIN], protocol("the proxy chose login method 2, which was not offered")),
        (true, &[&[5, 1]], protocol("the proxy chose login method 1, which was not offered")),
        (true, &[&LOGIN, &[5, 0]], protocol("not a SOCKS5 proxy: version 5 instead of 1")),
        (false, &[&NO_LOGIN, &[4]], protocol("not a SOCKS5 proxy: version 4 instead of 5")),
        (false, &[&NO_LOGIN, &[5, 0, 0, 2]], protocol("the proxy answers with address type 2")),
        (false, &[&[5, 0, 5]], protocol("the proxy answers what it was not asked")),
    ];
    for (with_login, answers, (kind, reason)) in cases {
        let socks5 = Socks5::new(&server("db"), with_login.then_some(&credential)).unwrap();
        let error = play(socks5, answers, 100).1.unwrap_err();
        assert_eq!(error.kind(), &kind);
        let told = error.reason();
        assert_eq!(told.strip_prefix(cannot).unwrap_or(told), reason);
    }
}

#[test]
fn what_does_not_fit_into_the_protocol() {
    let long = "x".repeat(256);
    let nameless = ProxyCredential { username: String::new(), ..credential("u", "p") };
    let cases = [
        ("/run/mongodb-27017.sock", None, "a UNIX socket cannot be reached through a proxy"),
        ("db", Some(credential(&long, "p")), "the proxy's user name is not 1 to 255 bytes long"),
        ("db", Some(credential("u", &long)), "the proxy's password is not 1 to 255 bytes long"),
        ("db", Some(nameless), "the proxy's user name is not 1 to 255 bytes long"),
    ];
    for (address, credential, reason) in cases {
        let error = Socks5::new(&server(address), credential.as_ref()).unwrap_err();
        assert_eq!((error.stage(), error.kind()), (Stage::Proxy, &Kind::Configuration));
        assert_eq!(error.reason(), reason);
    }
    let longest = credential(&long[1..], &long[1..]);
    assert!(Socks5::new(&server("db"), Some(&longest)).is_ok());
    let wide = ServerAddress::tcp(&"ü".repeat(200), 1).unwrap();
    let error = Socks5::new(&wide, None).unwrap_err();
    assert_eq!(error.reason(), "the server's name is not 1 to 255 bytes long");
}
