//! Servers that lie, break the protocol, or do not answer: each time a precise error.

use std::{sync::Arc, time::Duration};

use bson::{Document, doc};
use cenote_core::connect::{Establish, MAX_ITERATIONS, ScramCache, Step};
use cenote_core::error::{ConnectionError, Kind, RetryWrites, Stage};
use cenote_core::uri::Mechanism;

use crate::connect::server::{Server, binary, converse, establish, nonces, options, raw};

const URI: &str = "mongodb://user:pencil@db/?authMechanism=SCRAM-SHA-256";

/// Changes a reply.
type Lie = fn(&mut Document);

/// What comes of a lie in the n-th SASL reply, which is the same however the conversation began.
fn error_of(which: usize, lie: Lie, empty_exchange: bool) -> ConnectionError {
    let [first, second] = [true, false].map(|speculates| {
        let mut server = Server::new(Mechanism::ScramSha256);
        server.speculates = speculates;
        server.empty_exchange = empty_exchange;
        server.lie = Box::new(move |reply, document| {
            if reply == which {
                lie(document);
            }
        });
        let outcome = converse(establish(URI), &mut ScramCache::default(), |it| server.answer(it));
        assert!(outcome.handshaken.is_some(), "hello was fine");
        outcome.result.expect_err("a lie")
    });
    assert_eq!(first.to_string(), second.to_string());
    assert_eq!((first.stage(), first.kind()), (Stage::Authentication, &Kind::Protocol));
    assert_eq!(first.labels(RetryWrites::Enabled).count(), 0, "ER-31");
    first
}

fn payload(document: &Document) -> String {
    let bytes = document.get_binary_generic("payload").expect("a payload");
    String::from_utf8(bytes.clone()).expect("text")
}

fn set_payload(document: &mut Document, text: &str) {
    document.insert("payload", binary(text.as_bytes()));
}

fn replace(document: &mut Document, from: &str, to: &str) {
    let text = payload(document).replace(from, to);
    set_payload(document, &text);
}

// AU-33, AU-37
#[test]
fn lies_in_the_first_reply() {
    const LIES: [(Lie, &str); 28] = [
        (|it| drop(it.remove("conversationId")), "the reply has no `conversationId`"),
        (|it| drop(it.remove("done")), "the reply has no `done`"),
        (|it| drop(it.remove("payload")), "the reply has no `payload`"),
        (|it| drop(it.insert("payload", "r=")), "`payload` in the reply is not binary data"),
        (|it| drop(it.insert("done", "no")), "`done` in the reply is not a boolean"),
        (
            |it| drop(it.insert("conversationId", 1_i64 << 40)),
            "`conversationId` in the reply is not a whole number of 32 bits",
        ),
        (
            |it| drop(it.insert("done", true)),
            "the conversation ended before the server proved that it knows the password",
        ),
        (|it| set_payload(it, ""), "the server's first message is malformed: there is no nonce"),
        (
            |it| drop(it.insert("payload", binary(&[0xFF]))),
            "the server's first message is malformed: it is not UTF-8",
        ),
        (
            |it| set_payload(it, &"r".repeat(4097)),
            "the server's first message is malformed: it is longer than 4096 bytes",
        ),
        (
            |it| set_payload(it, &"x".repeat(4096)),
            "the server's first message is malformed: there is no nonce",
        ),
        (|it| set_payload(it, "e=other-error"), "the server refuses: other-error"),
        (
            |it| {
                set_payload(it, "e=unknown-user,x");
                it.insert("done", true);
            },
            "the server refuses: unknown-user",
        ),
        (|it| replace(it, "r=", "e="), "the server refuses: for a reason that SCRAM does not know"),
        (
            |it| replace(it, "r=", "m=x,r="),
            "the server asks for an extension of SCRAM that is not supported",
        ),
        (|it| replace(it, "r=A", "r=B"), "the server's nonce does not continue the client's"),
        (|it| replace(it, "server", ""), "the server's nonce does not continue the client's"),
        (
            |it| replace(it, "r=A", "r=A,"),
            "the server's first message is malformed: there is no salt",
        ),
        (
            |it| replace(it, ",s=", ",S="),
            "the server's first message is malformed: there is no salt",
        ),
        (
            |it| replace(it, "MDEy", "MDE"),
            "the server's first message is malformed: the salt is not base64",
        ),
        (
            |it| replace(it, "==,", ","),
            "the server's first message is malformed: the salt is not base64",
        ),
        (
            |it| replace(it, "s=MDEyMzQ1Njc4OWFiY2RlZg==", "s="),
            "the server's first message is malformed: the salt is empty",
        ),
        (
            |it| replace(it, ",i=4096", ""),
            "the server's first message is malformed: there is no number of iterations",
        ),
        (
            |it| replace(it, "i=4096", "i=+4096"),
            "the server's first message is malformed: the number of iterations is not a number of 32 bits",
        ),
        (
            |it| replace(it, "i=4096", "i=4294967296"),
            "the server's first message is malformed: the number of iterations is not a number of 32 bits",
        ),
        (
            |it| replace(it, "i=4096", "i=4095"),
            "the server asks for 4095 iterations, fewer than 4096",
        ),
        (
            |it| replace(it, "i=4096", "i=1000001"),
            "the server asks for 1000001 iterations, more than 1000000",
        ),
        (
            |it| replace(it, "i=4096", "i=4294967295"),
            "the server asks for 4294967295 iterations, more than 1000000",
        ),
    ];
    assert_eq!(MAX_ITERATIONS, 1_000_000);
    for (lie, reason) in LIES {
        assert_eq!(error_of(1, lie, false).reason(), reason);
    }
}

// AU-22, AU-37
#[test]
fn lies_in_the_second_reply() {
    const LIES: [(Lie, &str); 9] = [
        (
            |it| replace(it, "v=", "v=AAAA"),
            "the server's signature is wrong: it does not know the password",
        ),
        (
            |it| set_payload(it, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
            "the server's signature is wrong: it does not know the password",
        ),
        (
            |it| set_payload(it, "v="),
            "the server's signature is wrong: it does not know the password",
        ),
        (
            |it| replace(it, "=", "=?"),
            "the server's final message is malformed: the signature is not base64",
        ),
        (
            |it| set_payload(it, "x=1"),
            "the server's final message is malformed: there is no signature",
        ),
        (|it| set_payload(it, "e=invalid-proof"), "the server refuses: invalid-proof"),
        (
            |it| set_payload(it, ""),
            "the conversation ended before the server proved that it knows the password",
        ),
        (|it| drop(it.insert("conversationId", 8)), "the server answers in another conversation"),
        (|it| drop(it.insert("payload", 1)), "`payload` in the reply is not binary data"),
    ];
    for (lie, reason) in LIES {
        assert_eq!(error_of(2, lie, false).reason(), reason);
    }
}

// A server that asks for an empty message has to be content with it (AU-22).
#[test]
fn a_conversation_ends() {
    let goes_on: Lie = |it| drop(it.insert("done", false));
    assert_eq!(
        error_of(3, goes_on, true).reason(),
        "the conversation goes on after its end: check that the server and the client mean the same mechanism"
    );
    let nothing: Lie = |it| set_payload(it, "");
    let reason = "the server's final message is malformed: there is no signature";
    assert_eq!(error_of(2, nothing, true).reason(), reason);
}

// Only inside hello a reply has no `ok` of its own (HS-45).
#[test]
fn a_reply_to_authentication_succeeds_or_fails() {
    let cases = [
        (doc! {}, "the reply has no `ok`"),
        (doc! { "ok": "yes" }, "`ok` in the reply is not a boolean"),
        (doc! { "ok": 0, "errmsg": "no" }, "no"),
    ];
    for mechanism in ["SCRAM-SHA-256", "MONGODB-X509", "PLAIN"] {
        let user = if mechanism == "MONGODB-X509" { "" } else { "user:pencil@" };
        let uri = format!("mongodb://{user}db/?authMechanism={mechanism}");
        for (reply, reason) in &cases {
            let outcome = converse(establish(&uri), &mut ScramCache::default(), |command| {
                match command.contains_key("client") {
                    true => doc! { "ok": 1 },
                    false => reply.clone(),
                }
            });
            let error = outcome.result.unwrap_err();
            assert_eq!((error.stage(), error.reason()), (Stage::Authentication, *reason));
        }
    }
}

/// A bound of one's own.
#[test]
fn fewer_iterations_may_be_too_many() {
    let mut options = options(URI);
    options.max_scram_iterations = 5000;
    let options = Arc::new(options);
    let asked_for = |iterations| {
        let establish = Establish::new(Arc::clone(&options), nonces()).unwrap();
        let mut server = Server::new(Mechanism::ScramSha256);
        server.lie = Box::new(move |_, it| replace(it, "i=4096", iterations));
        let outcome = converse(establish, &mut ScramCache::default(), |it| server.answer(it));
        outcome.result.unwrap_err().reason().to_owned()
    };
    assert_eq!(asked_for("i=5001"), "the server asks for 5001 iterations, more than 5000");
    let taken = asked_for("i=5000");
    assert!(!taken.contains("iterations"), "{taken}");
}

// SD-22, ER-30, ER-31, T-57: the labels follow from how far the connection had come, and an
// authentication that began in hello is hello until that has been answered.
#[test]
fn a_connection_that_breaks() {
    let overloaded = ["SystemOverloadedError", "RetryableError"];
    for after in 0..2 {
        for times_out in [false, true] {
            let mut establish = establish(URI);
            let mut server = Server::new(Mechanism::ScramSha256);
            let mut answered = 0;
            let error = loop {
                match establish.next_step() {
                    Ok(Step::Send(command)) if answered == after => {
                        drop(command);
                        match times_out {
                            true => establish.timed_out(Duration::from_secs(10)),
                            false => establish.failed("closed by the peer"),
                        }
                    }
                    Ok(Step::Send(command)) => {
                        answered += 1;
                        let command = Document::try_from(command.body()).unwrap();
                        let reply = raw(&server.answer(&command));
                        establish.reply(&reply, &mut ScramCache::default());
                    }
                    Ok(Step::Derive(derivation)) => {
                        establish.derived(derivation.run(), &mut ScramCache::default());
                    }
                    Ok(Step::Handshaken(_)) => {}
                    Ok(Step::Receive | Step::Token { .. } | Step::Done(_)) => panic!("it broke"),
                    Err(error) => break error,
                }
            };
            let stages = [Stage::Hello, Stage::Authentication];
            assert_eq!((error.stage(), error.is_timeout()), (stages[after], times_out));
            let labels: Vec<_> = error.labels(RetryWrites::Disabled).collect();
            assert_eq!(labels, if after == 0 { &overloaded[..] } else { &[] });
            // Whatever comes later, this is what it was.
            establish.failed("again");
            assert_eq!(establish.next_step().unwrap_err().to_string(), error.to_string());
        }
    }
}

/// Far enough for the keys to be wanted.
fn challenged(server: &mut Server) -> Establish {
    let mut establish = establish(URI);
    while let Ok(step) = establish.next_step() {
        match step {
            Step::Send(command) => {
                let command = Document::try_from(command.body()).expect("a document of ours");
                establish.reply(&raw(&server.answer(&command)), &mut ScramCache::default());
            }
            Step::Handshaken(_) => {}
            Step::Derive(_) => return establish,
            Step::Receive | Step::Token { .. } | Step::Done(_) => break,
        }
    }
    panic!("no keys were asked for");
}

/// A pool that mixes its connections up is told so, and the password stays its own.
#[test]
fn keys_of_another_conversation_are_refused() {
    let mut cache = ScramCache::default();
    let mut one = challenged(&mut Server::new(Mechanism::ScramSha256));
    let mut server = Server::new(Mechanism::ScramSha256);
    server.lie = Box::new(|_, reply| {
        let salted = payload(reply).replace(",s=", ",s=salt");
        reply.insert("payload", binary(salted.as_bytes()));
    });
    let mut other = challenged(&mut server);

    let Ok(Step::Derive(first)) = one.next_step() else { panic!("it waits for keys") };
    let Ok(Step::Derive(again)) = one.next_step() else { panic!("it still does") };
    assert_eq!((first.iterations(), again.iterations()), (4096, 4096));
    assert_eq!(format!("{first:?}"), "KeyDerivation { iterations: 4096, .. }");
    let keys = first.run();
    other.derived(keys.clone(), &mut cache);
    let error = other.next_step().unwrap_err();
    assert_eq!(error.to_string(), "authentication: the keys are not those that were asked for");
    other.derived(keys.clone(), &mut cache);
    assert!(other.next_step().is_err(), "for good");

    one.derived(keys.clone(), &mut cache);
    assert!(matches!(one.next_step(), Ok(Step::Send(_))));
    one.derived(keys.clone(), &mut cache);
    assert!(one.next_step().is_err(), "once is enough");
    assert_eq!(cache.len(), 1);

    let mut early = establish("mongodb://db");
    early.derived(keys, &mut cache);
    let error = early.next_step().unwrap_err();
    assert_eq!(error.to_string(), "hello: keys were derived without a request");
}

/// While keys are derived nothing is under way.
#[test]
fn a_reply_in_place_of_keys_is_refused() {
    let mut waiting = challenged(&mut Server::new(Mechanism::ScramSha256));
    waiting.reply(&raw(&doc! { "ok": 1 }), &mut ScramCache::default());
    let error = waiting.next_step().unwrap_err();
    assert_eq!(error.to_string(), "authentication: a reply to nothing that was sent");
}

// HS-01
#[test]
fn a_reply_to_nothing_is_refused() {
    let mut cache = ScramCache::default();
    let reply = raw(&doc! { "ok": 1 });
    let mut early = establish("mongodb://db");
    early.reply(&reply, &mut cache);
    let error = early.next_step().unwrap_err();
    assert_eq!(error.to_string(), "hello: a reply to nothing that was sent");

    let mut late = establish("mongodb://db");
    assert!(matches!(late.next_step(), Ok(Step::Send(_))));
    late.reply(&reply, &mut cache);
    assert!(matches!(late.next_step(), Ok(Step::Handshaken(_))));
    assert!(matches!(late.next_step(), Ok(Step::Done(_))));
    assert!(matches!(late.next_step(), Ok(Step::Done(_))), "asked again");
    late.reply(&reply, &mut cache);
    assert!(late.next_step().is_err());
}

/// What is not a message is the wire format's to say, and the stage is this machine's.
#[test]
fn garbage_has_a_stage() {
    let mut establish = establish("mongodb://db");
    assert!(matches!(establish.next_step(), Ok(Step::Send(_))));
    establish.garbled("a message of -1 bytes");
    let error = establish.next_step().unwrap_err();
    assert_eq!(error.to_string(), "hello: a message of -1 bytes");
    assert_eq!(error.kind(), &Kind::Protocol);
    assert_eq!(error.labels(RetryWrites::Enabled).count(), 0);
}

// AU-50: one command, one reply.
#[test]
fn plain_does_not_go_on() {
    let uri = "mongodb://user:pencil@db/?authMechanism=PLAIN";
    let outcome = converse(establish(uri), &mut ScramCache::default(), |_| {
        doc! { "ok": 1, "conversationId": 1, "done": false, "payload": binary(b"") }
    });
    let error = outcome.result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "authentication: the conversation goes on after its end: check that the server and the client mean the same mechanism"
    );
}
