//! The proxy does what it is told.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use cenote::proxy::{ConnectionFault, End, FaultProxy, Way};
use socket2::SockRef;

/// A server that says everything again, to one after the other.
fn echo() -> (FaultProxy, impl FnOnce() -> TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (mut from, mut to) = (stream.try_clone().expect("a socket"), stream);
                let mut buffer = [0; 64];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    if to.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    let proxy = FaultProxy::to(&address.parse().expect("an address")).expect("it starts");
    let near = proxy.address().to_string();
    (proxy, move || TcpStream::connect(near).expect("a proxy"))
}

fn ask(stream: &mut TcpStream, bytes: &[u8]) -> (Vec<u8>, Option<ErrorKind>) {
    let mut heard = vec![0; bytes.len()];
    let mut length = 0;
    if let Err(error) = stream.write_all(bytes) {
        return (Vec::new(), Some(error.kind()));
    }
    while length < heard.len() {
        match stream.read(&mut heard[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) => {
                heard.truncate(length);
                return (heard, Some(error.kind()));
            }
        }
    }
    heard.truncate(length);
    (heard, None)
}

#[test]
fn everything_passes_unless_told_otherwise() {
    let (proxy, connect) = echo();
    let mut stream = connect();
    for words in [&b"one"[..], b"two and", b"three"] {
        assert_eq!(ask(&mut stream, words), (words.to_vec(), None));
    }
    let turns = [(Way::ToServer, 3), (Way::ToClient, 3), (Way::ToServer, 7), (Way::ToClient, 7)];
    assert_eq!(proxy.passed(0).expect("a connection")[..4], turns);
    assert_eq!((proxy.connections(), proxy.passed(1)), (1, None));
}

#[test]
fn each_end_is_told_as_it_is() {
    // Of twelve bytes there and back, so many come back.
    for (after, end, heard, how) in [
        (15, End::Close, 3, None),
        (9, End::Close, 0, None),
        (12, End::Close, 0, None),
        (15, End::HalfClose, 3, None),
        (0, End::Reset, 0, Some(ErrorKind::ConnectionReset)),
        (9, End::Reset, 0, Some(ErrorKind::ConnectionReset)),
    ] {
        let (proxy, connect) = echo();
        proxy.expect([ConnectionFault::cut(after, end)]);
        let mut stream = connect();
        let (came, error) = ask(&mut stream, b"twelve bytes");
        assert_eq!((came.len(), error), (heard, how), "{after} {end:?}");
        assert!(b"twelve bytes".starts_with(&came));
    }
}

/// What ends by itself ends as it would without a proxy.
#[test]
fn a_server_that_resets_resets_its_client() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let proxy = FaultProxy::to(&address.parse().expect("an address")).expect("it starts");
    let near = proxy.address().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.read_exact(&mut [0; 12]).expect("all of it");
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket");
    });
    let mut stream = TcpStream::connect(&near).expect("a proxy");
    let reset = (Vec::new(), Some(ErrorKind::ConnectionReset));
    assert_eq!(ask(&mut stream, b"twelve bytes"), reset);
    server.join().expect("no panic");
    // The proxy does not listen any more.
    let mut stream = TcpStream::connect(&near).expect("a proxy");
    assert_eq!(
        stream.read(&mut [0]).map_err(|error| error.kind()),
        Err(ErrorKind::ConnectionReset)
    );
}

/// Not even what was under way.
#[test]
fn nothing_passes_a_network_that_is_cut() {
    let (proxy, connect) = echo();
    proxy.expect([ConnectionFault::drip(1, Duration::from_millis(10))]);
    let mut stream = connect();
    stream.write_all(&[7; 200]).expect("a socket");
    stream.read_exact(&mut [0]).expect("the first byte");
    proxy.cut();
    // What was written before the cut arrives; then comes nothing, however long it is waited for.
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
    let mut heard = 1;
    while let Ok(count @ 1..) = stream.read(&mut [0; 64]) {
        heard += count;
    }
    assert!(heard < 200, "all of it passed");
    proxy.mend();
    stream.set_read_timeout(None).expect("a socket");
    stream.read_exact(&mut vec![0; 200 - heard]).expect("the rest");
}

/// The server hears a part and the end, and what it says of that still passes.
#[test]
fn the_other_half_goes_on() {
    let (proxy, connect) = echo();
    proxy.expect([ConnectionFault::cut(9, End::HalfClose)]);
    let (came, error) = ask(&mut connect(), b"twelve bytes");
    assert_eq!((came.as_slice(), error), (&b"twelve by"[..], None));
}

#[test]
fn pieces_and_delays_change_nothing_but_the_time() {
    let (proxy, connect) = echo();
    let slow = ConnectionFault { delay: Duration::from_millis(1), ..ConnectionFault::default() };
    proxy.expect([ConnectionFault::drip(1, Duration::from_micros(10)), slow]);
    let near = proxy.address().to_string();
    let mut streams = [connect(), TcpStream::connect(near).expect("a proxy")];
    for stream in &mut streams {
        assert_eq!(ask(stream, b"twelve bytes"), (b"twelve bytes".to_vec(), None));
    }
}

#[test]
fn open_connections_end_all_at_once() {
    for (end, expected) in [(End::Close, Ok(0)), (End::Reset, Err(ErrorKind::ConnectionReset))] {
        let (proxy, connect) = echo();
        let near = proxy.address().to_string();
        let mut streams = [connect(), TcpStream::connect(near).expect("a proxy")];
        streams.iter_mut().for_each(|stream| assert_eq!(ask(stream, b"one").0, b"one"));
        proxy.end_all(end);
        for stream in &mut streams {
            assert_eq!(stream.read(&mut [0]).map_err(|error| error.kind()), expected);
        }
    }
}

#[test]
fn two_connections_hear_what_is_for_the_other() {
    let (proxy, connect) = echo();
    let near = proxy.address().to_string();
    let mut streams = [connect(), TcpStream::connect(near).expect("a proxy")];
    proxy.cross(1);
    for (stream, words) in streams.iter_mut().zip([b"one", b"two"]) {
        stream.write_all(words).expect("a socket");
    }
    for (stream, expected) in streams.iter_mut().zip([b"two", b"one"]) {
        let mut heard = [0; 3];
        stream.read_exact(&mut heard).expect("three bytes");
        assert_eq!(&heard, expected);
    }
    for stream in &mut streams {
        assert_eq!(ask(stream, b"three").0, b"three", "once and not more");
    }
}

#[test]
fn an_end_is_held_back_and_what_came_before_it_is_not() {
    let (proxy, connect) = echo();
    let mut stream = connect();
    proxy.hold_ends(true);
    assert_eq!(ask(&mut stream, b"one").0, b"one");
    stream.shutdown(Shutdown::Write).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
    let waits = stream.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(waits, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{waits:?}");
    proxy.hold_ends(false);
    stream.set_read_timeout(None).expect("a socket");
    assert_eq!(stream.read(&mut [0]).ok(), Some(0));
}

#[test]
fn nothing_is_left_of_a_proxy() {
    let (proxy, connect) = echo();
    let mut stream = connect();
    assert_eq!(ask(&mut stream, b"one").0, b"one");
    let near = proxy.address().to_string();
    drop(proxy);
    assert_ne!(ask(&mut stream, b"two"), (b"two".to_vec(), None));
    assert!(TcpStream::connect(near).is_err(), "connections are refused");
}

#[test]
fn a_name_is_no_address_in_numbers() {
    let server = "db.example.com:27017".parse().expect("an address");
    assert!(FaultProxy::to(&server).is_err());
}
