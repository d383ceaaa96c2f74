//! A server that answers with canned bytes: a standalone that says no more than it must, and that
//! everything is well.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use bson::rawdoc;

/// Listens on a free port, and answers each connection on a thread of its own.
pub(crate) fn serve() -> SocketAddr {
    serve_with(|socket| socket)
}

/// The same, with each socket wrapped: in TLS, for example.
pub(crate) fn serve_with<S: Read + Write>(
    wrap: impl Fn(TcpStream) -> S + Clone + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, wrap) = (socket.expect("a connection"), wrap.clone());
            std::thread::spawn(move || {
                socket.set_nodelay(true).expect("TCP");
                answer(wrap(socket));
            });
        }
    });
    address
}

/// Until the other side closes.
fn answer(mut socket: impl Read + Write) {
    let mut request = Vec::new();
    loop {
        let mut header = [0; 16];
        if socket.read_exact(&mut header).is_err() {
            return;
        }
        let number = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        request.resize(usize::try_from(number(0)).expect("a length") - 16, 0);
        socket.read_exact(&mut request).expect("the rest");
        let is_hello = [b"isMaster".as_slice(), b"ismaster", b"hello"]
            .iter()
            .any(|name| request.get(10..).is_some_and(|keys| keys.starts_with(name)));
        let reply = if is_hello { reply(&hello(), number(4)) } else { reply(&[], number(4)) };
        if socket.write_all(&reply).and_then(|()| socket.flush()).is_err() {
            return;
        }
    }
}

fn hello() -> Vec<u8> {
    let hello = rawdoc! {
        "helloOk": true, "ismaster": true, "maxBsonObjectSize": 16_777_216,
        "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000, "minWireVersion": 0,
        "maxWireVersion": 25, "ok": 1.0,
    };
    hello.into_bytes()
}

/// An OP_MSG with this document, or with `{ ok: 1.0 }`.
pub(crate) fn reply(document: &[u8], response_to: i32) -> Vec<u8> {
    const OK: [u8; 17] = *b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xF0\x3F\0";
    let document = if document.is_empty() { &OK[..] } else { document };
    let length = i32::try_from(21 + document.len()).expect("short");
    let mut bytes = Vec::with_capacity(21 + document.len());
    for field in [length, 1, response_to, 2013, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.push(0);
    bytes.extend_from_slice(document);
    bytes
}
