//! What happens to sockets: refused, reset, half closed, and what is left at the end.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use bson::rawdoc;
use cenote_core::address::ServerAddress;
use cenote_endpoint::{
    Ending, Endpoint, Fault, ListenAddress, ListenOptions, Script, Settings, StartError,
};

use super::client::{connect, is_ok, ping, receive, send};

fn start() -> Endpoint {
    Endpoint::start(Settings::default(), ListenOptions::default()).expect("it starts")
}

#[test]
fn refused_is_refused_until_it_is_not() {
    let endpoint = start();
    let mut before = connect(&endpoint).unwrap();
    assert!(is_ok(&ping(&mut before).unwrap()));
    for _ in 0..20 {
        let fault = endpoint.with(|server, now| server.set_fault(now, Script::new(Fault::Refuse)));
        assert_eq!(connect(&endpoint).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        endpoint.with(|server, now| server.clear_fault(now, fault));
        assert!(is_ok(&ping(&mut connect(&endpoint).unwrap()).unwrap()));
    }
    assert!(is_ok(&ping(&mut before).unwrap()), "open connections stay");
}

#[test]
fn a_script_can_refuse_from_the_start_on() {
    let settings = Settings { scripts: vec![Script::new(Fault::Refuse)], ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).unwrap();
    assert_eq!(connect(&endpoint).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    endpoint.with(cenote_endpoint::Server::clear_faults);
    assert!(is_ok(&ping(&mut connect(&endpoint).unwrap()).unwrap()));
}

#[test]
fn a_reset_is_a_reset_and_an_end_is_an_end() {
    let endpoint = start();
    let read_after = |fault| {
        endpoint.with(|server, now| {
            server.clear_faults(now);
            server.set_fault(now, Script::new(fault).at_command("ping", 0));
        });
        let mut stream = connect(&endpoint).unwrap();
        ping(&mut stream).unwrap_err().kind()
    };
    assert_eq!(read_after(Fault::Reset), ErrorKind::ConnectionReset);
    assert_eq!(read_after(Fault::Close), ErrorKind::UnexpectedEof);
    assert_eq!(read_after(Fault::Cut { bytes: 9, then: Ending::Close }), ErrorKind::UnexpectedEof);
    assert_eq!(
        read_after(Fault::Cut { bytes: 9, then: Ending::Reset }),
        ErrorKind::ConnectionReset
    );
}

#[test]
fn half_closed_still_takes_bytes() {
    let endpoint = start();
    let half_close = Script::new(Fault::HalfClose).at_command("ping", 0);
    endpoint.with(|server, now| server.set_fault(now, half_close));
    let mut stream = connect(&endpoint).unwrap();
    assert_eq!(ping(&mut stream).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    for _ in 0..10 {
        stream.write_all(&[0; 100]).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_restart_resets_what_is_open_and_listens_on_the_same_port() {
    let endpoint = start();
    let mut stream = connect(&endpoint).unwrap();
    assert!(is_ok(&ping(&mut stream).unwrap()));
    endpoint.with(cenote_endpoint::Server::restart);
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(is_ok(&ping(&mut connect(&endpoint).unwrap()).unwrap()));
    endpoint.with(cenote_endpoint::Server::shut_down);
    assert_eq!(connect(&endpoint).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    endpoint.with(cenote_endpoint::Server::restart);
    assert!(is_ok(&ping(&mut connect(&endpoint).unwrap()).unwrap()));
}

#[test]
fn what_is_stopped_is_gone() {
    let endpoint = start();
    let ListenAddress::Tcp { port } = *endpoint.place() else { panic!("TCP by default") };
    let mut stream = connect(&endpoint).unwrap();
    assert!(is_ok(&ping(&mut stream).unwrap()));
    endpoint.stop();
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    let error = TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_unix_domain_socket_serves_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let place = ListenAddress::Unix { path: path.clone() };
    let options = ListenOptions { place, ..ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options.clone()).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    assert!(is_ok(&ping(&mut stream).unwrap()));
    assert_eq!(endpoint.address(), ServerAddress::unix(path.to_str().unwrap()).unwrap());
    let error = Endpoint::start(Settings::default(), options).unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }), "{error}");

    let fault = endpoint.with(|server, now| server.set_fault(now, Script::new(Fault::Refuse)));
    assert!(UnixStream::connect(&path).is_err());
    endpoint.with(|server, now| server.clear_fault(now, fault));
    assert!(is_ok(&ping(&mut UnixStream::connect(&path).unwrap()).unwrap()));
    endpoint.stop();
    assert!(!path.exists());
}

/// A peer that sends without reading is not read from any more, and other connections go on.
#[test]
fn who_does_not_read_stalls_itself_alone() {
    let endpoint = start();
    let mut deaf = connect(&endpoint).unwrap();
    deaf.set_nonblocking(true).unwrap();
    let mut ask = Vec::new();
    for _ in 0..1000 {
        send(&mut ask, &rawdoc! { "hello": 1 }, "admin").unwrap();
    }
    // A command that fits into no buffer of the operating system any more has cut the bytes of one
    // in two: what was accepted so far is what counts.
    let mut sent = 0;
    let mut idle = 0;
    while idle < 200 {
        match deaf.write(&ask[sent % ask.len()..]) {
            Ok(count) => (sent, idle) = (sent + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                idle += 1;
                let mut other = connect(&endpoint).unwrap();
                assert!(is_ok(&ping(&mut other).unwrap()));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 1 << 28, "it reads on for ever");
    }
    deaf.set_nonblocking(false).unwrap();
    for _ in 0..sent / (ask.len() / 1000) {
        assert!(is_ok(&receive(&mut deaf).unwrap()), "and it gets all its answers");
    }
}
