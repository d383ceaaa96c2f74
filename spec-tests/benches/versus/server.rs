//! A server that answers with canned bytes: a standalone that says no more than it must, and that
//! everything is well.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use bson::{RawArrayBuf, rawdoc};

use crate::tls;

/// How a process of ours is told to be a server.
const SERVE: &str = "--serve";

/// Starts a server over `tcp` or `tls` in a process of its own, of which nothing is counted here. It ends with this
/// process. The path is that of the certificate that clients of TLS trust.
pub(crate) fn start(over: &str) -> (SocketAddr, PathBuf) {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args([SERVE, over]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("a process");
    let mut line = String::new();
    let output = process.stdout.take().expect("it was asked for");
    BufReader::new(output).read_line(&mut line).expect("a line");
    // Its input closes with this process.
    std::mem::forget(process);
    let (address, path) = line.trim_end().split_once(' ').expect("an address and a path");
    (address.parse().expect("an address"), path.into())
}

/// Serves until the process that started this one ends, if this one is to do that.
pub(crate) fn is_asked_to_serve() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, serve, over] = &arguments[..] else { return false };
    if serve != SERVE {
        return false;
    }
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let address = if over == "tls" { tls::serve(&file) } else { serve_with(|socket| socket) };
    println!("{address} {}", file.path().display());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("an end");
    true
}

/// Listens on a free port, and answers each connection on a thread of its own, with each socket wrapped: in TLS,
/// for example.
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
    let (mut documents, mut batch_reply) = (0, Vec::new());
    loop {
        let mut header = [0; 16];
        if socket.read_exact(&mut header).is_err() {
            return;
        }
        let number = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        request.resize(usize::try_from(number(0)).expect("a length") - 16, 0);
        socket.read_exact(&mut request).expect("the rest");
        let is = |name: &&[u8]| request.get(10..).is_some_and(|keys| keys.starts_with(name));
        let document: &[u8] = if [b"isMaster".as_slice(), b"ismaster", b"hello"].iter().any(is) {
            &hello()
        } else if is(&b"batch\0".as_slice()) {
            let asked = i32::from_le_bytes([16, 17, 18, 19].map(|at: usize| request[at]));
            if asked != documents {
                (documents, batch_reply) = (asked, batch(asked));
            }
            &batch_reply
        } else {
            &OK[..]
        };
        let reply = reply(document, number(4));
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

const OK: [u8; 17] = *b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xF0\x3F\0";

/// The reply to a find, with so many documents of 64 bytes.
fn batch(documents: i32) -> Vec<u8> {
    let batch: RawArrayBuf =
        (0..documents).map(|id| rawdoc! { "_id": id, "name": "x".repeat(39) }).collect();
    let cursor = rawdoc! { "id": 0_i64, "ns": "shop.orders", "firstBatch": batch };
    rawdoc! { "cursor": cursor, "ok": 1.0 }.into_bytes()
}

/// How long a reply with so many documents is, or with `{ ok: 1.0 }` without any.
pub(crate) fn reply_length(documents: i32) -> usize {
    let batch = batch(documents);
    reply(if documents == 0 { &OK[..] } else { &batch }, 0).len()
}

/// An OP_MSG with this document.
fn reply(document: &[u8], response_to: i32) -> Vec<u8> {
    let length = i32::try_from(21 + document.len()).expect("short");
    let mut bytes = Vec::with_capacity(21 + document.len());
    for field in [length, 1, response_to, 2013, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.push(0);
    bytes.extend_from_slice(document);
    bytes
}
