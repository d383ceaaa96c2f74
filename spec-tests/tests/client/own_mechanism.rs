//! Clients that authenticate by a mechanism of the application's own.

use bson::rawdoc;
use cenote_core::connect::{SaslConversation, SaslMechanism};
use cenote_core::error::BoxError;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};

use crate::shells::{Shell, on_all_runtimes};

on_all_runtimes!(a_client_of_an_own_mechanism);

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
    let client = shell.client_by(&format!("mongodb://{address}"), Own).expect("good options");
    client.command("zoo", &rawdoc! { "count": "birds" }).expect("it is logged in");
    client.close();
    let starts = endpoint.with(|server, _| server.statistics().commands.get("saslStart").copied());
    assert_eq!(starts, Some(1));
    let scram = format!("mongodb://app:pencil@{address}");
    let error = shell.client_by(&scram, Own).err().expect("it is refused");
    assert!(error.to_string().contains("the credential is for SCRAM"), "{error}");
}
