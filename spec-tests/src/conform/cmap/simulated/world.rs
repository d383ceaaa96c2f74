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
    Action, ConnId, Event, Health, Input, Instant, InvalidOptions, PoolState, Purpose, Shell,
    WaiterId,
};
use cenote_core::sdam::{self, Context, PoolVerdict};
use serde_json::Value;

use super::endpoint::{Answer, Endpoint};
use crate::conform::cmap::expected::Expected;
use crate::conform::cmap::format::Options;
use crate::conform::cmap::ledger::{Caller, Ledger};
use crate::conform::cmap::played::cleared_by_file;
use crate::event_json;

/// What the simulation brings into the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Simulated {}

impl Shell for Simulated {
    type Conn = Socket;
    type Waiter = Caller;
    type Cause = ConnectionError;
}

/// A socket; there is one for each established connection, and it can neither be copied nor made
/// outside the world.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket(u64);

/// What became of a check-out.
pub(super) type Outcome = Result<(ConnId, Socket), PoolError>;

/// A pool, its endpoint, and the time.
pub(super) struct World {
    address: Arc<ServerAddress>,
    now: Instant,
    pool: PoolState<Simulated>,
    endpoint: Endpoint,
    app_name: Option<String>,
    /// Answers on their way, in the order in which they arrive.
    answers: BTreeMap<(Instant, u64), (ConnId, Result<(), ConnectionError>)>,
    asked: u64,
    requests: u64,
    /// Outcomes that were not picked up yet.
    inbox: BTreeMap<Caller, Outcome>,
    /// Connections in use that were broken under the hands of their holder.
    broken: BTreeSet<ConnId>,
    /// What the pool told, as the files see it.
    events: Vec<Value>,
    ledger: Ledger,
}

impl World {
    /// Makes the pool of a file; it has told by then that it was made.
    pub(super) fn new(options: &Options, endpoint: Endpoint) -> Result<Self, String> {
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
            inbox: BTreeMap::new(),
            broken: BTreeSet::new(),
            events: Vec::new(),
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
    pub(super) fn check_out(&mut self, caller: Caller) {
        self.requests += 1;
        let id = WaiterId(self.requests);
        self.ledger.requested(caller);
        let purpose = Purpose::Other;
        self.feed(Input::CheckOutRequested { id, waiter: caller, deadline: None, purpose });
    }

    /// Whether a caller has had an outcome that it has not picked up.
    pub(super) fn has_outcome(&self, caller: Caller) -> bool {
        self.inbox.contains_key(&caller)
    }

    /// Picks the outcome of a caller up.
    pub(super) fn take_outcome(&mut self, caller: Caller) -> Option<Outcome> {
        self.inbox.remove(&caller)
    }

    /// Gives a connection back. Who holds a broken one has noticed.
    pub(super) fn check_in(&mut self, id: ConnId, conn: Socket) {
        let health = if self.broken.remove(&id) {
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
            self.check_in(id, conn);
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

    /// An establishment ends. A failure is shown to SDAM first, which forgets about it if the pool
    /// has been cleared since, and otherwise may clear the pool (SD-20, TF-18, T-03).
    fn established(&mut self, id: ConnId, result: Result<(), ConnectionError>) {
        match result {
            Ok(()) => {
                let conn = Socket(id.number());
                self.ledger.opened(id.number());
                self.feed(Input::EstablishSucceeded { id, conn });
            }
            Err(cause) => {
                self.show_to_sdam(id, &cause);
                self.feed(Input::EstablishFailed { id, cause });
            }
        }
    }

    fn show_to_sdam(&mut self, id: ConnId, cause: &ConnectionError) {
        let context = Context {
            load_balanced: false,
            current_generation: !self.pool.is_stale(id),
            topology_version: None,
        };
        match sdam::verdict(&context, cause).pool {
            PoolVerdict::Keep => {}
            PoolVerdict::Clear { interrupt } => {
                self.feed(Input::Clear { cause: cause.clone(), interrupt, service: None });
            }
            PoolVerdict::ClearService => unreachable!("no file is about load balancers"),
        }
    }

    /// Since the beginning.
    fn time(&self) -> Duration {
        self.now.saturating_since(Instant::ORIGIN)
    }

    fn feed(&mut self, input: Input<Simulated>) {
        let mut actions = Vec::new();
        if let Err(misuse) = self.pool.handle(self.now, input, &mut actions) {
            panic!("the simulation keeps to the contract: {misuse}");
        }
        self.pool.check_invariants();
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action<Simulated>>) {
        for action in actions {
            match action {
                Action::StartEstablish { id, deadline: _, background: _ } => self.say_hello(id),
                Action::AbortEstablish { id } => {
                    self.answers.retain(|_, (answered, _)| *answered != id);
                }
                Action::Deliver { waiter, outcome } => {
                    let explain = |error| PoolError::new(Arc::clone(&self.address), error);
                    self.deliver(waiter, outcome.map_err(explain));
                }
                Action::CloseSocket { id, conn: Socket(number) } => {
                    assert_eq!(id.number(), number, "each connection has its own socket");
                    self.ledger.closed(number);
                }
                Action::Interrupt { id } => {
                    self.broken.insert(id);
                }
                Action::ReportHeldTooLong { .. } => {}
                Action::EmitEvent(event) => self.tell(&event),
            }
        }
    }

    fn say_hello(&mut self, id: ConnId) {
        let Answer { after, result } = self.endpoint.hello(self.app_name.as_deref());
        self.asked += 1;
        self.answers.insert((self.now + after, self.asked), (id, result));
    }

    fn deliver(&mut self, caller: Caller, outcome: Outcome) {
        self.ledger.answered(caller);
        let unclaimed = self.inbox.insert(caller, outcome);
        assert!(unclaimed.is_none(), "a caller asks for one connection at a time");
    }

    fn tell(&mut self, event: &Event<ConnectionError>) {
        self.ledger.told(event, &self.address, self.time());
        let json = serde_json::to_value(event_json::official(event, &self.address));
        self.events.push(json.expect("an event is plain data"));
    }
}
