//! What a client can do, whatever it is made of.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_check::{Checker, Line};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector};
use cenote_core::connect::{ConnectionDescription, DriverInfo};
use cenote_core::error::{
    CommandError, ConnectionError, OperationError, PoolError, ReplyPart, Stage,
};
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::{CheckOutError, Event};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::MessageBuf;
use serde_json::Value;

use super::operation::ServerChoice;
use crate::event_json;

/// A client of one server. What is done with a connection is done with the last one.
pub(super) trait Client {
    /// Gets a connection, for which this much time may pass.
    fn connect(&mut self, within: Option<Duration>) -> Result<ConnectionDescription, Refusal>;

    /// Runs a command, for which this much time may pass.
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, Refusal>;

    fn unacknowledged(&mut self, database: &str, command: &RawDocument) -> Result<(), Refusal>;

    /// The number for the next message that is sent.
    fn next_request_id(&mut self) -> Result<i32, Refusal>;

    fn send(&mut self, message: &[u8]) -> Result<(), Refusal>;

    fn receive(&mut self) -> Result<MessageBuf, Refusal>;

    fn is_reusable(&mut self) -> Result<bool, Refusal>;

    /// Gives the connection back, and takes up the one before it.
    fn check_in(&mut self) -> Result<(), Refusal>;

    /// Says whether it was new.
    fn append_metadata(&mut self, driver: DriverInfo) -> bool;

    /// Watches the server until that has heard all it has to hear.
    fn monitor(&mut self) -> Result<(), String>;

    /// Watches the server from now on, as a whole client does.
    fn watch(&mut self) -> Result<(), String>;

    /// Gets a connection of that client's.
    fn client_connect(
        &mut self,
        to: Option<ServerChoice>,
    ) -> Result<ConnectionDescription, Refusal>;

    /// What that client has last seen a server as: `None` is Unknown. The first one is 0.
    fn kind_of(&self, server: usize) -> Option<String>;

    /// All that the pool of a server has told, as files write events: that client's, if there is one.
    fn told(&self, server: usize) -> Vec<Value>;

    /// Has that client run a command.
    fn client_command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, Refusal>;

    /// Waits until the server has heard all it has to hear on so many connections.
    fn wait_until_heard(&mut self, connections: usize) -> Result<(), String>;

    /// Closes everything.
    ///
    /// # Errors
    ///
    /// What went wrong besides.
    fn finish(self) -> Result<(), String>;
}

/// Why something was not done.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The connection's own reason.
    Connection(ConnectionError),
    /// Nothing that a file could expect.
    Other(String),
}

impl Refusal {
    /// There is no connection to do it with.
    pub(super) fn no_connection() -> Self {
        Self::Other("there is no connection".to_owned())
    }
}

impl From<ConnectionError> for Refusal {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

impl From<OperationError> for Refusal {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Connection(error) => Self::Connection(error),
            error @ (OperationError::Interrupted(_) | _) => Self::Other(error.to_string()),
        }
    }
}

impl From<PoolError> for Refusal {
    fn from(error: PoolError) -> Self {
        match error.error() {
            CheckOutError::EstablishFailed { cause } => Self::Connection(cause.clone()),
            CheckOutError::PoolClosed
            | CheckOutError::PoolCleared { .. }
            | CheckOutError::WaitQueueTimeout { .. }
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. }
            | CheckOutError::Cancelled => Self::Other(error.to_string()),
        }
    }
}

/// What a pool has told.
#[derive(Debug, Default)]
pub(super) struct Told {
    checker: Checker,
    events: Vec<Value>,
    addresses: BTreeSet<String>,
    secrets: Vec<String>,
    /// Messages that show one of them.
    leaks: Vec<String>,
}

impl Told {
    /// Nothing yet, and nothing of these may ever be.
    pub(super) fn without(secrets: &[String]) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { secrets: secrets.to_vec(), ..Self::default() }))
    }

    pub(super) fn hear(
        told: &Mutex<Self>,
        event: &Event<ConnectionError>,
        address: &ServerAddress,
    ) {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.addresses.insert(address.to_string());
        let record = LogRecord::new(event, address, &LogSettings::default());
        let shown = format!("{record} {record:?} {event:?}");
        if told.secrets.iter().any(|secret| shown.contains(secret)) {
            told.leaks.push(shown);
        }
        let json = serde_json::to_value(event_json::official(event, address));
        told.events.push(json.unwrap_or_else(|_| unreachable!("an event is plain data")));
        // How long things take is a matter of other files.
        told.checker.tell(&Line::of(event, address, Duration::MAX));
    }

    /// All of it.
    pub(super) fn events(told: &Mutex<Self>) -> Vec<Value> {
        told.lock().unwrap_or_else(PoisonError::into_inner).events.clone()
    }

    /// # Errors
    ///
    /// Rules that it has broken, or events of another server than its own, such as a proxy.
    // SX-07.
    pub(super) fn judge(told: &Mutex<Self>, address: &ServerAddress) -> Result<(), String> {
        let told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
        if !told.addresses.iter().eq([&address.to_string()]) {
            return Err(format!("events of {:?}, expected {address} alone", told.addresses));
        }
        if !told.leaks.is_empty() {
            return Err(format!("a secret is shown: {:?}", told.leaks));
        }
        let report = told.checker.finish();
        if report.is_good() { Ok(()) } else { Err(format!("its events break rules:\n{report}")) }
    }
}

/// What each pool of a client has told, in the order of the servers.
#[derive(Clone, Debug)]
pub(super) struct ToldOfAll(Arc<Vec<(ServerAddress, Arc<Mutex<Told>>)>>);

impl ToldOfAll {
    /// Nothing yet.
    pub(super) fn new(uri: &ConnectionString, secrets: &[String]) -> Self {
        let hosts = uri.hosts.iter().cloned();
        Self(Arc::new(hosts.map(|host| (host, Told::without(secrets))).collect()))
    }

    pub(super) fn hear(&self, event: &Event<ConnectionError>, address: &ServerAddress) {
        // Events of an unknown server go to the first one, whose check then fails.
        let its = self.0.iter().find(|(host, _)| host == address).or(self.0.first());
        if let Some((_, told)) = its {
            Told::hear(told, event, address);
        }
    }

    pub(super) fn of(&self, server: usize) -> Vec<Value> {
        self.0.get(server).map(|(_, told)| Told::events(told)).unwrap_or_default()
    }

    pub(super) fn address(&self, server: usize) -> Option<&ServerAddress> {
        self.0.get(server).map(|(address, _)| address)
    }

    /// # Errors
    ///
    /// As [`Told::judge`], of each.
    pub(super) fn judge(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|(address, told)| Told::judge(told, address))
    }

    /// What a client is asked for that is to have a connection there.
    pub(super) fn selector(&self, to: Option<ServerChoice>) -> Result<Selector, Refusal> {
        Ok(match to {
            None | Some(ServerChoice::Primary) => Selector::Primary,
            Some(ServerChoice::Secondary) => Selector::Secondary,
            Some(ServerChoice::Any) => Selector::Any,
            Some(ServerChoice::Server(number)) => {
                let address = self.address(number - 1).ok_or_else(Refusal::no_connection)?;
                Selector::Address(address.clone())
            }
        })
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Pool(error) => error.into(),
            ClientError::Operation(error) => error.into(),
            other @ (ClientError::Selection(_) | _) => Self::Other(other.to_string()),
        }
    }
}

/// A reply, unless it says that the command has failed.
pub(super) fn reply_or_error(reply: RawDocumentBuf) -> Result<RawDocumentBuf, ConnectionError> {
    match CommandError::from_reply(&reply) {
        Some(error) if error.part == ReplyPart::Command => {
            Err(ConnectionError::command(Stage::Operation, error))
        }
        Some(_) | None => Ok(reply),
    }
}
