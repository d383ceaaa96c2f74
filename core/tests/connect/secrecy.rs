//! Nothing that can be shown shows a secret.

use std::fmt::Debug;
use std::sync::Arc;

use bson::{Document, doc};
use cenote_core::connect::{Establish, Nonce, ScramCache, Socks5, Step};
use cenote_core::uri::{ConnectionString, Mechanism};

use crate::server::{Server, options, raw};

const NONCE: &str = "hunter2nonce";
const SECRETS: [&str; 3] = [NONCE, "pencil", "hunter2proxy"];

/// A text, and bytes however they may be printed.
fn check(shown: &str) {
    for secret in SECRETS {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let list = format!("{:?}", secret.as_bytes());
        let list = list.trim_matches(['[', ']']);
        for form in [secret, hex.as_str(), list] {
            assert!(!shown.contains(form), "{secret} in {shown}");
        }
    }
}

fn look(value: &impl Debug) {
    check(&format!("{value:?} {value:#?}"));
}

#[test]
fn a_conversation_shows_nothing() {
    for mechanism in ["SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"] {
        let uri = format!("mongodb://user:pencil@db/?authMechanism={mechanism}");
        let options = Arc::new(options(&uri));
        look(&options);
        let nonces = [NONCE, NONCE].map(|text| Nonce::from_text(text).unwrap());
        look(&nonces);
        let mut establish = Establish::new(options, nonces).unwrap();
        let mut server = Server::new(Mechanism::of_name(mechanism).unwrap());
        let mut cache = ScramCache::default();
        loop {
            look(&establish);
            look(&cache);
            let step = establish.next_step();
            look(&step);
            match step.unwrap() {
                Step::Send(command) => {
                    let command = Document::try_from(command.body()).unwrap();
                    let reply = if mechanism == "PLAIN" {
                        let payload = crate::server::binary(b"");
                        doc! { "ok": 1, "conversationId": 1, "done": true, "payload": payload }
                    } else {
                        server.answer(&command)
                    };
                    establish.reply(&raw(&reply), &mut cache);
                }
                Step::Receive => panic!("answered at once"),
                Step::Handshaken(_) => {}
                Step::Done(_) => break,
            }
        }
        assert_eq!(cache.len(), usize::from(mechanism != "PLAIN"));
    }
}

/// Errors repeat what the server says, which may be what it was told, only where it names a reason
/// of its own.
#[test]
fn errors_show_nothing() {
    let lies: [fn(usize, &mut Document); 4] = [
        |_, it| drop(it.insert("payload", "pencil")),
        |_, it| drop(it.insert("payload", crate::server::binary(b"r=hunter2nonce"))),
        |_, it| drop(it.insert("payload", crate::server::binary(b"r=hunter2nonceX,s=!,i=1"))),
        |reply, it| {
            if reply == 2 {
                it.insert("payload", crate::server::binary(b"v=cGVuY2ls"));
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
        let outcome = crate::server::converse(establish, &mut cache, |it| server.answer(it));
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
