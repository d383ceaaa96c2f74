//! The pool: it owns the time, and the server's replies on their way.
//!
//! Time moves only in [`wait`](Pool::wait), straight to the next thing that happens. At the same
//! moment, replies of the server come before the pool's timer, and replies in the order of their
//! requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{
    ConnId, Health, Input, Instant, PoolOptions, PoolState, PoolTypes, ServiceId, WaiterId,
};

use super::server::SimulatedServer;
use crate::counts::Counts;
use crate::error::OperationError;
use crate::recorder::{Progress, Recorder, Reply};
use crate::request::CheckOutRequest;
use crate::scenario::{Log, LogMessage};
use crate::target::{Pool, Setup};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Simulated {}

impl PoolTypes for Simulated {
    type Conn = Socket;
    type Waiter = Reply<SimulatedConnection>;
    type Cause = ConnectionError;
}

/// A socket: one for each established connection; it can be neither copied nor created elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket(pub(super) u64);

/// A connection of a [`SimulatedPool`] that is checked out.
#[derive(Debug)]
pub struct SimulatedConnection {
    pub(super) id: ConnId,
    pub(super) socket: Socket,
}

/// The pool of [`Simulation`](super::Simulation).
#[derive(Debug)]
pub struct SimulatedPool {
    pub(super) address: Arc<ServerAddress>,
    pub(super) now: Instant,
    pub(super) state: PoolState<Simulated>,
    pub(super) server: SimulatedServer,
    pub(super) load_balanced: bool,
    /// Replies of the server, in the order in which they arrive.
    pub(super) replies: BTreeMap<(Instant, u64), (ConnId, Result<(), ConnectionError>)>,
    /// How many hellos were sent.
    pub(super) hellos: u64,
    check_outs: u64,
    /// Connections in use that the pool has interrupted.
    pub(super) interrupted: BTreeSet<ConnId>,
    /// The id of each connection that was checked in, by its number.
    returned: BTreeMap<u64, ConnId>,
    /// Sockets that are open.
    pub(super) sockets: BTreeSet<u64>,
    pub(super) log: Option<Log>,
    pub(super) messages: Vec<LogMessage>,
    pub(super) recorder: Recorder,
}

impl SimulatedPool {
    pub(super) fn new(setup: Setup) -> Result<Self, String> {
        let mut actions = Vec::new();
        let (address, server) = (Arc::new(setup.address()), SimulatedServer::new(&setup));
        let load_balanced = setup.options.load_balanced == Some(true);
        let state = PoolState::new(Instant::ORIGIN, setup.options, &mut actions)
            .map_err(|reason| reason.to_string())?;
        let mut pool = Self {
            address,
            now: Instant::ORIGIN,
            state,
            server,
            load_balanced,
            replies: BTreeMap::new(),
            hellos: 0,
            check_outs: 0,
            interrupted: BTreeSet::new(),
            returned: BTreeMap::new(),
            sockets: BTreeSet::new(),
            log: setup.log,
            messages: Vec::new(),
            recorder: setup.recorder,
        };
        pool.perform(actions);
        Ok(pool)
    }

    /// Since the beginning.
    pub(super) fn time(&self) -> Duration {
        self.now.saturating_since(Instant::ORIGIN)
    }

    fn next(&self) -> Option<Instant> {
        self.next_reply().into_iter().chain(self.next_timer()).min()
    }

    fn next_reply(&self) -> Option<Instant> {
        self.replies.keys().next().map(|&(at, _)| at)
    }

    fn next_timer(&self) -> Option<Instant> {
        // What is overdue happens now.
        self.state.next_deadline().map(|deadline| deadline.at.max(self.now))
    }

    /// Checks in what cannot be checked in: the input must be returned as a misuse, without effects.
    fn must_reject(&mut self, id: ConnId) -> Result<(), OperationError> {
        let before = self.state.snapshot();
        let conn = Socket(id.number());
        let input = Input::CheckedIn { id, conn, health: Health::Healthy };
        let mut actions = Vec::new();
        let rejected = self.state.handle(self.now, input, &mut actions);
        let is_returned =
            rejected.is_err_and(|misuse| matches!(misuse.input, Input::CheckedIn { .. }));
        if is_returned && actions.is_empty() && self.state.snapshot() == before {
            return Ok(());
        }
        let what = "a connection was checked in that is not in use here";
        Err(OperationError::Failed(what.to_owned()))
    }

    /// The id of no connection here. (That of another pool's connection could be in use here, too.)
    const FOREIGN: ConnId = ConnId::from_parts(4711, 0);
}

impl Pool for SimulatedPool {
    type Connection = SimulatedConnection;
    type Waiter = WaiterId;

    fn check_out(
        &mut self,
        request: CheckOutRequest,
        reply: Reply<SimulatedConnection>,
    ) -> WaiterId {
        self.check_outs += 1;
        let id = WaiterId(self.check_outs);
        let deadline = request.timeout.map(|timeout| self.now + timeout);
        let purpose = request.purpose;
        self.feed(Input::CheckOutRequested { id, waiter: reply, deadline, purpose });
        id
    }

    fn check_in(&mut self, connection: SimulatedConnection, error: Option<ConnectionError>) {
        let SimulatedConnection { id, socket: conn } = connection;
        self.returned.insert(id.number(), id);
        let was_interrupted = self.interrupted.remove(&id);
        let health = if let Some(error) = error {
            self.show_to_sdam(id, &error);
            Health::Errored(error)
        } else if was_interrupted {
            let reason = "interrupted by the pool";
            Health::Errored(ConnectionError::network(Stage::Operation, reason))
        } else {
            Health::Healthy
        };
        self.feed(Input::CheckedIn { id, conn, health });
    }

    fn ready(&mut self) {
        self.feed(Input::Ready);
    }

    fn clear(&mut self, cause: ConnectionError, interrupt: bool) {
        self.feed(Input::Clear { cause, interrupt, service: None });
    }

    fn close(&mut self) {
        self.feed(Input::Close);
    }

    fn counts(&mut self) -> Result<Counts, OperationError> {
        Ok(self.state.snapshot().into())
    }

    fn cancel(&mut self, id: WaiterId) -> Result<(), OperationError> {
        self.feed(Input::CheckOutCancelled { id });
        Ok(())
    }

    fn service_id(
        &mut self,
        connection: &SimulatedConnection,
    ) -> Result<Option<ServiceId>, OperationError> {
        Ok(self.state.service_of(connection.id))
    }

    fn clear_service(
        &mut self,
        cause: ConnectionError,
        service: ServiceId,
    ) -> Result<(), OperationError> {
        self.feed(Input::Clear { cause, interrupt: false, service: Some(service) });
        Ok(())
    }

    fn set_options(&mut self, options: PoolOptions) -> Result<(), OperationError> {
        self.feed(Input::SetOptions { options: Box::new(options) });
        Ok(())
    }

    fn check_in_foreign(
        &mut self,
        connection: SimulatedConnection,
    ) -> Result<Option<SimulatedConnection>, OperationError> {
        self.must_reject(Self::FOREIGN)?;
        Ok(Some(connection))
    }

    fn connection_id(&self, connection: &SimulatedConnection) -> Option<u64> {
        Some(connection.id.number())
    }

    fn check_in_again(&mut self, connection_id: u64) -> Result<(), OperationError> {
        let unknown = || OperationError::Failed("it was never checked in".to_owned());
        let id = *self.returned.get(&connection_id).ok_or_else(unknown)?;
        self.must_reject(id)
    }

    fn reset_after_fork(&mut self) -> Result<(), OperationError> {
        self.feed(Input::ResetAfterFork);
        Ok(())
    }

    fn log_messages(&mut self) -> Result<Vec<LogMessage>, OperationError> {
        Ok(self.messages.clone())
    }

    fn wait(&mut self, _: &Progress, limit: Duration) {
        let until = self.now + limit;
        let Some(at) = self.next().filter(|at| *at <= until) else {
            self.now = until;
            return;
        };
        self.now = at;
        if self.next_reply() == Some(at) {
            let (_, (id, result)) = self.replies.pop_first().expect("a reply is next");
            self.established(id, result);
        } else {
            self.feed(Input::Timer);
            let left = self.next_timer();
            assert!(left.is_none_or(|left| left > self.now), "the timer leaves nothing due");
        }
    }

    fn virtual_time(&self) -> Option<Duration> {
        Some(self.time())
    }

    fn finish(&mut self) -> Result<(), String> {
        let left = self.state.snapshot();
        match self.next() {
            Some(at) => Err(format!("a closed pool still has something to do at {at}: {left}")),
            None if left.total != 0 => {
                Err(format!("connections are left in a closed pool: {left}"))
            }
            None if !self.sockets.is_empty() => Err("a socket was never closed".to_owned()),
            None => Ok(()),
        }
    }
}
