//! The conversations that RFC 7677 and MongoDB's authentication specification print.

use std::sync::Arc;

use bson::{Document, doc};
use cenote_core::connect::{Establish, Nonce, ScramCache};
use cenote_core::uri::Mechanism;

use crate::connect::server::{Outcome, binary, converse, options};

struct Example {
    mechanism: Mechanism,
    nonce: &'static str,
    client_first: &'static str,
    server_first: &'static str,
    client_final: &'static str,
    server_final: &'static str,
}

const EXAMPLES: [Example; 2] = [
    Example {
        mechanism: Mechanism::ScramSha1,
        nonce: "fyko+d2lbbFgONRv9qkxdawL",
        client_first: "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        server_first: "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,\
                       s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
        client_final: "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,\
                       p=MC2T8BvbmWRckDw8oWl5IVghwCY=",
        server_final: "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
    },
    Example {
        mechanism: Mechanism::ScramSha256,
        nonce: "rOprNGfwEbeRWgbNEkqO",
        client_first: "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        server_first: "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                       s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        client_final: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                       p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        server_final: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    },
];

/// The server's replies as they are printed, whatever it is asked.
fn play(example: &Example, speculates: bool) -> Outcome {
    let uri = format!("mongodb://user:pencil@db/?authMechanism={}", example.mechanism.name());
    let nonce = |text| Nonce::from_text(text).expect("printable");
    let [nonce, other] = [example.nonce, "unused"].map(nonce);
    let nonces = if speculates { [nonce, other] } else { [other, nonce] };
    let establish = Establish::new(Arc::new(options(&uri)), nonces).expect(&uri);
    let challenge = doc! {
        "conversationId": 1, "done": false, "payload": binary(example.server_first.as_bytes()),
    };
    converse(establish, &mut ScramCache::default(), |command| match name(command) {
        "isMaster" if speculates => doc! { "ok": 1, "speculativeAuthenticate": challenge.clone() },
        "isMaster" => doc! { "ok": 1 },
        "saslStart" => {
            let mut reply = challenge.clone();
            reply.insert("ok", 1);
            reply
        }
        _ => doc! {
            "ok": 1, "conversationId": 1, "done": true,
            "payload": binary(example.server_final.as_bytes()),
        },
    })
}

fn name(command: &Document) -> &str {
    command.keys().next().expect("a name")
}

// AU-20, AU-31, AU-34, AU-39
#[test]
fn without_speculation() {
    for example in &EXAMPLES {
        let Outcome { commands, result, .. } = play(example, false);
        assert_eq!(result.unwrap().mechanism, Some(example.mechanism));
        assert_eq!(
            commands[1..],
            [
                doc! {
                    "saslStart": 1, "mechanism": example.mechanism.name(),
                    "payload": binary(example.client_first.as_bytes()), "autoAuthorize": 1,
                    "options": { "skipEmptyExchange": true }, "$db": "admin",
                },
                doc! {
                    "saslContinue": 1, "conversationId": 1,
                    "payload": binary(example.client_final.as_bytes()), "$db": "admin",
                },
            ]
        );
    }
}

// HS-44, AU-39
#[test]
fn with_speculation() {
    for example in &EXAMPLES {
        let Outcome { commands, result, .. } = play(example, true);
        assert_eq!(result.unwrap().mechanism, Some(example.mechanism));
        let speculative = doc! {
            "saslStart": 1, "mechanism": example.mechanism.name(),
            "payload": binary(example.client_first.as_bytes()), "autoAuthorize": 1,
            "options": { "skipEmptyExchange": true }, "db": "admin",
        };
        assert_eq!(commands[0].get_document("speculativeAuthenticate").ok(), Some(&speculative));
        assert_eq!(commands.len(), 2, "one round trip less");
        assert_eq!(
            commands[1].get_binary_generic("payload").ok(),
            Some(&example.client_final.as_bytes().to_vec())
        );
    }
}
