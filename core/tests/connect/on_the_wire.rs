//! What comes instead of a reply: each damage is told with the stage it happened in.

use std::sync::Arc;

use bson::{Document, RawDocumentBuf, rawdoc};
use cenote_core::connect::{ConnectionDescription, Establish, ScramCache, Step};
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};
use cenote_core::uri::Mechanism;
use cenote_core::wire::{
    Exchange, Flags, Framer, Ids, Message, MessageLimit, MessageWriter, Progress, RequestIds,
    WireError, decompress,
};

use crate::connect::server::{Server, nonces, options, raw};

const URI: &str = "mongodb://user:pencil@db/?authMechanism=SCRAM-SHA-256";
const LIMIT: MessageLimit = MessageLimit::DEFAULT;

/// Changes the bytes of a reply on their way.
type Damage = fn(&mut Vec<u8>);

/// One side of a connection, as a shell has it: messages, whose turn it is, and what is read.
struct Connection {
    ids: RequestIds,
    exchange: Exchange,
    framer: Framer,
    scratch: Vec<u8>,
}

impl Connection {
    fn new() -> Self {
        let framer = Framer::new(LIMIT);
        let (ids, exchange) = (RequestIds::default(), Exchange::default());
        Self { ids, exchange, framer, scratch: Vec::new() }
    }

    fn send(&mut self, body: &bson::RawDocument) -> i32 {
        let request_id = self.ids.next_id();
        let mut bytes = Vec::new();
        let message = MessageWriter::new(&mut bytes, Ids::request(request_id), Flags::NONE, body);
        message.finish(LIMIT).expect("short");
        self.exchange.begin_request(request_id, Flags::NONE).expect("our turn");
        self.exchange.request_written();
        request_id
    }

    /// `None` when the bytes end before the message does.
    fn receive(&mut self, bytes: &[u8]) -> Result<Option<RawDocumentBuf>, WireError> {
        self.framer.push(bytes);
        let Some(frame) = self.framer.next_frame()? else { return Ok(None) };
        let reply = Message::parse(decompress(frame, LIMIT, &mut self.scratch)?)?;
        let progress = self.exchange.reply(reply.header(), reply.flags())?;
        assert_eq!(progress, Progress::Complete);
        Ok(Some(reply.body().to_owned()))
    }
}

/// Establishes a connection whose reply of that number, from 0, is damaged.
fn establish(which: usize, damage: Damage) -> Result<ConnectionDescription, ConnectionError> {
    let mut establish =
        Establish::new(Arc::new(options(URI)), nonces()).expect("nothing against it");
    let mut server = Server::new(Mechanism::ScramSha256);
    let (mut connection, mut cache) = (Connection::new(), ScramCache::default());
    let (mut answer, mut replies) = (Vec::new(), 0);
    loop {
        match establish.next_step()? {
            Step::Send(command) => {
                let response_to = connection.send(command.body());
                let command = Document::try_from(command.body()).expect("a document of ours");
                let ids = Ids { request_id: 70 + response_to, response_to };
                answer.clear();
                let reply = raw(&server.answer(&command));
                let message = MessageWriter::new(&mut answer, ids, Flags::NONE, &reply);
                message.finish(LIMIT).expect("short");
                if replies == which {
                    damage(&mut answer);
                }
                replies += 1;
            }
            Step::Receive => match connection.receive(&answer) {
                Ok(Some(reply)) => establish.reply(&reply, &mut cache),
                Ok(None) => establish.failed("closed by the peer"),
                Err(error) => establish.garbled(&error.to_string()),
            },
            Step::Derive(derivation) => establish.derived(derivation.run(), &mut cache),
            Step::Token { .. } => panic!("not with this credential"),
            Step::Handshaken(_) => {}
            Step::Done(description) => return Ok(*description),
        }
    }
}

/// Another message in place of the reply, to the same request.
fn instead(bytes: &mut Vec<u8>, flags: u32, body: &[u8], op_code: i32) {
    let mut message = Vec::new();
    let length = 20 + body.len() as i32;
    message.extend(length.to_le_bytes());
    message.extend_from_slice(&bytes[4..12]);
    message.extend(op_code.to_le_bytes());
    message.extend(flags.to_le_bytes());
    message.extend_from_slice(body);
    *bytes = message;
}

/// An OP_COMPRESSED; its `uncompressedSize` and what follows.
fn compressed(bytes: &mut Vec<u8>, size: i32, id: u8, body: &[u8]) {
    let body = [&size.to_le_bytes()[..], &[id], body].concat();
    instead(bytes, 2013, &body, 2012);
}

/// The body section with a document of these bytes.
fn document(bytes: &mut Vec<u8>, document: &[u8]) {
    instead(bytes, 0, &[&[0], document].concat(), 2013);
}

fn set_length(bytes: &mut [u8], length: i32) {
    bytes[..4].copy_from_slice(&length.to_le_bytes());
}

const ALL: [(Damage, &str); 19] = [
    (|it| set_length(it, -1), "a message length of -1 is not between 16 and 48000000 bytes"),
    (|it| set_length(it, 15), "a message length of 15 is not between 16 and 48000000 bytes"),
    (
        |it| set_length(it, 48_000_001),
        "a message length of 48000001 is not between 16 and 48000000 bytes",
    ),
    (|it| it[12] = 0xD4, "expected OP_MSG, got OP_QUERY"),
    (|it| it[12..16].fill(0), "opcode 0 is unknown"),
    (|it| it[8] ^= 64, "expected a reply to message "),
    (|it| it[16] |= 2, "the reply announces another one, which the request did not allow"),
    (|it| it[16] |= 4, "required flag bits 0x0004 are unknown"),
    (|it| it[20] = 9, "section kind 9 at byte 20 is unknown"),
    (
        |it| {
            it[16] |= 1;
            let length = it.len() as i32 + 4;
            set_length(it, length);
            it.extend([1, 2, 3, 4]);
        },
        "the checksum says 0x04030201, but the message has 0x",
    ),
    (|it| document(it, &[]), "document at byte 21 needs 5 more bytes, but only 0 are left"),
    (
        |it| document(it, &[4, 0, 0, 0, 0]),
        "bad BSON at byte 21: a length of 4 is not between 5 and 5 bytes",
    ),
    (
        |it| document(it, &[0, 0, 0, 0x80, 0]),
        "bad BSON at byte 21: a length of -2147483648 is not between 5 and 5 bytes",
    ),
    (|it| document(it, &deep(300)), "bad BSON at byte 1421: nested deeper than 200"),
    (|it| document(it, &[9, 0, 0, 0, 8, b'o', 0, 7, 0]), "bad BSON at byte 28: a boolean of 7"),
    (|it| compressed(it, 10, 9, &[]), "compressor 9 is unknown"),
    (
        |it| compressed(it, -1, 2, &[]),
        "an uncompressed size of -1 is not between 0 and 47999984 bytes",
    ),
    (
        |it| compressed(it, i32::MAX, 2, &[]),
        "an uncompressed size of 2147483647 is not between 0 and 47999984 bytes",
    ),
    (
        |it| compressed(it, 5, 0, &[0; 1000]),
        "the message says 5 uncompressed bytes, but noop gives 1000",
    ),
];

/// A document in a document, and so on.
fn deep(levels: usize) -> Vec<u8> {
    (0..levels).fold(rawdoc! {}, |inner, _| rawdoc! { "d": inner }).into_bytes()
}

// MS-10, CM-13, MS-05, MS-07, MS-09, MS-15: in hello, and after it.
#[test]
fn damaged_messages() {
    for (which, stage) in [(0, Stage::Hello), (1, Stage::Authentication)] {
        for (damage, reason) in ALL {
            let error = establish(which, damage).expect_err(reason);
            assert_eq!(error.to_string(), format!("{stage}: {}", error.reason()));
            assert_eq!((error.stage(), error.kind()), (stage, &Kind::Protocol), "{error}");
            assert_eq!(error.labels(RetryWrites::Enabled).count(), 0, "it is no overload");
            assert!(error.reason().starts_with(reason), "{error}");
        }
    }
}

// CM-13: announced as almost as much as a message may have.
#[cfg(feature = "zlib")]
#[test]
fn a_boast() {
    let error = establish(0, |it| compressed(it, 47_000_000, 2, &[0x78, 0x9C]));
    let error = error.expect_err("there is nothing behind it");
    assert_eq!(error.to_string(), "hello: zlib cannot read the message: it ends too early");
}

// ER-30, ER-31: what is not whole did not come.
#[test]
fn a_reply_that_is_cut() {
    for (which, stage, labels) in [(0, Stage::Hello, 3), (1, Stage::Authentication, 1)] {
        let lengths: [Damage; 4] = [
            |it| it.clear(),
            |it| it.truncate(3),
            |it| it.truncate(16),
            |it| it.truncate(it.len() - 1),
        ];
        for cut in lengths {
            let error = establish(which, cut).expect_err("it was cut");
            assert_eq!(error.to_string(), format!("{stage}: closed by the peer"));
            assert_eq!(error.kind(), &Kind::Network);
            assert_eq!(error.labels(RetryWrites::Enabled).count(), labels);
        }
    }
}

/// Undamaged it goes through, so that the damages are what fails.
// HS-02
#[test]
fn whole_messages() {
    let description = establish(usize::MAX, |_| {}).expect("nothing is wrong");
    assert_eq!(description.mechanism, Some(Mechanism::ScramSha256));
    let honest: Damage = |it| {
        let body = it[16..].to_vec();
        let size = body.len() as i32;
        compressed(it, size, 0, &body);
    };
    assert!(establish(1, honest).is_ok(), "compressed by what does nothing (CM-08)");
}
