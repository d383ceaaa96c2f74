//! Everything that the operations of a test can name.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::topology::TopologyDescription;
use cenote_core::uri::ConnectionString;

use super::client::cursor::Cursor;
use super::client::session::Session;
use super::client::story::Told;
use super::client::{Client, Server};
use super::expect::events;
use super::format::{COMPONENTS, ClientDefinition, CollectionOptions, Definition, Operation};
use super::venue::Venue;
use crate::formats::lock::lock;
use crate::formats::logs::LogListener;
use crate::formats::target::Target;

/// Executes an operation. A parameter of the world, because operations know the world.
type Perform = fn(&Arc<World>, &Operation) -> Result<(), String>;

/// What one test has.
pub(super) struct World {
    perform: Perform,
    target: Target,
    pub(super) venue: Venue,
    entities: Mutex<BTreeMap<String, Entity>>,
}

/// What has a name.
#[derive(Clone)]
pub(super) enum Entity {
    Client(Arc<TestClient>),
    Database(Database),
    Collection(NamedCollection),
    Session(Arc<Session>),
    Cursor(Arc<Mutex<Cursor>>),
    /// What was known of the servers at one moment.
    Topology(Arc<TopologyDescription>),
    /// A bucket of GridFS, with which nothing is done.
    Bucket,
    Thread(Arc<Thread>),
}

/// A database of a client.
#[derive(Clone)]
pub(super) struct Database {
    pub(super) client: Arc<TestClient>,
    pub(super) name: String,
    /// `timeoutMS`.
    pub(super) timeout: Option<u64>,
}

/// A collection of a database.
#[derive(Clone)]
pub(super) struct NamedCollection {
    pub(super) database: Database,
    pub(super) name: String,
    pub(super) options: CollectionOptions,
}

/// A client, and what of it is observed. A client that is not observed is created when it is first used.
pub(super) struct TestClient {
    uri: String,
    target: Target,
    /// Whether it uses several routers, or several servers behind its load balancer.
    pub(super) several: bool,
    observed: Vec<String>,
    /// Commands whose events are not observed.
    ignored: Vec<String>,
    server: Server,
    logged: Option<LogListener>,
    made: Mutex<Option<Arc<Client>>>,
}

/// A thread, and the way to hand it something.
pub(super) struct Thread {
    operations: Mutex<Option<Sender<Operation>>>,
    end: Mutex<Option<JoinHandle<Result<(), String>>>>,
}

impl Entity {
    fn client(&self) -> Option<Arc<TestClient>> {
        match self {
            Self::Client(client) => Some(Arc::clone(client)),
            Self::Database(_)
            | Self::Collection(_)
            | Self::Session(_)
            | Self::Cursor(_)
            | Self::Topology(_)
            | Self::Bucket
            | Self::Thread(_) => None,
        }
    }
}

impl TestClient {
    pub(super) fn get(&self) -> Result<Arc<Client>, String> {
        let mut made = lock(&self.made);
        if let Some(client) = &*made {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(Client::new(self.target, &self.uri, self.server.clone())?);
        *made = Some(Arc::clone(&client));
        Ok(client)
    }

    /// What is logged of its servers.
    ///
    /// # Errors
    ///
    /// If the file does not observe the log.
    pub(super) fn logged(&self) -> Result<&LogListener, String> {
        self.logged.as_ref().ok_or_else(|| "observeLogMessages is not set".to_owned())
    }

    /// Whether the file observes this event.
    pub(super) fn observes(&self, told: &Told) -> bool {
        let of_command = told.fields["commandName"].as_str();
        let is_ignored = of_command.is_some_and(|name| self.ignored.iter().any(|it| it == name));
        self.observed.contains(&told.name) && !is_ignored
    }

    /// Whether the file observes events or messages.
    pub(super) fn is_observed(&self) -> bool {
        !self.observed.is_empty() || self.logged.is_some()
    }
}

impl World {
    pub(super) fn new(target: Target, venue: Venue, perform: Perform) -> Self {
        Self { perform, target, venue, entities: Mutex::default() }
    }

    /// Makes what is defined, in this order.
    ///
    /// # Errors
    ///
    /// What cannot be made, or names something that is not there.
    pub(super) fn create(self: &Arc<Self>, definitions: &[Definition]) -> Result<(), String> {
        for definition in definitions {
            let (id, entity) = self.make(definition)?;
            self.save(id, entity)?;
        }
        Ok(())
    }

    /// Gives something a name.
    ///
    /// # Errors
    ///
    /// When there is something of that name.
    pub(super) fn save(&self, id: &str, entity: Entity) -> Result<(), String> {
        match lock(&self.entities).insert(id.to_owned(), entity) {
            None => Ok(()),
            Some(_) => Err(format!("there is something called {id} already")),
        }
    }

    pub(super) fn entity(&self, id: &str) -> Result<Entity, String> {
        lock(&self.entities).get(id).cloned().ok_or_else(|| format!("nothing is called {id}"))
    }

    pub(super) fn client(&self, id: &str) -> Result<Arc<TestClient>, String> {
        let Entity::Client(client) = self.entity(id)? else {
            return Err(format!("{id} is no client"));
        };
        Ok(client)
    }

    pub(super) fn session(&self, id: &str) -> Result<Arc<Session>, String> {
        let Entity::Session(session) = self.entity(id)? else {
            return Err(format!("{id} is no session"));
        };
        Ok(session)
    }

    pub(super) fn topology(&self, id: &str) -> Result<Arc<TopologyDescription>, String> {
        let Entity::Topology(topology) = self.entity(id)? else {
            return Err(format!("{id} is no topology description"));
        };
        Ok(topology)
    }

    pub(super) fn thread(&self, id: &str) -> Result<Arc<Thread>, String> {
        let Entity::Thread(thread) = self.entity(id)? else {
            return Err(format!("{id} is no thread"));
        };
        Ok(thread)
    }

    /// The end: threads, sessions and cursors first, then clients. Says what is left in a pool.
    pub(super) fn end(&self) -> Vec<String> {
        let entities = std::mem::take(&mut *lock(&self.entities));
        let mut complaints = Vec::new();
        let mut clients = Vec::new();
        for entity in entities.into_values() {
            match entity {
                Entity::Thread(thread) => complaints.extend(thread.join().err()),
                Entity::Session(session) => session.end(),
                Entity::Cursor(cursor) => lock(&cursor).close(),
                Entity::Client(client) => clients.push(client),
                Entity::Database(_)
                | Entity::Collection(_)
                | Entity::Topology(_)
                | Entity::Bucket => {}
            }
        }
        for client in clients {
            let Some(made) = lock(&client.made).take() else { continue };
            complaints.extend(made.close().err());
            complaints.extend(made.story().broken_rules());
        }
        complaints
    }

    /// Closes all pools, which ends all waits for connections.
    pub(super) fn break_off(&self) {
        let clients: Vec<_> = lock(&self.entities).values().filter_map(Entity::client).collect();
        for client in clients {
            let made = lock(&client.made).clone();
            made.into_iter().for_each(|made| made.break_off());
        }
    }

    fn make<'d>(self: &Arc<Self>, definition: &'d Definition) -> Result<(&'d str, Entity), String> {
        Ok(match definition {
            Definition::Client(it) => (&it.id, Entity::Client(Arc::new(self.new_client(it)?))),
            Definition::Database(it) => {
                let (client, name) = (self.client(&it.client)?, it.database_name.clone());
                let timeout = it.database_options.timeout_ms;
                (&it.id, Entity::Database(Database { client, name, timeout }))
            }
            Definition::Collection(it) => {
                let Entity::Database(database) = self.entity(&it.database)? else {
                    return Err(format!("{} is no database", it.database));
                };
                let (name, options) = (it.collection_name.clone(), it.collection_options.clone());
                (&it.id, Entity::Collection(NamedCollection { database, name, options }))
            }
            Definition::Session(it) => {
                let client = self.client(&it.client)?.get()?;
                let options = it.session_options.default_transaction_options.clone();
                (&it.id, Entity::Session(Arc::new(Session::new(client, options))))
            }
            Definition::Bucket(it) => (&it.id, Entity::Bucket),
            Definition::Thread(it) => (&it.id, Entity::Thread(Arc::new(Thread::start(self)))),
        })
    }

    fn new_client(&self, definition: &ClientDefinition) -> Result<TestClient, String> {
        let several = definition.use_multiple_mongoses == Some(true);
        let uri = self.venue.uri(several, &definition.uri_options);
        let parsed = ConnectionString::parse(&uri).map_err(|error| error.to_string())?;
        if let Some(warning) = parsed.warnings().first() {
            return Err(format!("uriOptions of {}: {warning}", definition.id));
        }
        definition.observe_events.iter().try_for_each(|name| events::check_name(name))?;
        for (component, severity) in &definition.observe_log_messages {
            if !COMPONENTS.contains(&&**component) || severity != "debug" {
                return Err(format!("{component} messages at {severity} are not observed here"));
            }
        }
        let components = definition.observe_log_messages.keys().cloned().collect::<Vec<_>>();
        let logged = if components.is_empty() {
            None
        } else {
            let ports = parsed.hosts.iter().filter_map(ServerAddress::port).collect();
            Some(LogListener::start(ports, components)?)
        };
        let client = TestClient {
            uri,
            target: self.target,
            several,
            observed: definition.observe_events.clone(),
            ignored: definition.ignore_command_monitoring_events.clone(),
            server: self.venue.server.clone(),
            logged,
            made: Mutex::default(),
        };
        if client.is_observed() {
            client.get()?;
        }
        if let Some(limit) = definition.await_min_pool_size_ms {
            client.get()?.wait_for_min_pool_size(Duration::from_millis(limit))?;
        }
        Ok(client)
    }
}

impl Thread {
    fn start(world: &Arc<World>) -> Self {
        let (operations, received) = channel();
        let world = Arc::downgrade(world);
        let run = move || run(&world, &received);
        let end = thread::spawn(run);
        Self { operations: Mutex::new(Some(operations)), end: Mutex::new(Some(end)) }
    }

    /// Hands it an operation.
    ///
    /// # Errors
    ///
    /// When it was waited for already.
    pub(super) fn hand_over(&self, operation: Operation) -> Result<(), String> {
        match &*lock(&self.operations) {
            // One that has failed takes nothing any more.
            Some(operations) => {
                let _ = operations.send(operation);
                Ok(())
            }
            None => Err("the thread has been waited for".to_owned()),
        }
    }

    /// Waits until it has done everything.
    ///
    /// # Errors
    ///
    /// As an operation of it went wrong.
    pub(super) fn join(&self) -> Result<(), String> {
        drop(lock(&self.operations).take());
        let Some(end) = lock(&self.end).take() else { return Ok(()) };
        end.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
    }
}

fn run(world: &std::sync::Weak<World>, operations: &Receiver<Operation>) -> Result<(), String> {
    while let Ok(operation) = operations.recv() {
        let Some(world) = world.upgrade() else { break };
        (world.perform)(&world, &operation)?;
    }
    Ok(())
}
