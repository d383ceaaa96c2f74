//! Mechanisms of the embedder's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bson::{Document, doc};
use cenote_core::connect::{
    Establish, EstablishOptions, MAX_SASL_PAYLOAD, MAX_SASL_REPLIES, SaslConversation,
    SaslMechanism, ScramCache, ServerKind,
};
use cenote_core::error::{BoxError, ConnectionError, Kind, Stage};
use cenote_core::uri::Mechanism;

use crate::connect::conversations::names;
use crate::connect::server::{Outcome, binary, converse, nonces, options};

const SECRET: &str = "hunter2secret";

/// Answers each challenge with the challenge itself and its secret, and accepts `bye` as the end.
#[derive(Default)]
struct Echo {
    name: Option<&'static str>,
    speculates: bool,
    fails_at: Option<&'static str>,
    /// How many bytes the first payload has besides.
    payload: usize,
    started: AtomicUsize,
}

struct Conversation {
    fails_at: Option<&'static str>,
    payload: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("no ticket at {0}")]
struct NoTicket(&'static str);

fn fail(fails_at: Option<&'static str>, place: &'static str) -> Result<(), BoxError> {
    if fails_at == Some(place) { Err(NoTicket(place).into()) } else { Ok(()) }
}

impl SaslMechanism for Echo {
    fn name(&self) -> &'static str {
        self.name.unwrap_or("ECHO")
    }

    fn source(&self) -> &'static str {
        "realm"
    }

    fn speculates(&self) -> bool {
        self.speculates
    }

    fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
        self.started.fetch_add(1, Ordering::Relaxed);
        fail(self.fails_at, "start")?;
        Ok(Box::new(Conversation { fails_at: self.fails_at, payload: self.payload }))
    }
}

impl SaslConversation for Conversation {
    fn first(&mut self) -> Result<Vec<u8>, BoxError> {
        fail(self.fails_at, "first")?;
        Ok(SECRET.as_bytes().iter().copied().cycle().take(SECRET.len() + self.payload).collect())
    }

    fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>, BoxError> {
        fail(self.fails_at, "respond")?;
        Ok([challenge, SECRET.as_bytes()].concat())
    }

    fn finish(&mut self, last: &[u8]) -> Result<(), BoxError> {
        if last == b"bye" { Ok(()) } else { Err(NoTicket("finish").into()) }
    }
}

fn with(mechanism: Echo) -> (Arc<Echo>, EstablishOptions) {
    let mechanism = Arc::new(mechanism);
    let mut options = options("mongodb://db");
    options.sasl_mechanism = Some(Arc::clone(&mechanism) as Arc<dyn SaslMechanism>);
    (mechanism, options)
}

fn said(done: bool, payload: &str) -> Document {
    doc! { "ok": 1, "conversationId": 3, "done": done, "payload": binary(payload.as_bytes()) }
}

/// Against a server that answers hello, and then these.
fn play(options: EstablishOptions, replies: &[Document]) -> Outcome {
    let establish = Establish::new(Arc::new(options), nonces()).expect("it can begin");
    let mut replies = replies.iter();
    converse(establish, &mut ScramCache::default(), |command| {
        if command.contains_key("isMaster") {
            return doc! { "ok": 1, "maxWireVersion": 25 };
        }
        replies.next().expect("as many as it takes").clone()
    })
}

fn payload(command: &Document) -> &[u8] {
    command.get_binary_generic("payload").expect("a payload")
}

#[test]
fn a_mechanism_speaks_to_external_and_not_in_hello_by_default() {
    struct Least;
    impl SaslMechanism for Least {
        fn name(&self) -> &'static str {
            "LEAST"
        }

        fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
            Err(NoTicket("start").into())
        }
    }
    assert_eq!((Least.source(), Least.speculates()), ("$external", false));
}

// AU-55
#[test]
fn challenges_are_answered_until_the_server_ends() {
    let (_, options) = with(Echo::default());
    let outcome = play(options, &[said(false, "one"), said(false, ""), said(true, "bye")]);
    let commands = &outcome.commands;
    assert_eq!(names(commands), ["isMaster", "saslStart", "saslContinue", "saslContinue"]);
    assert!(!commands[0].contains_key("speculativeAuthenticate"), "not without being asked to");
    assert!(!commands[0].contains_key("saslSupportedMechs"));
    assert_eq!(commands[1].get_str("mechanism").unwrap(), "ECHO");
    assert_eq!(payload(&commands[1]), SECRET.as_bytes());
    assert_eq!(payload(&commands[2]), format!("one{SECRET}").as_bytes());
    assert_eq!(payload(&commands[3]), SECRET.as_bytes());
    for command in &commands[1..] {
        assert_eq!(command.get_str("$db").unwrap(), "realm");
    }
    assert_eq!(commands[3].get_i32("conversationId").unwrap(), 3);
    let mechanism = outcome.result.expect("it is authenticated").mechanism;
    assert_eq!(mechanism, Some(Mechanism::Custom("ECHO")));
    assert_eq!(mechanism.map(Mechanism::name), Some("ECHO"));
}

#[test]
fn hello_carries_the_first_message_if_the_mechanism_speculates() {
    for taken in [true, false] {
        let (mechanism, options) = with(Echo { speculates: true, ..Echo::default() });
        let establish = Establish::new(Arc::new(options), nonces()).unwrap();
        let outcome = converse(establish, &mut ScramCache::default(), |command| {
            let Ok(first) = command.get_document("speculativeAuthenticate") else {
                return said(true, "bye");
            };
            assert_eq!(payload(first), SECRET.as_bytes());
            assert_eq!(first.get_str("db").unwrap(), "realm");
            let mut hello = doc! { "ok": 1, "maxWireVersion": 25 };
            if taken {
                let mut reply = said(true, "bye");
                reply.remove("ok");
                hello.insert("speculativeAuthenticate", reply);
            }
            hello
        });
        outcome.result.unwrap();
        let rest: &[&str] = if taken { &[] } else { &["saslStart"] };
        assert_eq!(&names(&outcome.commands)[1..], rest);
        assert_eq!(mechanism.started.load(Ordering::Relaxed), 1 + rest.len());
    }
}

#[test]
fn a_mechanism_that_never_ends() {
    let (_, options) = with(Echo::default());
    let outcome = play(options, &vec![said(false, "more"); MAX_SASL_REPLIES]);
    let error = outcome.result.unwrap_err();
    assert_eq!((error.stage(), error.kind()), (Stage::Authentication, &Kind::Protocol));
    assert_eq!(
        error.reason(),
        "the mechanism ECHO has not ended after 16 replies: check that the server and the client mean the same \
         mechanism"
    );
    assert_eq!(outcome.commands.len(), 1 + MAX_SASL_REPLIES);
}

#[test]
fn replies_that_are_none() {
    let binary = || binary(b"x");
    let cases = [
        (doc! { "ok": 1 }, "the reply has no `conversationId`"),
        (doc! { "ok": 1, "conversationId": 3, "done": false }, "the reply has no `payload`"),
        (
            doc! { "ok": 1, "conversationId": 3, "done": false, "payload": "x" },
            "`payload` in the reply is not binary data",
        ),
        (
            doc! { "ok": 1, "conversationId": 4, "done": true, "payload": binary() },
            "the server answers in another conversation",
        ),
        (doc! { "conversationId": 3, "done": true, "payload": binary() }, "the reply has no `ok`"),
        (said(true, "no end"), "the mechanism ECHO cannot go on: no ticket at finish"),
    ];
    for (reply, reason) in cases {
        let (_, options) = with(Echo::default());
        let outcome = play(options, &[said(false, "one"), reply]);
        let error = outcome.result.unwrap_err();
        assert_eq!((error.kind(), error.reason()), (&Kind::Protocol, reason));
    }
    let (_, options) = with(Echo::default());
    let refused = doc! { "ok": 0, "code": 18, "errmsg": "no" };
    let error = play(options, &[refused]).result.unwrap_err();
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
}

#[test]
fn a_mechanism_that_fails() {
    for (place, kind, reason) in [
        ("start", Kind::Configuration, "the mechanism ECHO cannot start: no ticket at start"),
        ("first", Kind::Configuration, "the mechanism ECHO cannot start: no ticket at first"),
        ("respond", Kind::Protocol, "the mechanism ECHO cannot go on: no ticket at respond"),
    ] {
        let (_, options) = with(Echo { fails_at: Some(place), ..Echo::default() });
        let outcome = play(options, &[said(false, "one")]);
        let error = outcome.result.unwrap_err();
        assert_eq!((error.kind(), error.reason()), (&kind, reason));
        assert_eq!(error.source_as::<NoTicket>().map(|error| error.0), Some(place));
        assert!(!format!("{error:?} {error}").contains(SECRET));
    }
}

#[test]
fn payloads_and_names_have_limits() {
    let (_, options) = with(Echo { payload: MAX_SASL_PAYLOAD, ..Echo::default() });
    let error = play(options, &[]).result.unwrap_err();
    assert_eq!(
        error.reason(),
        "the mechanism ECHO made a payload of 1048589 bytes; at most 1048576 are allowed"
    );
    let longest = "X".repeat(64).leak();
    let too_long = "X".repeat(65).leak();
    for (name, is_good) in
        [(&*longest, true), (&*too_long, false), ("", false), ("A B", false), ("É", false)]
    {
        let (_, options) = with(Echo { name: Some(name), ..Echo::default() });
        assert_eq!(options.check_credential().is_ok(), is_good, "{name:?}");
        let begun = Establish::new(Arc::new(options), nonces());
        assert_eq!(begun.is_ok(), is_good, "{name:?}");
        if let Err(error) = begun {
            let expected =
                "a mechanism's name must be 1 to 64 printable ASCII characters without spaces, not";
            assert!(error.reason().starts_with(expected), "{error}");
        }
    }
}

#[test]
fn the_credential_is_of_the_same_mechanism_or_there_is_none() {
    let gssapi = "mongodb://user%40REALM@db/?authMechanism=GSSAPI";
    let cases = [
        (gssapi, Some("GSSAPI"), Ok(())),
        (
            gssapi,
            None,
            Err(
                "the credential is for GSSAPI and the mechanism is ECHO: leave one of them out, or set \
                           authMechanism=ECHO",
            ),
        ),
        (
            "mongodb://user:pencil@db",
            None,
            Err("the credential is for SCRAM and the mechanism is ECHO: leave one of \
                                                them out, or set authMechanism=ECHO"),
        ),
    ];
    for (uri, name, expected) in cases {
        let (_, own) = with(Echo { name, ..Echo::default() });
        let mut options = options(uri);
        options.sasl_mechanism = own.sasl_mechanism;
        let checked = options.check_credential();
        assert_eq!(checked.as_ref().map_err(ConnectionError::reason).copied(), expected);
        if expected.is_ok() {
            let outcome = play(options, &[said(true, "bye")]);
            assert_eq!(outcome.result.unwrap().mechanism, Some(Mechanism::Gssapi));
        }
    }
}

#[test]
fn monitors_and_arbiters_do_not_authenticate() {
    let (mechanism, options) = with(Echo::default());
    play(options.for_monitor(), &[]).result.unwrap();
    let establish = Establish::new(Arc::new(options), nonces()).unwrap();
    let hello = doc! { "ok": 1, "maxWireVersion": 25, "setName": "rs0", "arbiterOnly": true };
    let outcome = converse(establish, &mut ScramCache::default(), |_| hello.clone());
    assert_eq!(outcome.result.unwrap().kind, ServerKind::RsArbiter);
    assert_eq!(mechanism.started.load(Ordering::Relaxed), 0);
}

#[test]
fn options_show_the_name_alone() {
    let (_, options) = with(Echo::default());
    assert!(format!("{options:?}").contains("SaslMechanism { name: \"ECHO\", .. }"));
}
