//! Sends a command: through the client of the shell, or on a connection, and once more where that is safe.

use std::thread;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use cenote_core::client::Selector;
use cenote_core::pool::Purpose;
use cenote_shell::operation::OperationOptions;
use serde_json::{Value, json};

use super::session_id::SessionId;
use super::{Client, Failure};
use crate::conform::lock::lock;
use crate::conform::shell::Connection;
use crate::conform::unified::format::{Family, Limits};

/// A command that is not sent yet.
#[derive(Clone, Debug)]
pub(in crate::conform::unified) struct Command {
    pub(in crate::conform::unified) database: String,
    pub(in crate::conform::unified) body: Document,
    pub(in crate::conform::unified) safety: Safety,
    pub(in crate::conform::unified) purpose: Purpose,
    pub(in crate::conform::unified) limits: Limits,
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

/// A reply, and behind a load balancer the connection on which it came.
pub(in crate::conform::unified) type Answer = (Document, Option<Box<dyn Connection>>);

impl Command {
    pub(in crate::conform::unified) fn new(database: &str, body: Document, safety: Safety) -> Self {
        let (database, purpose) = (database.to_owned(), Purpose::Other);
        Self { database, body, safety, purpose, limits: Limits::default() }
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
        if !self.is_limited(&command) {
            self.add_legacy_limits(&mut command);
        }
        let mut retries = 0;
        loop {
            match self.attempt(&command) {
                Err(failure) if self.may_try_again(&command, &failure, retries) => retries += 1,
                outcome => return outcome,
            }
        }
    }

    /// What a driver sends where no timeout applies.
    fn add_legacy_limits(&self, command: &mut Command) {
        if let Some(time) = command.limits.max_time {
            command.body.insert("maxTimeMS", time);
        }
        if let (Some(time), Safety::Write) = (self.uri.read_write.write_timeout, command.safety) {
            let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            command.body.insert("writeConcern", doc! { "wtimeout": time });
        }
    }

    /// Whether `timeoutMS` is set for this command, be it to zero.
    pub(super) fn is_limited(&self, command: &Command) -> bool {
        command.limits.timeout.is_some() || self.uri.timeouts.operation.is_some()
    }

    /// # Errors
    ///
    /// If a timeout applies, which would end with the check-out.
    pub(super) fn check_unlimited(&self, command: &Command) -> Result<(), Failure> {
        let limited = || Failure::script("a transaction, or a load balancer, under timeoutMS");
        if self.is_limited(command) { Err(limited()) } else { Ok(()) }
    }

    /// Runs a command through the client of the shell. What the server receives is told, with what the shell has
    /// added; and how it ended, unless it was not sent.
    fn run_once(&self, command: &Command) -> Result<Document, Failure> {
        let Command { database, body, limits, .. } = command;
        let raw = raw(body)?;
        let session = body.get_document("lsid").map_err(|_| Failure::script("no session"))?;
        let options = OperationOptions::new();
        let options = limits
            .timeout
            .map_or(options, |limit| options.with_timeout(Duration::from_millis(limit)));
        let run = || self.client.command(database, &raw, options);
        let (reply, commands) = self.server.received.during(session, &self.story, run);
        let reply = read(reply.map_err(Failure::from));
        if commands > 0 {
            self.tell_end(&reply, |event, key, value| {
                let name = body.keys().next();
                let fields = json!({ "commandName": name, "databaseName": database, key: value });
                self.story.tell(Family::Command, event, fields);
            });
        }
        reply
    }

    fn tell_end(&self, reply: &Result<Document, Failure>, tell: impl Fn(&str, &str, Value)) {
        match reply {
            Ok(reply) => tell("commandSucceededEvent", "reply", plain(reply.clone())),
            Err(error) => tell("commandFailedEvent", "failure", json!(error.to_string())),
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
    ) -> Result<Document, Failure> {
        let name = body.keys().next().cloned().unwrap_or_default();
        let raw = raw(&body)?;
        let service = connection.service_id().map(|id| id.to_string());
        let tell = |event: &str, key: &str, value: Value| {
            let mut fields = json!({ "commandName": name, "databaseName": database, key: value });
            if let Some(service) = &service {
                fields["serviceId"] = json!(service);
            }
            self.story.tell(Family::Command, event, fields);
        };
        tell("commandStartedEvent", "command", plain(body));
        let reply = read(connection.command(database, &raw, None).map_err(Failure::from));
        self.tell_end(&reply, tell);
        reply
    }

    /// Waits for the server and for a connection.
    ///
    /// # Errors
    ///
    /// That there is none.
    pub(super) fn check_out(&self, command: &Command) -> Result<Box<dyn Connection>, Failure> {
        self.check_unlimited(command)?;
        // A load balancer is always there, and purposes count behind it.
        if self.pins() {
            return Ok(self.pool.check_out(command.purpose, None)?);
        }
        Ok(self.client.check_out(&Selector::Primary)?)
    }

    fn attempt(&self, command: &Command) -> Result<Answer, Failure> {
        if !self.pins() {
            return Ok((self.run_once(command)?, None));
        }
        let mut connection = self.check_out(command)?;
        let reply = self.send(&mut *connection, &command.database, command.body.clone())?;
        Ok((reply, Some(connection)))
    }

    fn may_try_again(&self, command: &Command, failure: &Failure, retries: u32) -> bool {
        if self.is_limited(command) {
            return false; // A driver tries again within the time that is left.
        }
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
        self.uri.retries.retry_writes != Some(false) && self.server.numbers_writes
    }

    fn take_session(&self) -> SessionId {
        lock(&self.sessions).pop().unwrap_or_else(SessionId::new)
    }
}

/// A command that begins with this.
pub(in crate::conform::unified) fn body(name: &str, value: impl Into<Bson>) -> Document {
    doc! { name: value }
}

fn raw(body: &Document) -> Result<RawDocumentBuf, Failure> {
    RawDocumentBuf::try_from(body).map_err(|error| Failure::script(error.to_string()))
}

fn read(reply: Result<RawDocumentBuf, Failure>) -> Result<Document, Failure> {
    Document::try_from(&*reply?).map_err(|error| Failure::script(error.to_string()))
}

/// As events show it.
pub(super) fn plain(document: Document) -> Value {
    Bson::Document(document).into_relaxed_extjson()
}
