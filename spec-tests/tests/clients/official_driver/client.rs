//! Clients of the official driver, and what they tell of themselves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bson::{Document, doc};
use cenote_endpoint::{Endpoint, ListenOptions, Settings, Topology, User};
use mongodb::error::{Error, ErrorKind};
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;
use mongodb::event::command::{CommandEvent, CommandStartedEvent};
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection};

/// For what takes milliseconds, on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An endpoint without TLS and users.
pub(crate) fn plain(topology: Topology) -> Endpoint {
    start(Settings { topology, ..Settings::default() }, ListenOptions::default())
}

/// An endpoint with TLS where the user `app` must log in.
pub(crate) fn secure(topology: Topology) -> Endpoint {
    let users = vec![User::new("app", "pen/c:il")];
    let settings = Settings { auth: true, users, topology, ..Settings::default() };
    start(settings, ListenOptions::with_tls())
}

pub(crate) fn start(settings: Settings, options: ListenOptions) -> Endpoint {
    Endpoint::start(settings, options).expect("an endpoint")
}

/// What a connection string says, with more options in the form `name=value`.
pub(crate) async fn options(uri: &str, more: &[&str]) -> ClientOptions {
    let mut uri = uri.to_owned();
    for option in more {
        uri.push(if uri.contains('?') { '&' } else { '?' });
        uri.push_str(option);
    }
    ClientOptions::parse(uri).await.expect("a connection string that the driver can read")
}

pub(crate) async fn connect(uri: &str, more: &[&str]) -> Client {
    Client::with_options(options(uri, more).await).expect("a client")
}

pub(crate) fn birds(client: &Client) -> Collection<Document> {
    client.database("zoo").collection("birds")
}

pub(crate) async fn ping(client: &Client) -> Result<Document, Error> {
    client.database("admin").run_command(doc! { "ping": 1 }).await
}

/// Orders a failure of commands.
pub(crate) async fn fail(client: &Client, mode: Document, data: Document) {
    let command = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
    client.database("admin").run_command(command).await.expect("a fail point");
}

/// The code of a refused command.
pub(crate) fn code(error: &Error) -> Option<i32> {
    let ErrorKind::Command(refusal) = error.kind.as_ref() else { return None };
    Some(refusal.code)
}

/// What a client has told so far.
#[derive(Clone, Default)]
pub(crate) struct Diary {
    pub(crate) started: Arc<Mutex<Vec<CommandStartedEvent>>>,
    pub(crate) pool: Arc<Mutex<Vec<CmapEvent>>>,
}

impl Diary {
    pub(crate) fn write_for(&self, options: &mut ClientOptions) {
        let started = Arc::clone(&self.started);
        options.command_event_handler = Some(EventHandler::callback(move |event| {
            if let CommandEvent::Started(event) = event {
                started.lock().expect("no panic in a handler").push(event);
            }
        }));
        let pool = Arc::clone(&self.pool);
        options.cmap_event_handler = Some(EventHandler::callback(move |event| {
            pool.lock().expect("no panic in a handler").push(event);
        }));
    }

    /// The commands of that name, as they were sent.
    pub(crate) fn commands(&self, name: &str) -> Vec<CommandStartedEvent> {
        let started = self.started.lock().expect("no panic in a handler");
        started.iter().filter(|event| event.command_name == name).cloned().collect()
    }
}
