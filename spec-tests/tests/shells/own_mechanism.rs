//! Pools that authenticate by a mechanism of the application's own.

use cenote_core::connect::{SaslConversation, SaslMechanism};
use cenote_core::error::{BoxError, Kind, Stage};
use cenote_core::uri::Mechanism;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};

use crate::shell::{Shell, on_all_runtimes, pool_by};
use crate::world::{ping, refusal};

on_all_runtimes!(
    the_server_accepts_it,
    the_server_refuses_it,
    it_fails,
    a_connection_string_of_another_mechanism,
);

/// What an application makes of `PLAIN`.
struct Own {
    password: Option<&'static str>,
    speculates: bool,
}

struct Message(String);

#[derive(Debug, thiserror::Error)]
#[error("run kinit first")]
struct NoTicket;

impl SaslMechanism for Own {
    fn name(&self) -> &'static str {
        "PLAIN"
    }

    fn speculates(&self) -> bool {
        self.speculates
    }

    fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
        let password = self.password.ok_or(NoTicket)?;
        Ok(Box::new(Message(format!("\0app\0{password}"))))
    }
}

impl SaslConversation for Message {
    fn first(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.clone().into_bytes())
    }

    fn respond(&mut self, _: &[u8]) -> Result<Vec<u8>, BoxError> {
        Err("it has one message".into())
    }
}

const PENCIL: Own = Own { password: Some("pencil"), speculates: false };

fn endpoint() -> Endpoint {
    let users = vec![User::plain("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

// AU-55
fn the_server_accepts_it(shell: Shell) {
    let endpoint = endpoint();
    let uri = format!("mongodb://{}", endpoint.address());
    for speculates in [false, true] {
        let pool = pool_by(shell, &uri, Own { speculates, ..PENCIL }).expect("good options");
        assert!(ping(&pool));
        let connection = pool.check_out().expect("the same connection");
        assert_eq!(connection.description().mechanism, Some(Mechanism::Plain));
        drop(connection);
        pool.close();
    }
}

fn the_server_refuses_it(shell: Shell) {
    let endpoint = endpoint();
    let uri = format!("mongodb://{}", endpoint.address());
    let wrong = Own { password: Some("hunter2eraser"), speculates: true };
    let pool = pool_by(shell, &uri, wrong).expect("good options");
    let error = refusal(&pool);
    assert_eq!(error.stage(), Stage::Authentication);
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

fn it_fails(shell: Shell) {
    let endpoint = endpoint();
    let uri = format!("mongodb://{}", endpoint.address());
    let pool = pool_by(shell, &uri, Own { password: None, ..PENCIL }).expect("good options");
    let error = refusal(&pool);
    assert_eq!((error.stage(), error.kind()), (Stage::Authentication, &Kind::Configuration));
    assert_eq!(error.reason(), "the mechanism PLAIN cannot start: run kinit first");
    assert!(error.source_as::<NoTicket>().is_some());
}

/// Nothing listens there.
fn a_connection_string_of_another_mechanism(shell: Shell) {
    let uri = "mongodb://app:pencil@127.0.0.1:1/?authMechanism=SCRAM-SHA-256";
    let Err(error) = pool_by(shell, uri, PENCIL) else { panic!("it is refused") };
    let expected = "the credential is for SCRAM-SHA-256 and the mechanism is PLAIN";
    assert!(error.to_string().contains(expected), "{error}");
    let same = "mongodb://app:pencil@127.0.0.1:1/?authMechanism=PLAIN";
    assert!(pool_by(shell, same, PENCIL).is_ok());
}
