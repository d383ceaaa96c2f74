//! Nothing that can be shown shows a secret.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use bson::{Bson, Document, RawDocument, doc};
use cenote_core::connect::{Establish, Nonce, ScramCache, Socks5, Step};
use cenote_core::uri::{ConnectionString, Mechanism};
use cenote_core::wire::{Flags, Framer, Ids, Message, MessageLimit, MessageWriter, Query};

use crate::connect::server::{Server, options, raw};

const NONCE: &str = "hunter2nonce";
const SECRETS: [&str; 3] = [NONCE, "pencil", "hunter2proxy"];

fn check(shown: &str) {
    for secret in SECRETS {
        check_bytes(shown, secret.as_bytes());
    }
}

/// However they may be printed. What is shorter than a secret is somewhere by chance.
fn check_bytes(shown: &str, secret: &[u8]) {
    if secret.len() < 6 {
        return;
    }
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let list = format!("{secret:?}");
    let lines = format!("{secret:#?}").replace("    ", "");
    let text = String::from_utf8_lossy(secret);
    let forms = [&*text, &hex, list.trim_matches(['[', ']']), lines.trim_matches(['[', ']'])];
    let flat = shown.replace("    ", "");
    for form in forms {
        assert!(!flat.contains(form) && !shown.contains(form), "{form} in {shown}");
    }
}

fn look(value: &impl Debug) {
    check(&shown(value));
}

/// A `Debug` that shows nothing hides everything, and is of no use.
fn shown(value: &impl Debug) -> String {
    let short = format!("{value:?}");
    assert!(!short.is_empty());
    format!("{short} {value:#?}")
}

/// Everything that is shown on the way, to be looked through once all secrets are known.
#[derive(Default)]
struct Shown(String);

impl Shown {
    fn look(&mut self, value: &impl Debug) {
        writeln!(self.0, "{}", shown(value)).expect("into memory");
    }
}

// AU-60
#[test]
fn a_conversation_shows_nothing() {
    for mechanism in ["SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"] {
        let uri = format!("mongodb://user:pencil@db/?authMechanism={mechanism}");
        let options = Arc::new(options(&uri));
        let nonces = [NONCE, NONCE].map(|text| Nonce::from_text(text).unwrap());
        let (mut shown, mut payloads) = (Shown::default(), Vec::new());
        shown.look(&options);
        shown.look(&nonces);
        let mut establish = Establish::new(options, nonces).unwrap();
        let mut server = Server::new(Mechanism::of_name(mechanism).unwrap());
        let mut cache = ScramCache::default();
        loop {
            shown.look(&establish);
            shown.look(&cache);
            let step = establish.next_step();
            shown.look(&step);
            match step.unwrap() {
                Step::Send(command) => {
                    look_at_message(command.body(), &mut shown);
                    let command = Document::try_from(command.body()).unwrap();
                    let reply = if mechanism == "PLAIN" {
                        let payload = crate::connect::server::binary(b"server's");
                        doc! { "ok": 1, "conversationId": 1, "done": true, "payload": payload }
                    } else {
                        server.answer(&command)
                    };
                    collect_payloads(&command, &mut payloads);
                    collect_payloads(&reply, &mut payloads);
                    let reply = raw(&reply);
                    look_at_message(&reply, &mut shown);
                    establish.reply(&reply, &mut cache);
                }
                Step::Receive => panic!("answered at once"),
                Step::Token { .. } => panic!("not with this credential"),
                Step::Derive(derivation) => {
                    let keys = derivation.run();
                    shown.look(&keys);
                    establish.derived(keys, &mut cache);
                }
                Step::Handshaken(_) => {}
                Step::Done(_) => break,
            }
        }
        assert_eq!(cache.len(), usize::from(mechanism != "PLAIN"));
        assert!(payloads.len() >= 2, "both sides have spoken");
        check(&shown.0);
        for payload in payloads {
            check_bytes(&shown.0, &payload);
            // And what a payload is made of: nonces, salts, proofs, signatures.
            for part in payload.split(|byte| *byte == b',').filter_map(|part| part.get(2..)) {
                check_bytes(&shown.0, part);
            }
        }
    }
}

/// A command or reply as the wire format has it, which is shown as well.
fn look_at_message(body: &RawDocument, shown: &mut Shown) {
    let mut bytes = Vec::new();
    let writer = MessageWriter::new(&mut bytes, Ids::request(1), Flags::NONE, body);
    shown.look(&writer);
    writer.finish(MessageLimit::DEFAULT).expect("short");
    let mut framer = Framer::new(MessageLimit::DEFAULT);
    framer.push(&bytes);
    shown.look(&framer);
    let frame = framer.next_frame().expect("ours").expect("whole");
    shown.look(&frame);
    let message = Message::parse(frame).expect("ours");
    shown.look(&message);
    let query = Query { flags: 0, collection: "admin.$cmd", skip: 0, limit: 1, document: body };
    shown.look(&query);
}

fn collect_payloads(document: &Document, payloads: &mut Vec<Vec<u8>>) {
    for (key, value) in document {
        if let Bson::Document(inner) = value {
            collect_payloads(inner, payloads);
        }
        if let (Bson::Binary(binary), "payload") = (value, key.as_str()) {
            payloads.push(binary.bytes.clone());
        }
    }
}

/// Errors repeat what the server says, which may be what it was told, only where it names a reason
/// of its own.
// AU-60
#[test]
fn errors_show_nothing() {
    let lies: [fn(usize, &mut Document); 5] = [
        |_, it| drop(it.insert("payload", crate::connect::server::binary(b"e=hunter2nonce"))),
        |_, it| drop(it.insert("payload", "pencil")),
        |_, it| drop(it.insert("payload", crate::connect::server::binary(b"r=hunter2nonce"))),
        |_, it| {
            drop(it.insert("payload", crate::connect::server::binary(b"r=hunter2nonceX,s=!,i=1")));
        },
        |reply, it| {
            if reply == 2 {
                it.insert("payload", crate::connect::server::binary(b"v=cGVuY2ls"));
            }
        },
    ];
    for lie in lies {
        let options = options("mongodb://user:pencil@db/?authMechanism=SCRAM-SHA-256");
        let nonces = [NONCE, NONCE].map(|text| Nonce::from_text(text).unwrap());
        let establish = Establish::new(Arc::new(options), nonces).unwrap();
        let mut server = Server::new(Mechanism::ScramSha256);
        server.lie = Box::new(lie);
        let mut cache = ScramCache::default();
        let outcome =
            crate::connect::server::converse(establish, &mut cache, |it| server.answer(it));
        let error = outcome.result.unwrap_err();
        look(&error);
        check(&error.to_string());
    }
}

#[test]
fn a_proxy_shows_nothing() {
    let uri = "mongodb://db/?proxyHost=p&proxyUsername=u&proxyPassword=hunter2proxy";
    let proxy = ConnectionString::parse(uri).unwrap().proxy.unwrap();
    let mut socks5 = Socks5::new(&"db".parse().unwrap(), proxy.credential.as_ref()).unwrap();
    look(&proxy);
    look(&socks5);
    look(&socks5.next_step());
    assert_eq!(socks5.received(&[5, 2]), 2);
    look(&socks5);
    look(&socks5.next_step());
    assert_eq!(socks5.received(&[1, 1]), 2);
    look(&socks5.next_step());
}
