//! A pool on tokio, whose server does what a file says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::{ConnectionDescription, DriverInfo};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{PoolOptions, Purpose};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::MessageBuf;
use cenote_tokio::{Builder, Client as Whole, MongoConnector, Pool, PooledConnection};
use serde_json::Value;
use tokio::runtime::{self, Runtime};
use tokio::time::{Instant, timeout};

use super::client::{Client, Refusal, Told, ToldOfAll};
use super::format::File;
use super::operation::Whom;
use super::sockets::Server;

pub(super) struct TokioShell {
    uri: String,
    options: Option<PoolOptions>,
    runtime: Runtime,
    pool: Pool,
    told: Arc<Mutex<Told>>,
    /// A client of the server besides, and what its pool tells.
    watching: Option<Whole>,
    watcher_told: ToldOfAll,
    held: Vec<PooledConnection<MongoConnector>>,
    waits: Box<dyn Fn(usize) -> Result<(), String>>,
    /// All that the server expects.
    connections: usize,
}

impl TokioShell {
    /// # Errors
    ///
    /// What keeps the pool from being made.
    pub(super) fn new(file: &File, server: &Server) -> Result<Self, String> {
        if file.server_api.is_some() {
            return Err("a shell declares no version of the API".to_owned());
        }
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime to play on: {error}"))?;
        let uri = file.uri(&server.ports(), &server.ca_file())?;
        let told = Told::without(&file.secrets);
        let watcher_told = ToldOfAll::new(&uri, &file.secrets);
        let inside = runtime.enter();
        let pool = pool(file, &uri, &told)?;
        drop(inside);
        pool.ready();
        let uri = file.uri_text(&server.ports(), &server.ca_file());
        let (waits, connections) = (Box::new(server.waiter()), file.servers().map(Vec::len).sum());
        Ok(Self {
            uri,
            options: file.set_options(),
            runtime,
            pool,
            told,
            watching: None,
            watcher_told,
            held: Vec::new(),
            waits,
            connections,
        })
    }

    fn current(&mut self) -> Result<(&Runtime, &mut PooledConnection<MongoConnector>), Refusal> {
        let connection = self.held.last_mut().ok_or_else(Refusal::no_connection)?;
        Ok((&self.runtime, connection))
    }
}

fn pool(file: &File, uri: &ConnectionString, told: &Arc<Mutex<Told>>) -> Result<Pool, String> {
    let connector = MongoConnector::with_client(uri, &file.client(uri)?);
    let connector = connector.map_err(|error| error.to_string())?;
    let address = uri.hosts.first().ok_or("no server to connect to")?.clone();
    let told = Arc::clone(told);
    let builder = Builder::new(address, connector).options(uri.pool.clone());
    let builder = builder.on_event(move |event| Told::hear(&told, &event.event, &event.address));
    builder.build().map_err(|error| error.to_string())
}

impl Client for TokioShell {
    fn connect(&mut self, within: Option<Duration>) -> Result<ConnectionDescription, Refusal> {
        let Self { runtime, pool, .. } = self;
        let connection = runtime.block_on(async {
            let deadline = within.map(|within| Instant::now() + within);
            pool.check_out_for(Purpose::Other, deadline).await
        })?;
        let description = connection.description().clone();
        self.held.push(connection);
        Ok(description)
    }

    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, Refusal> {
        let (runtime, connection) = self.current()?;
        let Some(within) = within else {
            return Ok(runtime.block_on(connection.command(database, command))?);
        };
        // A command that is dropped is what a deadline of the caller's makes of it.
        let work = connection.command(database, command);
        match runtime.block_on(async { timeout(within, work).await }) {
            Ok(reply) => Ok(reply?),
            Err(_) => Err(ConnectionError::timeout(Stage::Operation, within).into()),
        }
    }

    fn unacknowledged(&mut self, database: &str, command: &RawDocument) -> Result<(), Refusal> {
        let (runtime, connection) = self.current()?;
        Ok(runtime.block_on(connection.command_unacknowledged(database, command))?)
    }

    fn next_request_id(&mut self) -> Result<i32, Refusal> {
        Ok(self.current()?.1.next_request_id())
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Refusal> {
        let (runtime, connection) = self.current()?;
        Ok(runtime.block_on(connection.send(message))?)
    }

    fn receive(&mut self) -> Result<MessageBuf, Refusal> {
        let (runtime, connection) = self.current()?;
        Ok(runtime.block_on(connection.receive())?)
    }

    fn is_reusable(&mut self) -> Result<bool, Refusal> {
        Ok(self.current()?.1.is_reusable())
    }

    fn check_in(&mut self) -> Result<(), Refusal> {
        self.held.pop().map(drop).ok_or_else(Refusal::no_connection)
    }

    fn append_metadata(&mut self, driver: DriverInfo) -> bool {
        self.pool.append_metadata(driver)
    }

    fn monitor(&mut self) -> Result<(), String> {
        let _inside = self.runtime.enter();
        let client = Whole::new(&self.uri).map_err(|error| error.to_string())?;
        let heard = (self.waits)(self.connections);
        drop(client);
        heard
    }

    fn watch(&mut self) -> Result<(), String> {
        let _inside = self.runtime.enter();
        let told = self.watcher_told.clone();
        let mut builder = Whole::builder(&self.uri).map_err(|error| error.to_string())?;
        if let Some(options) = self.options.clone() {
            builder = builder.options(options);
        }
        let builder = builder.on_event(move |event| told.hear(&event.event, &event.address));
        self.watching = Some(builder.build().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn client_connect(&mut self, to: Option<Whom>) -> Result<ConnectionDescription, Refusal> {
        let selector = self.watcher_told.selector(to)?;
        let Self { runtime, watching, held, .. } = self;
        let client = watching.as_ref().ok_or_else(Refusal::no_connection)?;
        let connection = runtime.block_on(client.check_out(&selector))?;
        let description = connection.description().clone();
        held.push(connection);
        Ok(description)
    }

    fn kind_of(&self, server: usize) -> Option<String> {
        let servers = self.watching.as_ref()?.servers();
        servers.get(server)?.kind.map(|kind| kind.name().to_owned())
    }

    fn told(&self, server: usize) -> Vec<Value> {
        match &self.watching {
            Some(_) => self.watcher_told.of(server),
            None => Told::events(&self.told),
        }
    }

    fn client_command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, Refusal> {
        let Self { runtime, watching, .. } = self;
        let client = watching.as_ref().ok_or_else(Refusal::no_connection)?;
        Ok(runtime.block_on(client.command(database, command))?)
    }

    fn wait_until_heard(&mut self, connections: usize) -> Result<(), String> {
        (self.waits)(connections)
    }

    fn finish(mut self) -> Result<(), String> {
        self.held.clear();
        if let Some(watching) = self.watching.take() {
            self.runtime.block_on(watching.close());
            self.watcher_told.judge()?;
        }
        self.runtime.block_on(self.pool.close());
        Told::judge(&self.told, self.pool.address())
    }
}
