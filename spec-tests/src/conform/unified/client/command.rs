//! Sends a command: once on a connection, or on any, and once more where that is safe.

use std::thread;
use std::time::{Duration, Instant};

use bson::{Bson, Document, RawDocumentBuf, doc};
use cenote_core::client::Selector;
use cenote_core::connect::ServerKind;
use cenote_core::pool::Purpose;
use serde_json::{Value, json};

use super::session_id::SessionId;
use super::{Client, Failure};
use crate::conform::lock::lock;
use crate::conform::shell::Connection;
use crate::conform::unified::format::Family;

/// A command that is not sent yet.
#[derive(Clone, Debug)]
pub(in crate::conform::unified) struct Command {
    pub(in crate::conform::unified) database: String,
    pub(in crate::conform::unified) body: Document,
    pub(in crate::conform::unified) safety: Safety,
    pub(in crate::conform::unified) purpose: Purpose,
    pub(in crate::conform::unified) deadline: Option<Instant>,
}

/// Whether a command may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conform::unified) enum Safety {
    /// It changes nothing.
    Read,
    /// The server knows by its number that it has done it.
    Write,
    /// It cannot be known.
    Unknown,
}

/// A reply, and the connection on which it came.
pub(in crate::conform::unified) type Answer = (Document, Box<dyn Connection>);

impl Command {
    pub(in crate::conform::unified) fn new(database: &str, body: Document, safety: Safety) -> Self {
        let (database, purpose) = (database.to_owned(), Purpose::Other);
        Self { database, body, safety, purpose, deadline: None }
    }
}

impl Client {
    /// How often an operation is tried again when the server has too much to do.
    const ADAPTIVE_RETRIES: u32 = 2;

    /// The longest pause before the first of them; twice as long before the next.
    const BACKOFF: Duration = Duration::from_millis(100);

    /// Runs a command in an implicit session; returns the reply and its connection.
    ///
    /// # Errors
    ///
    /// The last attempt's.
    pub(in crate::conform::unified) fn run(&self, command: &Command) -> Result<Answer, Failure> {
        let mut session = self.take_session();
        let answer = self.run_in(command, &mut session);
        lock(&self.sessions).push(session);
        answer
    }

    /// As [`run`](Self::run), in this session.
    ///
    /// # Errors
    ///
    /// The last attempt's.
    pub(super) fn run_in(
        &self,
        command: &Command,
        session: &mut SessionId,
    ) -> Result<Answer, Failure> {
        let mut command = command.clone();
        command.body.insert("lsid", session.document());
        if command.safety == Safety::Write && self.retries_writes() {
            command.body.insert("txnNumber", session.next_number());
        }
        let mut retries = 0;
        loop {
            match self.attempt(&command) {
                Err(failure) if self.may_try_again(&command, &failure, retries) => retries += 1,
                outcome => return outcome,
            }
        }
    }

    /// Sends a command on this connection, and tells of it.
    ///
    /// # Errors
    ///
    /// The connection's, or the server's refusal.
    pub(super) fn send(
        &self,
        connection: &mut dyn Connection,
        database: &str,
        body: Document,
        deadline: Option<Instant>,
    ) -> Result<Document, Failure> {
        let name = body.keys().next().cloned().unwrap_or_default();
        let raw = RawDocumentBuf::try_from(&body);
        let raw = raw.map_err(|error| Failure::script(error.to_string()))?;
        let service = connection.service_id().map(|id| id.to_string());
        let tell = |event: &str, key: &str, value: Value| {
            let mut fields = json!({ "commandName": name, "databaseName": database, key: value });
            if let Some(service) = &service {
                fields["serviceId"] = json!(service);
            }
            self.story.tell(Family::Command, event, fields);
        };
        tell("commandStartedEvent", "command", plain(body));
        let within = deadline.map(|it| it.saturating_duration_since(Instant::now()));
        let reply = connection.command(database, &raw, within).map_err(Failure::from);
        let reply = reply.and_then(|reply| {
            Document::try_from(&*reply).map_err(|error| Failure::script(error.to_string()))
        });
        match &reply {
            Ok(reply) => tell("commandSucceededEvent", "reply", plain(reply.clone())),
            Err(error) => tell("commandFailedEvent", "failure", json!(error.to_string())),
        }
        reply
    }

    /// Waits for the server and for a connection.
    ///
    /// # Errors
    ///
    /// That there is none.
    pub(super) fn check_out(&self, command: &Command) -> Result<Box<dyn Connection>, Failure> {
        // A load balancer is always there, and purposes count behind it. Files with a deadline wait for a
        // connection when the server is known.
        if self.pins() || command.deadline.is_some() {
            return Ok(self.pool.check_out(command.purpose, command.deadline)?);
        }
        Ok(self.client.check_out(&Selector::Primary)?)
    }

    fn attempt(&self, command: &Command) -> Result<Answer, Failure> {
        let mut connection = self.check_out(command)?;
        let Command { database, body, deadline, .. } = command;
        let reply = self.send(&mut *connection, database, body.clone(), *deadline)?;
        Ok((reply, connection))
    }

    fn may_try_again(&self, command: &Command, failure: &Failure, retries: u32) -> bool {
        if failure.is_overload() && failure.code().is_some() {
            let again = retries < Self::ADAPTIVE_RETRIES;
            if again {
                thread::sleep(Self::BACKOFF * 2_u32.pow(retries));
            }
            return again;
        }
        let is_safe = match command.safety {
            Safety::Read => self.uri.retries.retry_reads != Some(false),
            Safety::Write => self.retries_writes(),
            Safety::Unknown => false,
        };
        is_safe && retries == 0 && failure.is_retryable()
    }

    fn retries_writes(&self) -> bool {
        self.uri.retries.retry_writes != Some(false) && !self.is_standalone()
    }

    /// Whether the server is one by itself, which has no retryable writes.
    fn is_standalone(&self) -> bool {
        self.client.kinds().iter().flatten().any(|kind| kind == ServerKind::Standalone.name())
    }

    fn take_session(&self) -> SessionId {
        lock(&self.sessions).pop().unwrap_or_else(SessionId::new)
    }
}

/// A command that begins with this.
pub(in crate::conform::unified) fn body(name: &str, value: impl Into<Bson>) -> Document {
    doc! { name: value }
}

/// As events show it.
fn plain(document: Document) -> Value {
    Bson::Document(document).into_relaxed_extjson()
}
