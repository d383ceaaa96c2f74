//! The simulated shell: it carries out what the pool orders, in virtual time.
//!
//! Time moves only when somebody lets the next thing [`happen`](World::happen), and then straight
//! to its moment. Of two things at the same moment, answers of the endpoint come before the pool's
//! own timer, and answers come in the order in which they were asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::pool::{
    ConnId, Health, Input, Instant, InvalidOptions, PoolState, PoolTypes, Snapshot, WaiterId,
};
use serde_json::Value;

use super::endpoint::Endpoint;
use crate::conform::cmap::expected::Expected;
use crate::conform::cmap::extension::CheckOut;
use crate::conform::cmap::format::{File, Options};
use crate::conform::cmap::ledger::{Caller, Ledger};
use crate::conform::cmap::log::Log;
use crate::conform::cmap::played::{Failure, cleared_by_file, no_service};
use crate::conform::logs::Message;
use cenote_check::Line;

/// What the simulation brings into the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Simulated {}

impl PoolTypes for Simulated {
    type Conn = Socket;
    type Waiter = Caller;
    type Cause = ConnectionError;
}

/// A socket; there is one for each established connection, and it can neither be copied nor made
/// outside the world.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket(pub(super) u64);

/// What became of a check-out.
pub(super) type Outcome = Result<(ConnId, Socket), PoolError>;

/// A pool, its endpoint, and the time.
pub(super) struct World {
    pub(super) address: Arc<ServerAddress>,
    pub(super) now: Instant,
    pub(super) pool: PoolState<Simulated>,
    pub(super) endpoint: Endpoint,
    pub(super) app_name: Option<String>,
    /// Answers on their way, in the order in which they arrive.
    pub(super) answers: BTreeMap<(Instant, u64), (ConnId, Result<(), ConnectionError>)>,
    pub(super) asked: u64,
    pub(super) requests: u64,
    /// Who asked last with which number.
    pub(super) asking: BTreeMap<Caller, WaiterId>,
    pub(super) load_balanced: bool,
    /// Outcomes that were not picked up yet.
    pub(super) inbox: BTreeMap<Caller, Outcome>,
    /// Connections in use that were broken under the hands of their holder.
    pub(super) broken: BTreeSet<ConnId>,
    /// What the pool told, as the files see it.
    pub(super) events: Vec<Value>,
    pub(super) log: Option<Log>,
    pub(super) messages: Vec<Message>,
    pub(super) ledger: Ledger,
}

impl World {
    /// Makes the pool of a file; it has told by then that it was made.
    pub(super) fn new(file: &File, endpoint: Endpoint) -> Result<Self, String> {
        let options = &file.pool_options;
        let mut actions = Vec::new();
        let pool = PoolState::new(Instant::ORIGIN, options.to_pool_options()?, &mut actions)
            .map_err(|reason: InvalidOptions| reason.to_string())?;
        let mut world = Self {
            address: Arc::new(Expected::ADDRESS.parse().expect("an address")),
            now: Instant::ORIGIN,
            pool,
            endpoint,
            app_name: options.app_name.clone(),
            answers: BTreeMap::new(),
            asked: 0,
            requests: 0,
            asking: BTreeMap::new(),
            load_balanced: options.is_load_balanced(),
            inbox: BTreeMap::new(),
            broken: BTreeSet::new(),
            events: Vec::new(),
            log: file.log.clone(),
            messages: Vec::new(),
            ledger: Ledger::default(),
        };
        world.perform(actions);
        Ok(world)
    }

    /// What time it is.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Everything that the pool has told so far.
    pub(super) fn events(&self) -> &[Value] {
        &self.events
    }

    /// Asks for a connection; what becomes of it lies in the inbox, perhaps at once.
    pub(super) fn check_out(&mut self, caller: Caller, how: &CheckOut) {
        self.requests += 1;
        let id = WaiterId(self.requests);
        self.asking.insert(caller, id);
        self.ledger.requested(caller);
        let (deadline, purpose) = (how.deadline(self.now), how.purpose());
        self.feed(Input::CheckOutRequested { id, waiter: caller, deadline, purpose });
    }

    /// The caller does not want a connection any more; this one came too late.
    pub(super) fn abandon(&mut self, caller: Caller) -> Option<(ConnId, Socket)> {
        let id = *self.asking.get(&caller)?;
        self.feed(Input::CheckOutCancelled { id });
        self.take_outcome(caller)?.ok()
    }

    /// What the pool counts.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    /// Whether a caller has had an outcome that it has not picked up.
    pub(super) fn has_outcome(&self, caller: Caller) -> bool {
        self.inbox.contains_key(&caller)
    }

    /// Picks the outcome of a caller up.
    pub(super) fn take_outcome(&mut self, caller: Caller) -> Option<Outcome> {
        self.inbox.remove(&caller)
    }

    /// Gives a connection back, which this error has met. Who holds one that the pool has broken has
    /// noticed that.
    pub(super) fn check_in(&mut self, id: ConnId, conn: Socket, error: Option<ConnectionError>) {
        let was_interrupted = self.broken.remove(&id);
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

    /// Clears the pool.
    pub(super) fn clear(&mut self, interrupt: bool) {
        self.feed(Input::Clear { cause: cleared_by_file(), interrupt, service: None });
    }

    /// Clears one service, that of a connection.
    pub(super) fn clear_service_of(&mut self, id: ConnId) -> Result<(), Failure> {
        let service = self.pool.service_of(id).ok_or_else(no_service)?;
        let cause = cleared_by_file();
        self.feed(Input::Clear { cause, interrupt: false, service: Some(service) });
        Ok(())
    }

    /// The pool has these options from now on.
    pub(super) fn set_options(&mut self, options: &Options) -> Result<(), Failure> {
        let options = options.to_pool_options().map_err(Failure::Script)?;
        self.ledger.note(&Line::options_changed(&options, &self.address, self.time()));
        self.feed(Input::SetOptions { options: Box::new(options) });
        Ok(())
    }

    /// This is a forked process from now on: nobody answers what the parent asked, and its sockets are
    /// closed without a word.
    pub(super) fn reset_after_fork(&mut self) {
        self.ledger.note(&Line::reset_after_fork(&self.address, self.time()));
        self.feed(Input::ResetAfterFork);
    }

    /// Checks in what cannot be checked in: it comes back with an error, and leaves no trace.
    pub(super) fn is_refused(&mut self, id: ConnId) -> Result<(), Failure> {
        let before = self.pool.snapshot();
        let input = Input::CheckedIn { id, conn: Socket(id.number()), health: Health::Healthy };
        let mut actions = Vec::new();
        let refused = self.pool.handle(self.now, input, &mut actions);
        let came_back =
            refused.is_err_and(|misuse| matches!(misuse.input, Input::CheckedIn { .. }));
        if came_back && actions.is_empty() && self.pool.snapshot() == before {
            return Ok(());
        }
        Err(Failure::Script("a connection was checked in that is not in use here".to_owned()))
    }

    /// Of no pool that is here.
    pub(super) const FOREIGN: ConnId = ConnId::from_parts(4711, 0);

    /// Closes the pool.
    pub(super) fn close(&mut self) {
        self.feed(Input::Close);
    }

    /// Marks the pool as ready.
    pub(super) fn ready(&mut self) {
        self.feed(Input::Ready);
    }

    /// When something happens next by itself, if ever.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next_answer().into_iter().chain(self.next_timer()).min()
    }

    /// Lets that happen, and nothing else.
    pub(super) fn happen(&mut self) {
        let Some(at) = self.next() else { return };
        self.sleep_until(at);
        if self.next_answer() == Some(at) {
            let (_, (id, result)) = self.answers.pop_first().expect("an answer is next");
            self.established(id, result);
        } else {
            self.feed(Input::Timer);
            let left = self.next_timer();
            assert!(left.is_none_or(|left| left > self.now), "the timer leaves nothing due");
        }
    }

    /// Lets time pass in which nothing happens.
    pub(super) fn sleep_until(&mut self, at: Instant) {
        self.now = self.now.max(at);
    }

    /// The end: the pool is closed, and whatever anybody still holds comes back. Says what was lost
    /// on the way.
    pub(super) fn settle(mut self, held: Vec<(ConnId, Socket)>) -> Result<(), String> {
        self.close();
        let unclaimed = std::mem::take(&mut self.inbox).into_values().filter_map(Result::ok);
        for (id, conn) in held.into_iter().chain(unclaimed) {
            self.check_in(id, conn, None);
        }
        let left = self.pool.snapshot();
        match self.next() {
            Some(at) => Err(format!("a closed pool still wants something done at {at}: {left}")),
            None if left.total != 0 => {
                Err(format!("connections are left in a closed pool: {left}"))
            }
            None => self.ledger.close(),
        }
    }

    fn next_answer(&self) -> Option<Instant> {
        self.answers.keys().next().map(|&(at, _)| at)
    }

    fn next_timer(&self) -> Option<Instant> {
        // What is overdue happens now.
        self.pool.next_deadline().map(|deadline| deadline.at.max(self.now))
    }

    /// Since the beginning.
    pub(super) fn time(&self) -> Duration {
        self.now.saturating_since(Instant::ORIGIN)
    }
}
