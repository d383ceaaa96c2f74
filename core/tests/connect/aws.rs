//! MONGODB-AWS.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, RawDocument, doc};
use cenote_core::connect::{Establish, Nonce, ScramCache};
use cenote_core::error::Kind;
use cenote_core::uri::Mechanism;

use crate::connect::conversations::names;
use crate::connect::server::{Outcome, binary, converse, nonces, options};

const URI: &str = "mongodb://AKIAI44QH8DHBEXAMPLE:wJalrXUtnFEMI%2FK7MDENG%2FbPxRfiCYEXAMPLEKEY@db/?authMechanism=MONGODB-AWS";
const TOKEN: &str = "&authMechanismProperties=AWS_SESSION_TOKEN:AQoDYXdzEJr";
const TIME: Duration = Duration::from_secs(1_573_086_367);
const HOST: &str = "sts.us-west-2.amazonaws.com";

/// The second nonce, because hello speculates with nothing, and what the server adds.
fn server_nonce() -> Vec<u8> {
    b"AgICAgICAgICAgICAgICAgICAgICAgIC".iter().copied().chain(0..32).collect()
}

fn challenge(nonce: &[u8], host: &str) -> Vec<u8> {
    bson_bytes(&doc! { "s": binary(nonce), "h": host })
}

fn bson_bytes(document: &Document) -> Vec<u8> {
    crate::connect::server::raw(document).into_bytes()
}

fn said(done: bool, payload: &[u8]) -> Document {
    doc! { "ok": 1, "conversationId": 5, "done": done, "payload": binary(payload) }
}

fn play(establish: Establish, replies: &[Document]) -> Outcome {
    let mut replies = replies.iter();
    converse(establish, &mut ScramCache::default(), |command| {
        if command.contains_key("isMaster") {
            return doc! { "ok": 1, "maxWireVersion": 25 };
        }
        replies.next().expect("as many as it takes").clone()
    })
}

fn establish(uri: &str) -> Establish {
    Establish::new(Arc::new(options(uri)), nonces()).expect("it can begin").at(TIME)
}

fn payload(command: &Document) -> Document {
    let payload = command.get_binary_generic("payload").expect("a payload");
    let payload = RawDocument::from_bytes(payload).expect("a document");
    Document::try_from(payload).expect("BSON")
}

// AU-55, AW-03, AW-08
#[test]
fn the_client_signs_a_request() {
    for (options, signature, token) in [
        ("", "4e98a7d28cb039619a0a1d3c081e3506ff842d01ea1a22ba20a2b8cdc86636c3", None),
        (
            TOKEN,
            "7fba7cd1cdc993c39c32541021fe9db344ec88a61bf39ddf4a90e1c1ada60855",
            Some("AQoDYXdzEJr"),
        ),
    ] {
        let replies = [said(false, &challenge(&server_nonce(), HOST)), said(true, b"")];
        let outcome = play(establish(&format!("{URI}{options}")), &replies);
        let commands = &outcome.commands;
        assert_eq!(names(commands), ["isMaster", "saslStart", "saslContinue"]);
        assert!(!commands[0].contains_key("speculativeAuthenticate"));
        assert_eq!(commands[1].get_str("mechanism").unwrap(), "MONGODB-AWS");
        assert_eq!(commands[1].get_str("$db").unwrap(), "$external");
        let nonce = binary(&server_nonce()[..32]);
        assert_eq!(payload(&commands[1]), doc! { "r": nonce, "p": 110 });
        let answer = payload(&commands[2]);
        let authorization = answer.get_str("a").unwrap();
        assert!(authorization.ends_with(&format!("Signature={signature}")), "{authorization}");
        assert_eq!(answer.get_str("d").unwrap(), "20191107T002607Z");
        assert_eq!(answer.get_str("t").ok(), token);
        assert_eq!(outcome.result.unwrap().mechanism, Some(Mechanism::MongodbAws));
    }
}

// AU-55, AW-04, AW-05
#[test]
fn challenges_that_are_not_signed() {
    let good = server_nonce();
    let mut foreign = good.clone();
    foreign[31] ^= 1;
    let long = "x".repeat(256);
    let name = "the host of AWS STS that the server names has";
    let no_host = format!("{name} an empty label, or characters that no host name has");
    let cases = [
        (challenge(&good[..63], HOST), "the server's nonce has 63 bytes instead of 64".to_owned()),
        (challenge(&foreign, HOST), "the server's nonce does not continue the client's".to_owned()),
        (challenge(&good, ""), format!("{name} 0 bytes, which must be 1 to 255")),
        (challenge(&good, &long), format!("{name} 256 bytes, which must be 1 to 255")),
        (challenge(&good, "abc..def"), no_host.clone()),
        (challenge(&good, ".abc.def"), no_host.clone()),
        (challenge(&good, "abc.def."), no_host.clone()),
        (challenge(&good, "a\nhost:b"), no_host),
        (b"garbage".to_vec(), "the server's message is not a document".to_owned()),
        (
            bson_bytes(&doc! { "h": HOST }),
            "the server's message is malformed: the reply has no `s`".to_owned(),
        ),
        (
            bson_bytes(&doc! { "s": binary(&good), "h": 1 }),
            "the server's message is malformed: `h` in the reply is not a string".to_owned(),
        ),
    ];
    for (challenge, reason) in cases {
        let outcome = play(establish(URI), &[said(false, &challenge)]);
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind(), &Kind::Protocol);
        let expected = format!("the mechanism MONGODB-AWS cannot go on: {reason}");
        assert_eq!(error.reason(), expected);
        assert_eq!(outcome.commands.len(), 2, "nothing is sent after it");
    }
}

#[test]
fn a_server_that_goes_on() {
    let first = said(false, &challenge(&server_nonce(), HOST));
    let outcome = play(establish(URI), &[first.clone(), first]);
    let error = outcome.result.unwrap_err();
    assert_eq!(
        error.reason(),
        "the conversation goes on after its end: check that the server and the client mean the same mechanism"
    );
    let refusal = doc! { "ok": 0, "code": 18, "errmsg": "no" };
    let first = said(false, &challenge(&server_nonce(), HOST));
    let error = play(establish(URI), &[first, refusal]).result.unwrap_err();
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
}

/// What the embedder has to give.
// AW-03
#[test]
fn without_the_time_or_a_nonce_of_the_right_length() {
    let untimed = Establish::new(Arc::new(options(URI)), nonces()).unwrap();
    let error =
        play(untimed, &[said(false, &challenge(&server_nonce(), HOST))]).result.unwrap_err();
    assert!(error.reason().contains("tell it with `Establish::at`"), "{error}");
    let short = ["short", "nonces"].map(|text| Nonce::from_text(text).unwrap());
    let short = Establish::new(Arc::new(options(URI)), short).unwrap();
    let error = play(short, &[]).result.unwrap_err();
    assert!(error.reason().contains("a nonce for MONGODB-AWS must have 32 characters"), "{error}");
}

// AW-09
#[test]
fn what_a_credential_needs() {
    let start = "MONGODB-AWS needs an access key ID as the user name and a secret access key";
    let mut without = options("mongodb://db/?authMechanism=MONGODB-AWS");
    let error = without.check_credential().unwrap_err();
    assert!(error.reason().starts_with(start), "{error}");
    let credential = without.credential.as_mut().unwrap();
    credential.username = Some("AKIAI44QH8DHBEXAMPLE".to_owned());
    assert!(without.check_credential().is_err());
    let mut elsewhere = options(URI);
    elsewhere.credential.as_mut().unwrap().source = "admin".to_owned();
    let error = elsewhere.check_credential().unwrap_err();
    assert_eq!(error.reason(), "MONGODB-AWS has users in $external only");
    let mut other = options(URI);
    let property = cenote_core::uri::Secret::from("x".to_owned());
    other.credential.as_mut().unwrap().mechanism_properties.insert("SERVICE_NAME", property);
    let error = other.check_credential().unwrap_err();
    assert_eq!(error.reason(), "MONGODB-AWS has no mechanism property but AWS_SESSION_TOKEN");
    assert!(options(&format!("{URI}{TOKEN}")).check_credential().is_ok());
}

#[test]
fn nothing_is_shown() {
    for challenge in [challenge(&server_nonce(), HOST), b"AQoDYXdzEJr".to_vec()] {
        let options = Arc::new(options(&format!("{URI}{TOKEN}")));
        let establish = Establish::new(Arc::clone(&options), nonces()).unwrap().at(TIME);
        let mut shown = format!("{options:?} {establish:?}");
        let outcome = play(establish, &[said(false, &challenge), said(false, &challenge)]);
        let error = outcome.result.unwrap_err();
        shown.push_str(&format!("{error} {error:?} {error:#?}"));
        for secret in ["wJalrX", "AQoDYX", "Signature", "AgICAg"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}
