//! Sessions, and transactions that pin their connection behind a load balancer.

use std::sync::{Arc, Mutex, MutexGuard};

use bson::{Document, doc};
use cenote_core::pool::Purpose;

use super::command::{Command, Safety, body};
use super::session_id::SessionId;
use super::{Client, Failure};
use crate::formats::lock::lock;
use crate::formats::unified::format::TransactionOptions;
use cenote_test_runtimes::AnyPin;

/// An explicit session.
pub(in crate::formats::unified) struct Session {
    client: Arc<Client>,
    options: TransactionOptions,
    state: Mutex<State>,
}

struct State {
    id: SessionId,
    phase: Phase,
    /// The transaction's, from its first command until it is unpinned.
    pin: Option<Box<dyn AnyPin>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    None,
    Starting,
    InProgress,
    Committed,
    Aborted,
}

const COMMIT: &str = "commitTransaction";
const TRANSIENT: &str = "TransientTransactionError";
const UNKNOWN_COMMIT: &str = "UnknownTransactionCommitResult";

impl Session {
    pub(in crate::formats::unified) fn new(
        client: Arc<Client>,
        options: TransactionOptions,
    ) -> Self {
        let state = State { id: SessionId::new(), phase: Phase::None, pin: None };
        Self { client, options, state: Mutex::new(state) }
    }

    /// A new transaction; the one before gives its connection back.
    pub(in crate::formats::unified) fn start_transaction(&self) {
        let mut state = lock(&self.state);
        state.pin = None;
        state.id.next_number();
        state.phase = Phase::Starting;
    }

    /// Whether what is run here belongs to a transaction.
    pub(super) fn is_in_transaction(&self) -> bool {
        matches!(lock(&self.state).phase, Phase::Starting | Phase::InProgress)
    }

    /// Runs a command here, as part of the transaction if there is one.
    ///
    /// # Errors
    ///
    /// As the client's own.
    pub(in crate::formats::unified) fn run(&self, command: &Command) -> Result<Document, Failure> {
        let mut state = lock(&self.state);
        match state.phase {
            Phase::Starting | Phase::InProgress => self.run_in_transaction(command, &mut state),
            Phase::None | Phase::Committed | Phase::Aborted => {
                state.pin = None;
                state.phase = Phase::None;
                Ok(self.client.run_in(command, &mut state.id)?.0)
            }
        }
    }

    /// Commits; may be called again.
    ///
    /// # Errors
    ///
    /// That of the last attempt.
    pub(in crate::formats::unified) fn commit(&self) -> Result<(), Failure> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Starting {
            state.phase = Phase::Committed;
        }
        if state.phase == Phase::Committed && state.pin.is_none() && self.client.pins() {
            return Ok(()); // Nothing was done in it.
        }
        state.phase = Phase::Committed;
        let committed = self.end_with(COMMIT, &mut state);
        committed.map_err(|failure| {
            if failure.is_network_error() { failure.with_label(UNKNOWN_COMMIT) } else { failure }
        })
    }

    /// Aborts, whatever the server says to that, and gives the connection back.
    pub(in crate::formats::unified) fn abort(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::InProgress {
            // A server that was not reached aborts by itself.
            let _ = self.end_with("abortTransaction", &mut state);
        }
        state.phase = Phase::Aborted;
        state.pin = None;
    }

    /// Ends the session: a transaction that goes on is aborted.
    pub(in crate::formats::unified) fn end(&self) {
        if self.is_in_transaction() {
            self.abort();
        }
        lock(&self.state).pin = None;
    }

    fn run_in_transaction(
        &self,
        command: &Command,
        state: &mut MutexGuard<'_, State>,
    ) -> Result<Document, Failure> {
        let mut command = command.clone();
        command.body.extend(state.transaction());
        if state.phase == Phase::Starting {
            command.body.insert("startTransaction", true);
            state.phase = Phase::InProgress;
        }
        let outcome = self.send_pinned(command, state);
        outcome.map_err(|failure| {
            let is_lost = failure.is_network_error();
            let failure = if is_lost { failure.with_label(TRANSIENT) } else { failure };
            if failure.has_label(TRANSIENT) {
                state.pin = None;
            }
            failure
        })
    }

    /// Once more if that may help; then on another connection, which is not pinned.
    fn end_with(&self, name: &str, state: &mut MutexGuard<'_, State>) -> Result<(), Failure> {
        let mut command = Command::new("admin", body(name, 1), Safety::Unknown);
        command.body.extend(state.transaction());
        if let (Some(time), COMMIT) = (self.options.max_commit_time_ms, name) {
            command.body.insert("maxTimeMS", time);
        }
        let first = self.send_pinned(command.clone(), state);
        let Err(failure) = first else { return Ok(()) };
        if failure.is_network_error() || failure.has_label(TRANSIENT) {
            state.pin = None;
        }
        if !failure.is_retryable() {
            return Err(failure);
        }
        let outcome = self.send_pinned(command, state);
        state.pin = None;
        outcome.map(drop)
    }

    /// Sends to the pinned server, or selects one and pins it.
    fn send_pinned(
        &self,
        mut command: Command,
        state: &mut MutexGuard<'_, State>,
    ) -> Result<Document, Failure> {
        self.client.check_unlimited(&command)?;
        command.purpose = Purpose::Transaction;
        let pin = match state.pin.take() {
            Some(pinned) => pinned,
            None => self.client.pin(&command)?,
        };
        let Command { database, body, .. } = &command;
        self.client.send(&mut **state.pin.insert(pin), database, body)
    }
}

impl State {
    /// The fields of every command of the transaction.
    fn transaction(&self) -> Document {
        doc! { "lsid": self.id.document(), "txnNumber": self.id.number(), "autocommit": false }
    }
}
