//! MONGODB-OIDC, with access tokens from outside, and reauthentication.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, RawDocument, doc};
use cenote_core::connect::{
    AccessToken, ConnectionDescription, Establish, ScramCache, ServerKind, Step,
};
use cenote_core::error::{ConnectionError, Kind, Stage};
use cenote_core::uri::{Credential, Mechanism, Secret};

use crate::connect::server::{Server, binary, nonces, options, raw};

const URI: &str = "mongodb://db/?authMechanism=MONGODB-OIDC";
const OLD: &str = "hunter2old";
const NEW: &str = "hunter2new";
const TIME: Duration = Duration::from_secs(1_573_086_367);

fn token(text: &str) -> AccessToken {
    AccessToken::new(text)
}

fn establish() -> Establish {
    Establish::new(Arc::new(options(URI)), nonces()).expect("it can begin")
}

/// What a connection's machine did.
struct Outcome {
    commands: Vec<Document>,
    /// The tokens that were refused, for each request for a token.
    requests: Vec<Option<AccessToken>>,
    shown: String,
    result: Result<ConnectionDescription, ConnectionError>,
}

const REFUSED: &str = "the access token is refused: it has expired, or is not for this server or user: check how long it \
                       is valid, and its issuer and audience";

/// Against a server that accepts one token, and in hello only if it `speculates`.
fn play(mut establish: Establish, speculates: bool, accepted: &str) -> Outcome {
    answered(&mut establish, speculates, |jwt| match jwt == accepted {
        true => doc! { "ok": 1, "conversationId": 1, "done": true, "payload": binary(b"") },
        false => doc! { "ok": 0, "code": 18, "errmsg": "no" },
    })
}

fn answered(
    establish: &mut Establish,
    speculates: bool,
    answer: impl Fn(&str) -> Document,
) -> Outcome {
    let (mut commands, mut requests, mut shown) = (Vec::new(), Vec::new(), String::new());
    let mut next = None;
    let result = loop {
        let step = establish.next_step();
        shown.push_str(&format!("{establish:?} {step:?}"));
        match step {
            Ok(Step::Send(command)) => {
                let command = Document::try_from(command.body()).expect("BSON");
                let reply = match command.get_document("speculativeAuthenticate") {
                    Ok(first) if speculates => {
                        let mut reply = answer(&jwt(first));
                        let is_taken = reply.remove("ok").and_then(|ok| ok.as_i32()) == Some(1);
                        let mut hello = doc! { "ok": 1, "maxWireVersion": 25 };
                        if is_taken {
                            hello.insert("speculativeAuthenticate", reply);
                        }
                        hello
                    }
                    Ok(_) | Err(_) if command.contains_key("saslStart") => answer(&jwt(&command)),
                    Ok(_) | Err(_) => doc! { "ok": 1, "maxWireVersion": 25 },
                };
                next = Some(reply);
                commands.push(command);
            }
            Ok(Step::Receive) => {
                let reply = raw(&next.take().expect("something was sent"));
                establish.reply(&reply, &mut ScramCache::default());
            }
            Ok(Step::Token { refused }) => {
                requests.push(refused);
                assert!(requests.len() <= 2, "it ends");
                establish.token(token(NEW));
            }
            Ok(Step::Derive(_)) => panic!("there is no password"),
            Ok(Step::Handshaken(_)) => {}
            Ok(Step::Done(description)) => break Ok(*description),
            Err(error) => break Err(error),
        }
    };
    if let Err(error) = &result {
        shown.push_str(&format!("{error} {error:?} {error:#?}"));
    }
    Outcome { commands, requests, shown, result }
}

fn jwt(command: &Document) -> String {
    let payload = command.get_binary_generic("payload").expect("a payload");
    let payload = RawDocument::from_bytes(payload).expect("a document");
    payload.get_str("jwt").expect("a token").to_owned()
}

fn names(commands: &[Document]) -> Vec<&str> {
    commands.iter().filter_map(|command| command.keys().next()).map(String::as_str).collect()
}

fn check_secrecy(outcome: &Outcome) {
    for secret in [OLD, NEW] {
        assert!(!outcome.shown.contains(secret), "{}", outcome.shown);
        let list = format!("{:?}", secret.as_bytes());
        assert!(!outcome.shown.contains(list.trim_matches(['[', ']'])));
    }
}

/// Without a token that is known, hello carries none.
// AU-55, OI-09
#[test]
fn a_token_is_asked_for_after_hello() {
    let outcome = play(establish(), true, NEW);
    assert_eq!(names(&outcome.commands), ["isMaster", "saslStart"]);
    assert!(!outcome.commands[0].contains_key("speculativeAuthenticate"));
    assert!(!outcome.commands[0].contains_key("saslSupportedMechs"));
    assert_eq!(outcome.commands[1].get_str("mechanism").unwrap(), "MONGODB-OIDC");
    assert_eq!(outcome.commands[1].get_str("$db").unwrap(), "$external");
    assert_eq!(outcome.requests, [None]);
    check_secrecy(&outcome);
    assert_eq!(outcome.result.unwrap().mechanism, Some(Mechanism::MongodbOidc));
}

// OI-09
#[test]
fn hello_carries_a_token_that_is_known() {
    let mut establish = establish();
    establish.use_token(token(OLD));
    let outcome = answered(&mut establish, true, |jwt| {
        assert_eq!(jwt, OLD);
        doc! { "ok": 1, "conversationId": 1, "done": true, "payload": binary(b"") }
    });
    assert_eq!(names(&outcome.commands), ["isMaster"]);
    let first = outcome.commands[0].get_document("speculativeAuthenticate").unwrap();
    assert_eq!(first.get_str("db").unwrap(), "$external");
    assert_eq!(outcome.requests, []);
    assert_eq!(establish.access_token(), Some(&token(OLD)));
    check_secrecy(&outcome);
}

/// It may have been ignored in hello, so that it is sent once more before another one is asked for.
// AU-55, OI-10
#[test]
fn a_known_token_that_is_refused_is_replaced_once() {
    let mut first = establish();
    first.use_token(token(OLD));
    let outcome = play(first, true, NEW);
    assert_eq!(names(&outcome.commands), ["isMaster", "saslStart", "saslStart"]);
    assert_eq!(outcome.requests, [Some(token(OLD))]);
    check_secrecy(&outcome);
    outcome.result.unwrap();

    let mut second = establish();
    second.use_token(token(OLD));
    let outcome = play(second, true, "another one");
    assert_eq!(outcome.requests, [Some(token(OLD))]);
    check_secrecy(&outcome);
    let error = outcome.result.unwrap_err();
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
}

// OI-10
#[test]
fn a_new_token_that_is_refused_is_an_error() {
    let outcome = play(establish(), true, "another one");
    assert_eq!((outcome.requests.len(), outcome.commands.len()), (1, 2));
    let error = outcome.result.unwrap_err();
    assert_eq!(error.stage(), Stage::Authentication);
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
    assert_eq!(error.reason(), format!("{REFUSED}: no (code 18)"));
}

/// Only code 18 says something about the token.
#[test]
fn another_refusal_replaces_no_token() {
    let mut establish = establish();
    establish.use_token(token(OLD));
    let outcome = answered(&mut establish, false, |_| doc! { "ok": 0, "code": 20, "errmsg": "no" });
    assert_eq!(outcome.requests, []);
    let error = outcome.result.unwrap_err();
    assert_eq!(error.command_error().and_then(|error| error.code), Some(20));
}

#[test]
fn garbage_and_a_server_that_goes_on() {
    let good = || doc! { "ok": 1, "conversationId": 1, "done": false, "payload": binary(b"x") };
    for (reply, reason) in [
        (
            good(),
            "the conversation goes on after its end: check that the server and the client mean the same mechanism",
        ),
        (doc! { "ok": 1 }, "the reply has no `conversationId`"),
        (doc! {}, "the reply has no `ok`"),
    ] {
        let outcome = answered(&mut establish(), false, |_| reply.clone());
        let error = outcome.result.as_ref().unwrap_err();
        assert_eq!((error.kind(), error.reason()), (&Kind::Protocol, reason));
        check_secrecy(&outcome);
    }
}

#[test]
fn tokens_that_were_not_asked_for() {
    let mut establish = establish();
    establish.token(token(NEW));
    let error = establish.next_step().unwrap_err();
    assert_eq!(error.reason(), "a token was given without a request");
    // Of no use without MONGODB-OIDC.
    let uri = "mongodb://user:pencil@db/?authMechanism=PLAIN";
    let mut other = Establish::new(Arc::new(options(uri)), nonces()).unwrap();
    other.use_token(token(OLD));
    let Ok(Step::Send(hello)) = other.next_step() else { panic!("hello comes first") };
    assert!(hello.body().get("speculativeAuthenticate").unwrap().is_none());
    assert_eq!(other.access_token(), None);
}

/// Hello is not sent twice.
#[test]
fn a_known_token_that_comes_late() {
    let mut establish = establish();
    let Ok(Step::Send(_)) = establish.next_step() else { panic!("hello comes first") };
    establish.use_token(token(OLD));
    let Ok(Step::Receive) = establish.next_step() else { panic!("its reply comes next") };
    establish.reply(&raw(&doc! { "ok": 1, "maxWireVersion": 25 }), &mut ScramCache::default());
    let Ok(Step::Handshaken(_)) = establish.next_step() else { panic!("hello was answered") };
    let outcome = play(establish, true, OLD);
    assert_eq!((names(&outcome.commands), outcome.requests), (vec!["saslStart"], vec![]));
}

#[test]
fn a_failure_while_a_token_is_due() {
    let mut establish = establish();
    let Ok(Step::Send(_)) = establish.next_step() else { panic!("hello comes first") };
    establish.reply(&raw(&doc! { "ok": 1, "maxWireVersion": 25 }), &mut ScramCache::default());
    let Ok(Step::Handshaken(_)) = establish.next_step() else { panic!("hello was answered") };
    for _ in 0..2 {
        let Ok(Step::Token { refused: None }) = establish.next_step() else { panic!("a token") };
    }
    assert_eq!(establish.stage(), Stage::Authentication);
    establish.timed_out(Duration::from_secs(1));
    // It comes too late.
    establish.token(token(NEW));
    let error = establish.next_step().unwrap_err();
    assert!(error.is_timeout() && error.stage() == Stage::Authentication);
}

// OI-01
#[test]
fn what_a_credential_must_not_have() {
    let oidc = Credential::new(Some(Mechanism::MongodbOidc), "$external");
    let mut with_password = oidc.clone();
    with_password.password = Some(Secret::from("pencil".to_owned()));
    let elsewhere = Credential::new(Some(Mechanism::MongodbOidc), "admin");
    let mut with_environment = oidc.clone();
    let environment = Secret::from("azure".to_owned());
    with_environment.mechanism_properties.insert("ENVIRONMENT", environment);
    for (credential, reason) in [
        (oidc, None),
        (with_password, Some("MONGODB-OIDC takes no password")),
        (elsewhere, Some("MONGODB-OIDC has users in $external only")),
        (
            with_environment,
            Some("the property TOKEN_RESOURCE is missing: add it to authMechanismProperties"),
        ),
    ] {
        let mut options = options("mongodb://db");
        options.credential = Some(credential);
        let error = options.check_credential().err();
        assert_eq!(error.as_ref().map(ConnectionError::reason), reason);
    }
}

// OI-13
#[test]
fn tokens_are_compared_and_not_shown() {
    assert_eq!(token(OLD), token(OLD));
    assert_ne!(token(OLD), token(NEW));
    assert!(token("").is_empty() && !token(OLD).is_empty());
    let hour = Duration::from_secs(3600);
    assert_eq!(token(OLD).with_expires_in(hour).expires_in(), Some(hour));
    assert_eq!(token(OLD).with_expires_in(Duration::ZERO).expires_in(), None);
    let shown = format!("{:?}", token(OLD).with_expires_in(hour));
    assert_eq!(shown, "AccessToken { expires_in: Some(3600s), .. }");
}

fn description(mechanism: Option<Mechanism>) -> Box<ConnectionDescription> {
    let hello = raw(&doc! { "ok": 1, "maxWireVersion": 25 });
    let mut description =
        ConnectionDescription::from_reply(&hello, &options("mongodb://db")).expect("hello");
    description.mechanism = mechanism;
    Box::new(description)
}

fn again(uri: &str, mechanism: Mechanism) -> Establish {
    let [nonce, _] = nonces();
    let options = Arc::new(options(uri));
    Establish::reauthenticate(options, nonce, TIME, description(Some(mechanism)))
        .expect("it can begin")
}

// AU-09, OI-11
#[test]
fn an_open_connection_authenticates_again_without_hello() {
    let outcome = play(again(URI, Mechanism::MongodbOidc), true, NEW);
    assert_eq!((names(&outcome.commands), outcome.requests), (vec!["saslStart"], vec![None]));
    let description = outcome.result.unwrap();
    assert_eq!(description.kind, ServerKind::Standalone);

    let mut with_another_token = again(URI, Mechanism::MongodbOidc);
    with_another_token.use_token(token(OLD));
    let outcome = play(with_another_token, true, NEW);
    assert_eq!(names(&outcome.commands), ["saslStart", "saslStart"]);
    assert_eq!(outcome.requests, [Some(token(OLD))]);
    outcome.result.unwrap();
}

// AU-09
#[test]
fn other_mechanisms_authenticate_again_too() {
    for mechanism in [Mechanism::ScramSha256, Mechanism::ScramSha1] {
        let mut establish = again("mongodb://user:pencil@db", mechanism);
        let mut server = Server::new(mechanism);
        let mut commands = Vec::new();
        loop {
            match establish.next_step().unwrap() {
                Step::Send(command) => commands.push(Document::try_from(command.body()).unwrap()),
                Step::Receive => {
                    let reply = server.answer(commands.last().unwrap());
                    establish.reply(&raw(&reply), &mut ScramCache::default());
                }
                Step::Derive(derivation) => {
                    establish.derived(derivation.run(), &mut ScramCache::default());
                }
                Step::Token { .. } | Step::Handshaken(_) => panic!("not with SCRAM"),
                Step::Done(description) => {
                    assert_eq!(description.mechanism, Some(mechanism));
                    break;
                }
            }
        }
        assert_eq!(names(&commands), ["saslStart", "saslContinue"]);
    }
}

// AU-09
#[test]
fn a_reauthentication_that_fails_is_a_failed_operation() {
    let outcome = play(again(URI, Mechanism::MongodbOidc), true, "another one");
    let error = outcome.result.as_ref().unwrap_err();
    assert_eq!(error.stage(), Stage::Operation);
    assert_eq!(
        error.to_string(),
        format!("operation: re-authentication failed: {REFUSED}: no (code 18)")
    );
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
    check_secrecy(&outcome);
    let inner = error.source_as::<ConnectionError>().expect("as authentication said it");
    assert_eq!(inner.stage(), Stage::Authentication);

    let [nonce, _] = nonces();
    let options = Arc::new(options("mongodb://db"));
    let error = Establish::reauthenticate(options, nonce, TIME, description(None)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "operation: re-authentication failed: the connection has no mechanism to authenticate by"
    );
}
