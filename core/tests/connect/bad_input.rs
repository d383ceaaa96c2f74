//! Whatever a server or a proxy says, nothing panics and everything ends.

use std::sync::Arc;

use bson::{Bson, Document, RawDocument};
use cenote_core::connect::{AccessToken, Establish, Nonce, ScramCache, Step};
use cenote_core::uri::Mechanism;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::connect::server::{Server, binary, converse, establish, nonces, options, raw};

const URIS: [&str; 7] = [
    "mongodb://db/?compressors=zstd",
    "mongodb://user:pencil@db",
    "mongodb://user:pencil@db/?authMechanism=SCRAM-SHA-1&loadBalanced=true",
    "mongodb://user:pencil@db/?authMechanism=PLAIN",
    "mongodb://db/?authMechanism=MONGODB-X509",
    "mongodb://db/?authMechanism=MONGODB-OIDC",
    "mongodb://key:secret@db/?authMechanism=MONGODB-AWS",
];

/// Feeds the replies, the last one again and again, until it is over.
fn play(uri: &str, replies: &[&RawDocument]) {
    let mut options = options(uri);
    options.max_scram_iterations = 4096;
    let mut establish = Establish::new(Arc::new(options), nonces()).expect(uri);
    let mut cache = ScramCache::default();
    let mut replies = replies.iter().chain(replies.last().into_iter().cycle());
    for _ in 0..20 {
        match establish.next_step() {
            Ok(Step::Send(_) | Step::Handshaken(_)) => {}
            Ok(Step::Derive(derivation)) => establish.derived(derivation.run(), &mut cache),
            Ok(Step::Token { .. }) => establish.token(AccessToken::new("token")),
            Ok(Step::Receive) => {
                let reply = replies.next().expect("the last one, if no other");
                establish.reply(reply, &mut cache);
            }
            Ok(Step::Done(_)) => return,
            Err(error) => {
                assert_eq!(error.to_string().lines().count(), 1);
                return;
            }
        }
    }
    panic!("it does not end");
}

proptest! {
    #[test]
    fn any_replies(uri in prop::sample::select(&URIS[..]), replies in prop::collection::vec(reply(), 1..5)) {
        let replies: Vec<_> = replies.iter().map(raw).collect();
        play(uri, &replies.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    }
}

/// An honest server up to there, which is how far most inputs do not get by themselves.
#[test]
fn any_reply_at_any_point() {
    let uri = |mechanism: Mechanism| {
        format!("mongodb://user:pencil@db/?authMechanism={}", mechanism.name())
    };
    // What the honest server asks for is not computed again in each case.
    let mut cache = ScramCache::default();
    for mechanism in [Mechanism::ScramSha1, Mechanism::ScramSha256] {
        let mut server = Server::new(mechanism);
        let outcome = converse(establish(&uri(mechanism)), &mut cache, |it| server.answer(it));
        assert!(outcome.result.is_ok());
    }
    let mechanism = prop::sample::select(vec![Mechanism::ScramSha1, Mechanism::ScramSha256]);
    let cases = (mechanism, any::<bool>(), any::<bool>(), 0_usize..5, reply());
    let run = |(mechanism, speculates, empty_exchange, honest, reply)| {
        let mut server = Server { speculates, empty_exchange, ..Server::new(mechanism) };
        let mut answered = 0;
        let outcome = converse(establish(&uri(mechanism)), &mut cache.clone(), |command| {
            answered += 1;
            if answered <= honest { server.answer(command) } else { Document::clone(&reply) }
        });
        match outcome.result {
            Ok(description) => prop_assert_eq!(description.mechanism, Some(mechanism)),
            Err(error) => {
                prop_assert!(answered > honest, "the server was honest: {}", error);
                prop_assert_eq!(error.to_string().lines().count(), 1);
                prop_assert!(error.stage().is_establishing());
            }
        }
        Ok(())
    };
    TestRunner::default().run(&cases, run).unwrap();
}

/// A reply of any size is looked through, not kept.
#[test]
fn a_huge_reply() {
    let mut reply = bson::doc! { "ok": 1, "payload": binary(&vec![b'r'; 10_000_000]) };
    let many: Vec<_> = (0..100_000).map(|number| Bson::from(format!("x{number}"))).collect();
    reply.extend(bson::doc! {
        "compression": many.clone(), "saslSupportedMechs": many, "conversationId": 1, "done": false,
    });
    for uri in URIS {
        play(uri, &[&raw(&reply)]);
    }
}

fn reply() -> impl Strategy<Value = Document> {
    let fields = prop::collection::vec((key(), value()), 0..10);
    (fields, prop::option::weighted(0.9, Just(1))).prop_map(|(fields, ok)| {
        let mut reply: Document = fields.into_iter().collect();
        if let Some(ok) = ok {
            reply.insert("ok", ok);
        }
        reply
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "ok",
        "code",
        "setName",
        "secondary",
        "msg",
        "helloOk",
        "maxWireVersion",
        "connectionId",
        "maxMessageSizeBytes",
        "compression",
        "serviceId",
        "topologyVersion",
        "saslSupportedMechs",
        "speculativeAuthenticate",
        "conversationId",
        "done",
        "payload",
        "x",
    ])
    .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Bson> {
    let attribute = prop_oneof![
        Just("r=AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBx".to_owned()),
        Just("r=AgICAgICAgICAgICAgICAgICAgICAgICx".to_owned()),
        Just("s=MDEy".to_owned()),
        Just("i=4096".to_owned()),
        Just("v=MDEy".to_owned()),
        ".{0,6}",
    ];
    let payload = prop::collection::vec(attribute, 0..5).prop_map(|parts| parts.join(","));
    let challenge = Just("r=AgICAgICAgICAgICAgICAgICAgICAgICx,s=MDEy,i=4096".to_owned());
    let leaf = prop_oneof![
        prop_oneof![payload, challenge].prop_map(|text| binary(text.as_bytes())),
        any::<bool>().prop_map(Bson::Boolean),
        (-2..5).prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<f64>().prop_map(Bson::Double),
        prop_oneof![Just("SCRAM-SHA-256".to_owned()), Just("zstd".to_owned()), ".{0,9}"]
            .prop_map(Bson::String),
        any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(bytes.into())),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            prop::collection::vec((key(), inner), 0..5)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}

/// What RFC 5802 allows in one: printable ASCII without a comma.
#[test]
fn nonces_that_would_break_a_message() {
    assert!(Nonce::from_text("a-!~").is_some());
    for text in ["", "a,b", "a b", "é"] {
        assert!(Nonce::from_text(text).is_none(), "{text:?}");
    }
}
