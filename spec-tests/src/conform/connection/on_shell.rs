//! A pool of a shell, and perhaps a client besides, whose servers do what a file says.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::connect::{ConnectionDescription, DriverInfo};
use cenote_core::pool::{PoolOptions, Purpose};
use cenote_core::wire::MessageBuf;
use cenote_shell::connection::operation::OperationOptions;
use serde_json::Value;

use super::client::{Client, Refusal, Told, ToldOfAll};
use super::format::File;
use super::operation::ServerChoice;
use super::sockets::Server;
use crate::conform::shell::{self, CLOSE_LIMIT, ClientSetup, Connection, Pool, PoolSetup, Shell};
use crate::conform::target::Target;

pub(super) struct OnShell {
    shell: Box<dyn Shell>,
    uri: String,
    address: ServerAddress,
    options: Option<PoolOptions>,
    pool: Arc<dyn Pool>,
    told: Arc<Mutex<Told>>,
    /// A client of the servers besides, and what its pools tell.
    watching: Option<Box<dyn shell::Client>>,
    watcher_told: ToldOfAll,
    held: Vec<Box<dyn Connection>>,
    waits: Box<dyn Fn(usize) -> Result<(), String>>,
    /// All that the servers expect.
    connections: usize,
}

impl OnShell {
    /// # Errors
    ///
    /// If the pool cannot be created.
    pub(super) fn new(target: Target, file: &File, server: &Server) -> Result<Self, String> {
        let shell = shell::of(target)?;
        let uri = file.uri(&server.ports(), &server.ca_file())?;
        let address = shell::address(&uri)?;
        let told = Told::without(&file.secrets);
        let watcher_told = ToldOfAll::new(&uri, &file.secrets);
        let heard = Arc::clone(&told);
        let pool = shell.pool(PoolSetup {
            options: uri.pool.clone(),
            metadata: Some(file.client(&uri)?),
            server_api: file.server_api(),
            uri,
            log: None,
            on_event: Arc::new(move |event, address| Told::hear(&heard, event, address)),
            on_failure: None,
        })?;
        pool.ready();
        Ok(Self {
            shell,
            address,
            uri: file.uri_text(&server.ports(), &server.ca_file()),
            options: file.set_options(),
            pool,
            told,
            watching: None,
            watcher_told,
            held: Vec::new(),
            waits: Box::new(server.waiter()),
            connections: file.servers().map(Vec::len).sum(),
        })
    }

    fn current(&mut self) -> Result<&mut dyn Connection, Refusal> {
        match self.held.last_mut() {
            Some(connection) => Ok(&mut **connection),
            None => Err(Refusal::no_connection()),
        }
    }

    fn client(&self) -> Result<&dyn shell::Client, Refusal> {
        self.watching.as_deref().ok_or_else(Refusal::no_connection)
    }

    fn hold(&mut self, connection: Box<dyn Connection>) -> ConnectionDescription {
        let description = connection.description();
        self.held.push(connection);
        description
    }
}

impl Client for OnShell {
    fn connect(&mut self, within: Option<Duration>) -> Result<ConnectionDescription, Refusal> {
        let deadline = within.map(|within| Instant::now() + within);
        let connection = self.pool.check_out(Purpose::Other, deadline)?;
        Ok(self.hold(connection))
    }

    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, Refusal> {
        Ok(self.current()?.command(database, command, within)?)
    }

    fn unacknowledged(&mut self, database: &str, command: &RawDocument) -> Result<(), Refusal> {
        Ok(self.current()?.unacknowledged(database, command)?)
    }

    fn next_request_id(&mut self) -> Result<i32, Refusal> {
        Ok(self.current()?.next_request_id())
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Refusal> {
        Ok(self.current()?.send(message)?)
    }

    fn receive(&mut self) -> Result<MessageBuf, Refusal> {
        Ok(self.current()?.receive()?)
    }

    fn is_reusable(&mut self) -> Result<bool, Refusal> {
        Ok(self.current()?.is_reusable())
    }

    fn check_in(&mut self) -> Result<(), Refusal> {
        self.held.pop().map(drop).ok_or_else(Refusal::no_connection)
    }

    fn append_metadata(&mut self, driver: DriverInfo) -> bool {
        self.pool.append_metadata(driver)
    }

    fn monitor(&mut self) -> Result<(), String> {
        let uri = &*self.uri;
        let client = self.shell.client(ClientSetup { uri, ..ClientSetup::default() })?;
        let heard = (self.waits)(self.connections);
        drop(client);
        heard
    }

    fn watch(&mut self) -> Result<(), String> {
        let told = self.watcher_told.clone();
        let on_event = Arc::new(move |event: &_, address: &_| told.hear(event, address));
        self.watching = Some(self.shell.client(ClientSetup {
            uri: &self.uri,
            options: self.options.clone(),
            on_event: Some(on_event),
            ..ClientSetup::default()
        })?);
        Ok(())
    }

    fn client_connect(
        &mut self,
        to: Option<ServerChoice>,
    ) -> Result<ConnectionDescription, Refusal> {
        let selector = self.watcher_told.selector(to)?;
        let connection = self.client()?.check_out(&selector, OperationOptions::new())?;
        Ok(self.hold(connection))
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
        Ok(self.client()?.command(database, command, OperationOptions::new())?)
    }

    fn wait_until_heard(&mut self, connections: usize) -> Result<(), String> {
        (self.waits)(connections)
    }

    fn finish(mut self) -> Result<(), String> {
        self.held.clear();
        if let Some(watching) = self.watching.take() {
            watching.close_within(CLOSE_LIMIT)?;
            self.watcher_told.judge()?;
        }
        self.pool.close_within(CLOSE_LIMIT)?;
        Told::judge(&self.told, &self.address)
    }
}
