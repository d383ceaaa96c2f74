//! Steps on a socket that would block at every other call and transfers one byte at the others,
//! with a server behind it, with TLS and without: nothing is lost.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use bson::rawdoc;
use cenote_core::error::Stage;
use cenote_core::uri::Compressor as Agreed;
use cenote_core::uri::TlsOptions;
use cenote_core::wire::{
    Compressor, CompressorId, Flags, Frame, Framer, Ids, Message, MessageLimit, MessageWriter,
    ZlibLevel, decompress,
};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ClientConnection, ServerConfig, ServerConnection};

use super::transport::Transport;
use crate::connection::transport_error::TransportError;
use crate::tls;

struct OneByteSocket {
    server: Server,
    to_client: VecDeque<u8>,
    is_ready: bool,
}

struct Server {
    tls: Option<ServerConnection>,
    framer: Framer,
    compressor: Option<Compressor>,
}

impl OneByteSocket {
    fn new(tls: Option<ServerConnection>, compressor: Option<Compressor>) -> Self {
        let server = Server { tls, framer: Framer::new(MessageLimit::DEFAULT), compressor };
        Self { server, to_client: VecDeque::new(), is_ready: false }
    }

    fn alternate(&mut self) -> io::Result<()> {
        self.is_ready = !self.is_ready;
        if self.is_ready { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }
}

impl Read for OneByteSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.alternate()?;
        buffer[0] = self.to_client.pop_front().ok_or(ErrorKind::WouldBlock)?;
        Ok(1)
    }
}

impl Write for OneByteSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.alternate()?;
        self.server.receive(bytes[0], &mut self.to_client);
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Server {
    fn receive(&mut self, byte: u8, to_client: &mut VecDeque<u8>) {
        let Some(tls) = &mut self.tls else {
            self.framer.push(&[byte]);
            to_client.extend(self.replies());
            return;
        };
        tls.read_tls(&mut &[byte][..]).expect("a byte");
        tls.process_new_packets().expect("good TLS");
        let mut plain = Vec::new();
        // Until there is no more.
        let _ = tls.reader().read_to_end(&mut plain);
        self.framer.push(&plain);
        let replies = self.replies();
        let Some(tls) = &mut self.tls else { unreachable!("it was there") };
        tls.writer().write_all(&replies).expect("room");
        while tls.wants_write() {
            let mut bytes = Vec::new();
            tls.write_tls(&mut bytes).expect("memory");
            to_client.extend(bytes);
        }
    }

    /// To each whole command, with its own `n`.
    fn replies(&mut self) -> Vec<u8> {
        let mut replies = Vec::new();
        while let Some(frame) = self.framer.next_frame().expect("good frames") {
            let mut scratch = Vec::new();
            let frame = decompress(frame, MessageLimit::DEFAULT, &mut scratch).expect("good bytes");
            let command = Message::parse(frame).expect("a message");
            let n = command.body().get_i32("ping").expect("a ping");
            let ids = Ids { request_id: 1000 + n, response_to: command.header().ids.request_id };
            let mut reply = Vec::new();
            MessageWriter::new(&mut reply, ids, Flags::NONE, &rawdoc! { "ok": 1, "n": n })
                .finish(MessageLimit::DEFAULT)
                .expect("it fits");
            match self.compressor {
                Some(compressor) => {
                    let limit = MessageLimit::DEFAULT;
                    let whole = Frame::new(&reply, limit).expect("a frame");
                    compressor.compress(whole, limit, &mut replies).expect("it fits");
                }
                None => replies.extend(reply),
            }
        }
        replies
    }
}

/// Repeats a step until it is done, and counts how often it would block.
fn repeat<T>(mut step: impl FnMut() -> Result<T, TransportError>) -> (T, u32) {
    let mut blocked = 0;
    loop {
        match TransportError::split_would_block(step()) {
            Ok(Ok(done)) => return (done, blocked),
            Ok(Err(failure)) => panic!("{}", failure.at(Stage::Operation)),
            Err(error) => blocked += u32::from(error.kind() == ErrorKind::WouldBlock),
        }
    }
}

fn exchange(
    mut transport: Transport,
    tls: Option<ServerConnection>,
    compressor: Option<Compressor>,
) {
    let io = &mut OneByteSocket::new(tls, compressor);
    let _ = repeat(|| Ok(transport.shake(io)?));
    transport.agree(MessageLimit::DEFAULT, compressor);
    for n in 0..3 {
        transport.begin(&rawdoc! { "ping": n }, Some("admin"), Flags::NONE).expect("its turn");
        let refused = transport.begin(&rawdoc! { "ping": 9 }, Some("admin"), Flags::NONE);
        assert!(matches!(refused, Err(TransportError::Refused(_))));
        let ((), blocked) = repeat(|| Ok(transport.write(io)?));
        assert!(blocked > 40, "{blocked}");
        assert!(!transport.is_reusable());
        let (reply, blocked) = repeat(|| transport.read(io));
        assert!(blocked > 30, "{blocked}");
        assert_eq!(reply.get_i32("n").ok(), Some(n));
        assert!(transport.is_reusable());
    }
}

fn compressors() -> [Option<Compressor>; 2] {
    let id = CompressorId::from_name(Agreed::Zlib.name()).expect("zlib");
    [None, Compressor::new(id, ZlibLevel::DEFAULT).ok()]
}

#[test]
fn without_tls() {
    for compressor in compressors() {
        exchange(Transport::new(), None, compressor);
    }
}

#[test]
fn with_tls() {
    let certified = rcgen::generate_simple_self_signed(["db.example.com".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .unwrap();
    let mut insecure = TlsOptions::default();
    insecure.insecure = Some(true);
    let client = tls::config(&insecure, provider).unwrap();
    let (server, client) = (Arc::new(server), Arc::new(client));
    for compressor in compressors() {
        let mut transport = Transport::new();
        let name = "db.example.com".try_into().unwrap();
        transport.start_tls(ClientConnection::new(Arc::clone(&client), name).unwrap());
        let tls = ServerConnection::new(Arc::clone(&server)).unwrap();
        exchange(transport, Some(tls), compressor);
    }
}
