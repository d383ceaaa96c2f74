//! Scripted handshakes for the benchmarks: the server's replies are known in advance, because the
//! nonces are fixed.

use std::sync::Arc;

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawDocument, RawDocumentBuf, rawdoc};
use cenote_core::connect::{
    ClientMetadata, DriverInfo, Environment, Establish, EstablishOptions, Nonce, ScramCache, Step,
};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{
    Exchange, Flags, Framer, Ids, Message, MessageLimit, MessageWriter, Progress, RequestIds,
    decompress,
};

const LIMIT: MessageLimit = MessageLimit::DEFAULT;

/// The handshake of one connection.
#[derive(Debug)]
pub struct Conversation {
    options: Arc<EstablishOptions>,
    nonces: [Nonce; 2],
    /// In this order; one for hello, one for each further command.
    replies: Vec<RawDocumentBuf>,
}

impl Conversation {
    /// Hello and nothing else.
    #[must_use]
    pub fn without_credential() -> Self {
        Self {
            options: options("mongodb://db.example.com/?compressors=zstd,snappy"),
            nonces: ["first", "second"].map(nonce),
            replies: vec![hello_reply(None)],
        }
    }

    /// The conversation that RFC 7677 prints, begun in hello: 4096 iterations.
    #[must_use]
    pub fn scram_sha_256() -> Self {
        Self::scram(
            "SCRAM-SHA-256",
            "rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        )
    }

    /// The one that the specification of MongoDB's authentication prints: 10,000 iterations, as
    /// servers ask for.
    #[must_use]
    pub fn scram_sha_1() -> Self {
        Self::scram(
            "SCRAM-SHA-1",
            "fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
            "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
        )
    }

    fn scram(mechanism: &str, first: &str, server_first: &str, server_final: &str) -> Self {
        let uri = format!("mongodb://user:pencil@db.example.com/?authMechanism={mechanism}");
        let said = |text: &str, done| {
            let bytes = text.as_bytes().to_vec();
            let payload = Binary { subtype: BinarySubtype::Generic, bytes };
            rawdoc! { "conversationId": 1, "done": done, "payload": payload }
        };
        let mut last = said(server_final, true);
        last.append(cstr!("ok"), 1.0);
        Self {
            options: options(&uri),
            nonces: [first, "second"].map(nonce),
            replies: vec![hello_reply(Some(said(server_first, false))), last],
        }
    }

    /// A machine, and the first command out of it. Gives the command's length in bytes.
    ///
    /// # Panics
    ///
    /// When the first step is another one.
    #[must_use]
    pub fn hello(&self) -> usize {
        let first = self.begin().next_step().expect("a new one");
        let Step::Send(command) = first else { panic!("hello comes first, not {first:?}") };
        command.body().as_bytes().len()
    }

    /// From documents to documents, until the connection can be used. Gives the number of commands.
    ///
    /// # Panics
    ///
    /// When the replies are not taken.
    pub fn play(&self, cache: &mut ScramCache) -> usize {
        self.run(cache, |establish, _, reply, cache| establish.reply(reply, cache))
    }

    /// The same from bytes to bytes: commands and replies go through the wire format.
    ///
    /// # Panics
    ///
    /// When the replies are not taken.
    pub fn play_on_the_wire(&self, cache: &mut ScramCache) -> usize {
        let mut wire = Wire::default();
        self.run(cache, |establish, command, reply, cache| {
            wire.exchange(establish, command, reply, cache);
        })
    }

    fn begin(&self) -> Establish {
        Establish::new(Arc::clone(&self.options), self.nonces.clone()).expect("it can be done")
    }

    fn run(
        &self,
        cache: &mut ScramCache,
        mut answer: impl FnMut(&mut Establish, &RawDocument, &RawDocument, &mut ScramCache),
    ) -> usize {
        let mut establish = self.begin();
        let mut replies = self.replies.iter();
        loop {
            match establish.next_step().expect("the server is honest") {
                Step::Send(command) => {
                    let reply = replies.next().expect("a reply for each command");
                    answer(&mut establish, command.body(), reply, cache);
                }
                Step::Receive => panic!("answered at once"),
                Step::Derive(derivation) => establish.derived(derivation.run(), cache),
                Step::Token { .. } => panic!("not with this credential"),
                Step::Handshaken(_) => {}
                Step::Done(_) => return self.replies.len() - replies.len(),
            }
        }
    }
}

/// What a new connection has of the wire format, and the bytes that come from the other side.
struct Wire {
    ids: RequestIds,
    exchange: Exchange,
    framer: Framer,
    scratch: Vec<u8>,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            ids: RequestIds::default(),
            exchange: Exchange::default(),
            framer: Framer::new(LIMIT),
            scratch: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
        }
    }
}

impl Wire {
    fn exchange(
        &mut self,
        establish: &mut Establish,
        command: &RawDocument,
        reply: &RawDocument,
        cache: &mut ScramCache,
    ) {
        let request_id = self.ids.next_id();
        self.sent.clear();
        self.exchange.begin_request(request_id, Flags::NONE).expect("our turn");
        let ids = Ids::request(request_id);
        let writer = MessageWriter::new(&mut self.sent, ids, Flags::NONE, command);
        writer.finish(LIMIT).expect("within the limit");
        self.exchange.request_written();

        // The server's part, which takes little time.
        self.received.clear();
        let ids = Ids { request_id: 1000 + request_id, response_to: request_id };
        let writer = MessageWriter::new(&mut self.received, ids, Flags::NONE, reply);
        writer.finish(LIMIT).expect("within the limit");

        self.framer.push(&self.received);
        let frame = self.framer.next_frame().expect("no error").expect("a whole message");
        let frame = decompress(frame, LIMIT, &mut self.scratch).expect("not compressed");
        let message = Message::parse(frame).expect("as it was written");
        let progress = self.exchange.reply(message.header(), message.flags());
        assert_eq!(progress, Ok(Progress::Complete));
        establish.reply(message.body(), cache);
    }
}

fn nonce(text: &str) -> Nonce {
    Nonce::from_text(text).expect("printable")
}

/// As a driver in a container would be configured.
fn options(uri: &str) -> Arc<EstablishOptions> {
    let uri = ConnectionString::parse(uri).expect("one of ours");
    let mut environment = Environment {
        os_type: Some("Linux".to_owned()),
        os_name: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        architecture: Some("x86_64".to_owned()),
        has_dockerenv: true,
        ..Environment::default()
    };
    environment.variables.insert("KUBERNETES_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned());
    let mut client = ClientMetadata::new(Some("shop"), &environment).expect("a short name");
    client.append(DriverInfo::new("embedder", Some("1.2.3"), Some("tokio")).expect("no bars"));
    Arc::new(EstablishOptions::new(&uri, &client))
}

/// The reply of the primary of a replica set, including fields that are not used here.
fn hello_reply(speculative: Option<RawDocumentBuf>) -> RawDocumentBuf {
    let process_id = bson::oid::ObjectId::from_bytes([7; 12]);
    let now = bson::DateTime::from_millis(1_700_000_000_000);
    let time = bson::Timestamp { time: 1_700_000_000, increment: 1 };
    let mut reply = rawdoc! {
        "helloOk": true,
        "topologyVersion": { "processId": process_id, "counter": 6_i64 },
        "hosts": ["db1.example.com:27017", "db2.example.com:27017", "db3.example.com:27017"],
        "setName": "rs0", "setVersion": 3, "ismaster": true, "secondary": false,
        "primary": "db1.example.com:27017", "me": "db1.example.com:27017",
        "electionId": bson::oid::ObjectId::from_bytes([8; 12]),
        "lastWrite": {
            "opTime": { "ts": time, "t": 1_i64 }, "lastWriteDate": now,
            "majorityOpTime": { "ts": time, "t": 1_i64 }, "majorityWriteDate": now,
        },
        "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000, "localTime": now, "logicalSessionTimeoutMinutes": 30,
        "connectionId": 4711, "minWireVersion": 0, "maxWireVersion": 25, "readOnly": false,
        "compression": ["zstd", "snappy"],
    };
    if let Some(speculative) = speculative {
        reply.append(cstr!("speculativeAuthenticate"), speculative);
    }
    reply.append(cstr!("ok"), 1.0);
    reply
}

#[cfg(test)]
mod tests {
    use cenote_core::connect::ScramCache;

    use super::Conversation;

    /// Each comes to its end, and PBKDF2 is run once.
    #[test]
    fn all_of_them() {
        let cases = [
            (Conversation::without_credential(), 1),
            (Conversation::scram_sha_256(), 2),
            (Conversation::scram_sha_1(), 2),
        ];
        for (conversation, commands) in cases {
            let mut cache = ScramCache::default();
            assert_eq!(conversation.play(&mut cache), commands);
            assert_eq!(conversation.play_on_the_wire(&mut cache), commands);
            assert_eq!(cache.len(), commands - 1);
            assert!(conversation.hello() > 200);
        }
    }
}
