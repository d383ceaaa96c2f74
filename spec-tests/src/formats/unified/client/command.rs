//! Sends a command by the client of the shell, and once more where that is safe.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use cenote_core::client::{OverloadRetries, Selector};
use cenote_core::pool::{Purpose, ServiceId};
use cenote_shell::connection::operation::OperationOptions;
use serde_json::{Value, json};

use super::session_id::SessionId;
use super::{Client, Failure};
use crate::formats::lock::lock;
use crate::formats::unified::format::{Family, Limits};
use cenote_test_runtimes::AnyPin;

/// A command that is not sent yet.
#[derive(Clone, Debug)]
pub(in crate::formats::unified) struct Command {
    pub(in crate::formats::unified) database: String,
    pub(in crate::formats::unified) body: Document,
    pub(in crate::formats::unified) safety: Safety,
    pub(in crate::formats::unified) purpose: Purpose,
    pub(in crate::formats::unified) selector: Selector,
    pub(in crate::formats::unified) limits: Limits,
    /// Of the operation, if that is more than this command.
    pub(in crate::formats::unified) operation_id: Option<i64>,
}

/// Whether a command may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::formats::unified) enum Safety {
    /// It changes nothing.
    Read,
    /// The server knows by its number that it has done it.
    Write,
    /// It cannot be known.
    Unknown,
}

/// A reply, and behind a load balancer the connection on which it came.
pub(in crate::formats::unified) type Answer = (Document, Option<Box<dyn AnyPin>>);

impl Command {
    pub(in crate::formats::unified) fn new(database: &str, body: Document, safety: Safety) -> Self {
        let (purpose, selector) = (Purpose::Other, Selector::Primary);
        let (limits, operation_id) = (Limits::default(), None);
        let database = database.to_owned();
        Self { database, body, safety, purpose, selector, limits, operation_id }
    }

    fn options(&self) -> OperationOptions {
        let options = OperationOptions::new().with_name(interned(self.body.keys().next()));
        let options = match self.limits {
            Limits { deadline: Some(deadline), .. } => options.with_deadline(deadline),
            Limits { timeout: Some(limit), .. } => {
                options.with_timeout(Duration::from_millis(limit))
            }
            Limits { .. } => options,
        };
        self.operation_id.map_or(options, |id| options.with_id(id))
    }
}

/// Of the random numbers by which pauses are drawn: a file is played with the same pauses each time.
const HALF: u64 = 1 << 63;

/// Names of commands as the options of operations want them, which drivers have in their code.
fn interned(name: Option<&String>) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let name = name.map(String::as_str).unwrap_or_default();
    let mut names = lock(&NAMES);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name = Box::leak(Box::<str>::from(name));
    names.insert(name);
    name
}

impl Client {
    /// Runs a command in an implicit session; returns the reply and its connection.
    ///
    /// # Errors
    ///
    /// The last attempt's.
    pub(in crate::formats::unified) fn run(&self, command: &Command) -> Result<Answer, Failure> {
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
        command.operation_id.get_or_insert_with(|| self.next_operation());
        command.body.insert("lsid", session.document());
        if command.safety == Safety::Write && self.retries_writes() {
            command.body.insert("txnNumber", session.next_number());
        }
        if !self.is_limited(&command) {
            self.add_legacy_limits(&mut command);
        }
        let mut overloads = self.client.overload_retries();
        let mut is_first = true;
        loop {
            match self.attempt(&command) {
                Err(failure)
                    if self.may_try_again(&command, &failure, is_first, &mut overloads) =>
                {
                    is_first = false;
                }
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
        let Command { database, body, selector, .. } = command;
        let raw = raw(body)?;
        let session = body.get_document("lsid").map_err(|_| Failure::script("no session"))?;
        let options = command.options();
        let run = || {
            if *selector == Selector::Primary {
                return self.client.command_with(database, &raw, options);
            }
            let mut connection = self.client.check_out_with(selector, options)?;
            Ok(connection.command(database, &raw)?)
        };
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

    /// Sends a command to this server, and tells of it.
    ///
    /// # Errors
    ///
    /// That there is no connection, that it failed, or the server's refusal.
    pub(super) fn send(
        &self,
        pin: &mut dyn AnyPin,
        database: &str,
        body: &Document,
    ) -> Result<Document, Failure> {
        let name = body.keys().next().cloned().unwrap_or_default();
        let raw = raw(body)?;
        let mut started = None;
        let tell = |event: &str, key: &str, value: Value, service: Option<ServiceId>| {
            let mut fields = json!({ "commandName": name, "databaseName": database, key: value });
            if let Some(service) = service {
                fields["serviceId"] = json!(service.to_string());
            }
            self.story.tell(Family::Command, event, fields);
        };
        let reply = pin.command_on(database, &raw, &mut |service| {
            tell("commandStartedEvent", "command", plain(body.clone()), service);
            started = Some(service);
        });
        let reply = read(reply.map_err(Failure::from));
        if let Some(service) = started {
            self.tell_end(&reply, |event, key, value| tell(event, key, value, service));
        }
        reply
    }

    /// Selects the server of a cursor or a transaction.
    ///
    /// # Errors
    ///
    /// That there is none, or no connection.
    pub(super) fn pin(&self, command: &Command) -> Result<Box<dyn AnyPin>, Failure> {
        Ok(self.client.pin_with(&command.selector, command.purpose, command.options())?)
    }

    fn attempt(&self, command: &Command) -> Result<Answer, Failure> {
        if !self.pins() {
            return Ok((self.run_once(command)?, None));
        }
        self.check_unlimited(command)?;
        let mut pin = self.pin(command)?;
        let reply = self.send(&mut *pin, &command.database, &command.body)?;
        Ok((reply, Some(pin)))
    }

    pub(in crate::formats::unified) fn next_operation(&self) -> i64 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits before it says so, if it must.
    fn may_try_again(
        &self,
        command: &Command,
        failure: &Failure,
        is_first: bool,
        overloads: &mut OverloadRetries,
    ) -> bool {
        if self.is_limited(command) {
            return false; // A driver tries again within the time that is left.
        }
        if let (true, Some(error)) = (failure.is_overload(), failure.connection_error()) {
            // No file sets `enableOverloadRetargeting`, so that it does not matter which server it was.
            let server = &self.uri.hosts[0];
            let pause = overloads.again_after(error, server, HALF);
            pause.into_iter().for_each(thread::sleep);
            return pause.is_some();
        }
        let is_safe = match command.safety {
            Safety::Read => self.uri.retries.retry_reads != Some(false),
            Safety::Write => self.retries_writes(),
            Safety::Unknown => false,
        };
        let is_again = is_safe && is_first && failure.is_retryable();
        if is_again {
            overloads.count_other();
        }
        is_again
    }

    fn retries_writes(&self) -> bool {
        self.uri.retries.retry_writes != Some(false) && self.server.numbers_writes
    }

    fn take_session(&self) -> SessionId {
        lock(&self.sessions).pop().unwrap_or_else(SessionId::new)
    }
}

/// A command that begins with this.
pub(in crate::formats::unified) fn body(name: &str, value: impl Into<Bson>) -> Document {
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
