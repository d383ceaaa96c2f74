//! A server of one user, and what it takes to talk to one.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawDocumentBuf, doc};
use cenote_core::connect::{
    ClientMetadata, ConnectionDescription, Environment, Establish, EstablishOptions,
    MAX_SASL_REPLIES, Nonce, ScramCache, Step,
};
use cenote_core::error::ConnectionError;
use cenote_core::uri::{ConnectionString, Mechanism};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

pub(crate) const PASSWORD: &str = "pencil";
pub(crate) const ITERATIONS: u32 = 4096;
pub(crate) const SALT: &[u8] = b"0123456789abcdef";

pub(crate) fn options(uri: &str) -> EstablishOptions {
    let uri = ConnectionString::parse(uri).expect(uri);
    let client = ClientMetadata::new(None, &Environment::default()).expect("no name");
    EstablishOptions::new(&uri, &client)
}

pub(crate) fn nonces() -> [Nonce; 2] {
    [[1; 24], [2; 24]].map(Nonce::from_random)
}

pub(crate) fn establish(uri: &str) -> Establish {
    Establish::new(Arc::new(options(uri)), nonces()).expect(uri)
}

pub(crate) fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("keys without NUL")
}

pub(crate) fn binary(bytes: &[u8]) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() })
}

/// What became of a connection.
pub(crate) struct Outcome {
    pub(crate) commands: Vec<Document>,
    pub(crate) handshaken: Option<ConnectionDescription>,
    pub(crate) result: Result<ConnectionDescription, ConnectionError>,
}

/// Answers each command until the connection is established or fails, which is soon.
pub(crate) fn converse(
    mut establish: Establish,
    cache: &mut ScramCache,
    mut answer: impl FnMut(&Document) -> Document,
) -> Outcome {
    let (mut commands, mut handshaken) = (Vec::new(), None);
    let mut replies = 0;
    let result = loop {
        match establish.next_step() {
            Ok(Step::Send(command)) => {
                let body = Document::try_from(command.body()).expect("a document of ours");
                assert_eq!(body.keys().next().map(String::as_str), Some(command.name()));
                commands.push(body);
            }
            Ok(Step::Receive) => {
                replies += 1;
                assert!(replies <= 1 + MAX_SASL_REPLIES, "conversations end");
                let reply = answer(commands.last().expect("something to answer"));
                establish.reply(&raw(&reply), cache);
            }
            Ok(Step::Derive(derivation)) => establish.derived(derivation.run(), cache),
            Ok(Step::Token { .. }) => panic!("not with this credential"),
            Ok(Step::Handshaken(description)) => {
                assert!(handshaken.is_none(), "told once");
                handshaken = Some(*description);
            }
            Ok(Step::Done(description)) => break Ok(*description),
            Err(error) => break Err(error),
        }
    };
    Outcome { commands, handshaken, result }
}

/// A server whose user is `user` with the password [`PASSWORD`].
pub(crate) struct Server {
    pub(crate) hello: Document,
    pub(crate) mechanism: Mechanism,
    pub(crate) speculates: bool,
    pub(crate) empty_exchange: bool,
    /// Changes a reply on its way; the number counts the replies to SASL commands, from 1.
    pub(crate) lie: Lie,
    pub(crate) talk: Talk,
}

pub(crate) type Lie = Box<dyn Fn(usize, &mut Document)>;

/// How far the conversation has come.
#[derive(Default)]
pub(crate) struct Talk {
    first_bare: String,
    server_first: String,
    replies: usize,
}

impl Server {
    pub(crate) fn new(mechanism: Mechanism) -> Self {
        Self {
            hello: doc! { "ok": 1, "maxWireVersion": 25 },
            mechanism,
            speculates: true,
            empty_exchange: false,
            lie: Box::new(|_, _| {}),
            talk: Talk::default(),
        }
    }

    pub(crate) fn answer(&mut self, command: &Document) -> Document {
        let name = command.keys().next().expect("a command").as_str();
        if matches!(name, "hello" | "isMaster") {
            return self.answer_hello(command);
        }
        let mut reply = match name {
            "saslStart" => self.start(command),
            "saslContinue" => self.go_on(command),
            other => panic!("unexpected: {other}"),
        };
        if !reply.contains_key("ok") {
            reply.insert("ok", 1);
        }
        reply
    }

    fn answer_hello(&mut self, command: &Document) -> Document {
        let mut reply = self.hello.clone();
        if let (true, Ok(start)) =
            (self.speculates, command.get_document("speculativeAuthenticate"))
            && start.get_str("mechanism").ok() == Some(self.mechanism.name())
        {
            reply.insert("speculativeAuthenticate", self.start(start));
        }
        reply
    }

    fn start(&mut self, command: &Document) -> Document {
        assert_eq!(command.get_str("mechanism").ok(), Some(self.mechanism.name()));
        // AU-21
        assert_eq!(command.get_document("options").ok(), Some(&doc! { "skipEmptyExchange": true }));
        let first = payload(command);
        self.talk.first_bare = first.strip_prefix("n,,").expect("no channel binding").to_owned();
        let (_, nonce) = self.talk.first_bare.split_once(",r=").expect("a nonce");
        let salt = STANDARD.encode(SALT);
        self.talk.server_first = format!("r={nonce}server,s={salt},i={ITERATIONS}");
        self.reply(false, &self.talk.server_first.clone())
    }

    fn go_on(&mut self, command: &Document) -> Document {
        assert_eq!(command.get_i32("conversationId").ok(), Some(7));
        let last = payload(command);
        if last.is_empty() {
            return self.reply(true, "");
        }
        let (unproven, proof) = last.split_once(",p=").expect("a proof");
        let signed = format!("{},{},{unproven}", self.talk.first_bare, self.talk.server_first);
        let keys = Keys::of(self.mechanism);
        if STANDARD.decode(proof).expect("base64") != keys.proof(signed.as_bytes()) {
            return doc! { "ok": 0, "code": 18, "codeName": "AuthenticationFailed" };
        }
        let signature = STANDARD.encode(keys.hmac(&keys.server, signed.as_bytes()));
        self.reply(!self.empty_exchange, &format!("v={signature}"))
    }

    fn reply(&mut self, done: bool, payload: &str) -> Document {
        self.talk.replies += 1;
        let payload = binary(payload.as_bytes());
        let mut reply = doc! { "conversationId": 7, "done": done, "payload": payload };
        (self.lie)(self.talk.replies, &mut reply);
        reply
    }
}

fn payload(command: &Document) -> String {
    let bytes = command.get_binary_generic("payload").expect("a payload");
    String::from_utf8(bytes.clone()).expect("text")
}

/// Both sides' keys for the password.
struct Keys {
    sha_256: bool,
    client: Vec<u8>,
    server: Vec<u8>,
}

impl Keys {
    fn of(mechanism: Mechanism) -> Self {
        let sha_256 = mechanism == Mechanism::ScramSha256;
        let mut keys = Self { sha_256, client: Vec::new(), server: Vec::new() };
        let salted = if sha_256 {
            let mut salted = vec![0; 32];
            pbkdf2::pbkdf2_hmac::<Sha256>(PASSWORD.as_bytes(), SALT, ITERATIONS, &mut salted);
            salted
        } else {
            // MD5 of `user:mongo:pencil`.
            let digest = "1c33006ec1ffd90f9cadcbcc0e118200";
            let mut salted = vec![0; 20];
            pbkdf2::pbkdf2_hmac::<Sha1>(digest.as_bytes(), SALT, ITERATIONS, &mut salted);
            salted
        };
        keys.client = keys.hmac(&salted, b"Client Key");
        keys.server = keys.hmac(&salted, b"Server Key");
        keys
    }

    fn proof(&self, signed: &[u8]) -> Vec<u8> {
        let stored = if self.sha_256 {
            Sha256::digest(&self.client).to_vec()
        } else {
            Sha1::digest(&self.client).to_vec()
        };
        let signature = self.hmac(&stored, signed);
        self.client.iter().zip(signature).map(|(key, signature)| key ^ signature).collect()
    }

    fn hmac(&self, key: &[u8], message: &[u8]) -> Vec<u8> {
        if self.sha_256 {
            let hmac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
            hmac.chain_update(message).finalize().into_bytes().to_vec()
        } else {
            let hmac = Hmac::<Sha1>::new_from_slice(key).expect("any length");
            hmac.chain_update(message).finalize().into_bytes().to_vec()
        }
    }
}
