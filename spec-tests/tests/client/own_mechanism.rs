//! Clients that authenticate by a mechanism of the application's own.

use bson::rawdoc;
use cenote_core::connect::{SaslConversation, SaslMechanism};
use cenote_core::error::BoxError;
use cenote_endpoint::{Endpoint, Fault, ListenOptions, ScramFault, Script, Settings, User};

use crate::shells::{AnyClient, Shell, client_by, on_all_runtimes};
use crate::world::{World, commands, tell};

on_all_runtimes!(a_client_of_an_own_mechanism, mechanisms_that_never_end);

/// What an application makes of `PLAIN`.
struct Own;

impl SaslMechanism for Own {
    fn name(&self) -> &'static str {
        "PLAIN"
    }

    fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
        Ok(Box::new(Self))
    }
}

impl SaslConversation for Own {
    fn first(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(b"\0app\0pencil".to_vec())
    }

    fn respond(&mut self, _: &[u8]) -> Result<Vec<u8>, BoxError> {
        Err("it has one message".into())
    }
}

/// Its pools authenticate, and its monitors do not.
fn a_client_of_an_own_mechanism(shell: Shell) {
    let users = vec![User::plain("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let address = endpoint.address();
    let client = client_by(shell, &format!("mongodb://{address}"), Own).expect("good options");
    client.command("zoo", &rawdoc! { "count": "birds" }).expect("it is logged in");
    client.close();
    let starts = endpoint.with(|server, _| server.statistics().commands.get("saslStart").copied());
    assert_eq!(starts, Some(1));
    let scram = format!("mongodb://app:pencil@{address}");
    let error = client_by(shell, &scram, Own).err().expect("it is refused");
    assert!(error.to_string().contains("the credential is for SCRAM"), "{error}");
}

/// It answers whatever the server asks.
struct Patient;

impl SaslMechanism for Patient {
    fn name(&self) -> &'static str {
        "PLAIN"
    }

    fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
        Ok(Box::new(Self))
    }
}

impl SaslConversation for Patient {
    fn first(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(b"\0app\0pencil".to_vec())
    }

    fn respond(&mut self, _: &[u8]) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }
}

/// A client of the server at this address.
type MakeClient<'a> = dyn Fn(&str) -> Box<dyn AnyClient> + 'a;

/// The server never says that it is done: each mechanism gives up after as many messages as it may have.
fn mechanisms_that_never_end(shell: Shell) {
    let ended = "the conversation goes on after its end: check that the server and the client mean the same mechanism";
    let endless = "the mechanism PLAIN has not ended after 16 replies: check that the server and the client mean the \
                   same mechanism";
    let built_in = |mechanism| {
        move |address: &str| {
            let uri = format!("mongodb://app:pencil@{address}/?authMechanism={mechanism}&{SLOW}");
            World::new(shell, &uri).client
        }
    };
    let own = |address: &str| {
        client_by(shell, &format!("mongodb://{address}/?{SLOW}"), Patient).expect("good options")
    };
    let cases: [(&MakeClient<'_>, &str, u64); 3] = [
        (&built_in("SCRAM-SHA-256"), ended, 2),
        (&built_in("PLAIN"), ended, 0),
        (&own, endless, 15),
    ];
    for (client, expected, replies) in cases {
        let users = vec![User::new("app", "pencil"), User::plain("app", "pencil")];
        let settings = Settings { auth: true, users, ..Settings::default() };
        let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
        tell(&endpoint, |server, now| {
            server.set_fault(now, Script::new(Fault::Scram(ScramFault::Endless)));
        });
        let client = client(&endpoint.address().to_string());
        let error = client.command("zoo", &rawdoc! { "count": "birds" }).expect_err("no end");
        let text = error.to_string();
        assert!(text.starts_with(&format!("authentication: {expected}")), "{text}");
        // It is not tried again.
        assert_eq!(commands(&endpoint, "saslContinue"), replies, "{text}");
        client.close();
    }
}

/// So that nothing is checked twice.
const SLOW: &str = "heartbeatFrequencyMS=60000";
