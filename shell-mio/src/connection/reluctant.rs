//! A socket that would block at every other call, and takes and gives one byte at the others; and a
//! server behind it, with TLS and without. Whatever is woken in vain tries in vain, and nothing is
//! lost.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};

use bson::rawdoc;
use cenote_core::error::Stage;
use cenote_core::uri::Compressor as Agreed;
use cenote_core::uri::TlsOptions;
use cenote_core::wire::{
    Compressor, CompressorId, Flags, Frame, Framer, Ids, Message, MessageLimit, MessageWriter,
    ZlibLevel, decompress,
};
use cenote_shell::tls;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ClientConnection, ServerConfig, ServerConnection};

use super::messages::{Failure, Messages};
use super::stream::{Socket, Stream};

/// The socket's other end.
pub(super) struct Reluctant(Mutex<State>);

struct State {
    server: Server,
    to_client: VecDeque<u8>,
    is_willing: bool,
}

struct Server {
    tls: Option<ServerConnection>,
    framer: Framer,
    compressor: Option<Compressor>,
}

impl Reluctant {
    fn new(tls: Option<ServerConnection>, compressor: Option<Compressor>) -> Self {
        let server = Server { tls, framer: Framer::new(MessageLimit::DEFAULT), compressor };
        Self(Mutex::new(State { server, to_client: VecDeque::new(), is_willing: false }))
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.lock().expect("no panic");
        state.hesitate()?;
        let byte = state.to_client.pop_front().ok_or(ErrorKind::WouldBlock)?;
        buffer[0] = byte;
        Ok(1)
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().expect("no panic");
        state.hesitate()?;
        let State { server, to_client, .. } = &mut *state;
        server.receive(bytes[0], to_client);
        Ok(1)
    }
}

impl State {
    fn hesitate(&mut self) -> io::Result<()> {
        self.is_willing = !self.is_willing;
        if self.is_willing { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
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

/// Tries until it is done, and says how often that was in vain.
fn insist<R>(mut step: impl FnMut() -> Result<R, Failure>) -> (R, u32) {
    let mut in_vain = 0;
    loop {
        match Failure::split_would_block(step()) {
            Ok(Ok(done)) => return (done, in_vain),
            Ok(Err(failure)) => panic!("{}", failure.at(Stage::Operation)),
            Err(error) => in_vain += u32::from(error.kind() == ErrorKind::WouldBlock),
        }
    }
}

fn talk(mut stream: Stream, compressor: Option<Compressor>) {
    let _ = insist(|| Ok(stream.shake()?));
    let mut messages = Messages::new(stream);
    messages.agree(MessageLimit::DEFAULT, compressor);
    for n in 0..3 {
        messages.begin(&rawdoc! { "ping": n }, Some("admin"), Flags::NONE).expect("its turn");
        let refused = messages.begin(&rawdoc! { "ping": 9 }, Some("admin"), Flags::NONE);
        assert!(matches!(refused, Err(Failure::Refused(_))));
        let ((), in_vain) = insist(|| Ok(messages.write()?));
        assert!(in_vain > 40, "{in_vain}");
        assert!(!messages.is_reusable());
        let (reply, in_vain) = insist(|| messages.read());
        assert!(in_vain > 30, "{in_vain}");
        assert_eq!(reply.get_i32("n").ok(), Some(n));
        assert!(messages.is_reusable());
    }
}

fn compressors() -> [Option<Compressor>; 2] {
    let id = CompressorId::from_name(Agreed::Zlib.name()).expect("zlib");
    [None, Compressor::new(id, ZlibLevel::DEFAULT).ok()]
}

#[test]
fn without_tls() {
    for compressor in compressors() {
        talk(
            Stream::new(Socket::Reluctant(Box::new(Reluctant::new(None, compressor)))),
            compressor,
        );
    }
}

#[test]
fn with_tls() {
    let certified = rcgen::generate_simple_self_signed(["db.example.com".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .unwrap();
    let mut insecure = TlsOptions::default();
    insecure.insecure = Some(true);
    let client = tls::config(&insecure).unwrap();
    let (server, client) = (Arc::new(server), Arc::new(client));
    for compressor in compressors() {
        let tls = ServerConnection::new(Arc::clone(&server)).unwrap();
        let reluctant = Reluctant::new(Some(tls), compressor);
        let mut stream = Stream::new(Socket::Reluctant(Box::new(reluctant)));
        let name = "db.example.com".try_into().unwrap();
        stream.start_tls(ClientConnection::new(Arc::clone(&client), name).unwrap());
        talk(stream, compressor);
    }
}
