//! A client: its pool, and which caller uses which connection.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::pool::{
    Action, CheckOutError, ConnId, Health, Input, Instant, PoolOptions, PoolState, Purpose,
    WaiterId, WithoutEvents,
};

use super::due::Due;
use super::server::Reply;
use super::{Answer, Ask, Failure, Fleet, Modelled, Opened, Service};
use crate::study::newest_first_pool::NewestFirstPool;
use crate::study::unchained_pool::UnchainedPool;

pub(super) struct Client {
    pool: Pool,
    requests: u64,
    uses: u64,
    /// The time for which the timer is set.
    timer: Option<Instant>,
    /// Pending connections, and when they were started.
    starting: BTreeMap<ConnId, Instant>,
    in_use: BTreeMap<ConnId, Use>,
    /// Requests that wait while the server is unavailable.
    pub(super) held: Vec<Ask>,
    pub(super) is_watching: bool,
    /// From its freeze on, also when it runs again.
    pub(super) is_frozen: bool,
}

enum Pool {
    Cenote(Box<PoolState<Modelled>>),
    UnchainedPool(UnchainedPool),
    NewestFirst(NewestFirstPool),
}

#[derive(Clone, Copy)]
struct Use {
    number: u64,
    ask: Ask,
    checked_out: Instant,
    connection: Opened,
}

impl Client {
    /// # Panics
    ///
    /// If the options are invalid.
    pub(super) fn new(options: PoolOptions) -> Self {
        let pool = PoolState::new(Instant::ORIGIN, options, &mut Vec::new());
        let pool = pool.unwrap_or_else(|error| panic!("the options of a setup are valid: {error}"));
        Self::with(Pool::Cenote(Box::new(pool)))
    }

    pub(super) fn with_unchained(unchained_pool: UnchainedPool) -> Self {
        Self::with(Pool::UnchainedPool(unchained_pool))
    }

    pub(super) fn with_newest_first(pool: NewestFirstPool) -> Self {
        Self::with(Pool::NewestFirst(pool))
    }

    fn with(pool: Pool) -> Self {
        Self {
            pool,
            requests: 0,
            uses: 0,
            timer: None,
            starting: BTreeMap::new(),
            in_use: BTreeMap::new(),
            held: Vec::new(),
            is_watching: false,
            is_frozen: false,
        }
    }

    /// Whether a connection is in use or pending.
    pub(super) fn is_busy(&self) -> bool {
        !self.in_use.is_empty() || !self.starting.is_empty()
    }

    /// The number of connections, including pending ones.
    pub(super) fn open(&self) -> usize {
        match &self.pool {
            Pool::Cenote(pool) => pool.snapshot().total as usize,
            Pool::UnchainedPool(unchained_pool) => unchained_pool.total(),
            Pool::NewestFirst(pool) => pool.total(),
        }
    }

    fn handle(&mut self, now: Instant, input: Input<Modelled>) -> Vec<Action<Modelled>> {
        let mut actions = Vec::new();
        match &mut self.pool {
            Pool::Cenote(pool) => {
                let handled = pool.handle(now, input, &mut WithoutEvents(&mut actions));
                handled.unwrap_or_else(|misuse| panic!("a fleet's inputs are valid: {misuse}"));
            }
            Pool::UnchainedPool(unchained_pool) => unchained_pool.handle(&input, &mut actions),
            Pool::NewestFirst(pool) => pool.handle(now, &input, &mut actions),
        }
        actions
    }

    /// The time at which the timer has to fire, if that is earlier than its present time.
    fn rearm(&mut self) -> Option<Instant> {
        let Pool::Cenote(pool) = &self.pool else { return None };
        let due = pool.next_deadline()?.at;
        if self.timer.is_some_and(|set| set <= due) {
            return None;
        }
        self.timer = Some(due);
        self.timer
    }
}

/// How fine times of operations are, as parts of their mean.
const STEPS: u32 = 100;

impl Fleet<'_> {
    /// Feeds the pool of a client, and executes its actions.
    pub(super) fn feed(&mut self, client: u32, input: Input<Modelled>) {
        let now = self.now;
        let actions = self.of(client).handle(now, input);
        for action in actions {
            self.act(client, action);
        }
        if let Some(due) = self.of(client).rearm() {
            self.agenda.plan(due, Due::Timer { client });
        }
    }

    pub(super) fn timer(&mut self, client: u32) {
        let now = self.now;
        // The deadline may have been removed since.
        if self.of(client).timer.is_some_and(|set| set <= now) {
            self.of(client).timer = None;
            self.feed(client, Input::Timer);
        }
    }

    fn act(&mut self, client: u32, action: Action<Modelled>) {
        match action {
            Action::StartEstablish { id, .. } => self.start(client, id),
            Action::AbortEstablish { id } => {
                self.of(client).starting.remove(&id);
                self.is_wasted();
            }
            Action::Deliver { waiter: ask, outcome: Ok((id, connection)) } => {
                self.operate(client, id, ask, connection);
            }
            Action::Deliver { waiter: ask, outcome: Err(error) } => {
                self.disappointed(client, ask, &error);
            }
            Action::CloseSocket { conn, .. } => {
                if !conn.is_used {
                    self.is_wasted();
                }
            }
            // No client keeps connections for late replies.
            Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }

    fn start(&mut self, client: u32, id: ConnId) {
        let now = self.now;
        self.log.openings.push(self.since_begin());
        self.of(client).starting.insert(id, now);
        let (often, slow) = self.setup.service.slow_opening;
        let is_slow = often != 0 && self.random.below(often) == 0;
        let limit = now + self.setup.connect_timeout;
        let (at, is_good) = match self.server.open(now) {
            Reply::Done(at) => (if is_slow { at + slow } else { at }, true),
            Reply::Refused => (now, false),
        };
        let at = at + self.setup.service.round_trip;
        let (at, is_good) = if at > limit { (limit, false) } else { (at, is_good) };
        self.agenda.plan(at, Due::Opened { client, id, is_good });
    }

    pub(super) fn opened(&mut self, client: u32, id: ConnId, is_good: bool) {
        // It may have been aborted meanwhile.
        let Some(since) = self.of(client).starting.remove(&id) else { return };
        let is_cut_off = self.server.went_down.is_some_and(|down| since <= down);
        if is_good && !is_cut_off {
            let conn = Opened { rested: self.now, is_used: false };
            self.feed(client, Input::EstablishSucceeded { id, conn });
            if let Some(age) = self.setup.cut_at {
                self.plan(age, Due::Cut { client, id });
            }
            return;
        }
        self.is_wasted();
        if !self.setup.has_labels {
            self.clear(client, Failure::Opening);
        }
        let (cause, overloaded) = (Failure::Opening, self.setup.has_labels);
        self.feed(client, Input::EstablishFailed { id, cause, overloaded });
    }

    fn operate(&mut self, client: u32, id: ConnId, ask: Ask, connection: Opened) {
        let now = self.now;
        self.log.rests.push(now.saturating_since(connection.rested));
        let user = self.of(client);
        user.uses += 1;
        let use_number = user.uses;
        let connection = Opened { is_used: true, ..connection };
        user.in_use.insert(id, Use { number: use_number, ask, checked_out: now, connection });
        if self.has_forgotten(connection.rested) {
            return self.plan(self.setup.service.round_trip, Due::Cut { client, id });
        }
        let takes = self.operation_takes();
        let at = match self.server.operate(now, takes) {
            Reply::Done(at) => at,
            Reply::Refused => now,
        };
        let at = at + self.setup.service.round_trip;
        self.agenda.plan(at, Due::Answered { client, id, use_number });
    }

    /// An exponential distribution in steps of a hundredth, without logarithms, as the arrivals.
    fn operation_takes(&mut self) -> Duration {
        let Service { operation, varies, .. } = self.setup.service;
        if !varies {
            return operation;
        }
        let mut steps = 1;
        while self.random.below(STEPS.into()) != 0 {
            steps += 1;
        }
        operation / STEPS * steps
    }

    pub(super) fn answered(&mut self, client: u32, id: ConnId, use_number: u64) {
        // It may have failed meanwhile.
        let user = self.of(client);
        if user.in_use.get(&id).is_none_or(|used| used.number != use_number) {
            return;
        }
        let Some(used) = user.in_use.remove(&id) else { return };
        if !self.server.is_up {
            return self.broken(client, id, used);
        }
        let since = |instant: Instant| instant.saturating_since(Instant::ORIGIN);
        self.log.answers.push(Answer {
            client,
            caller: used.ask.caller,
            asked: since(used.ask.asked),
            checked_out: since(used.checked_out),
            answered: self.since_begin(),
        });
        let conn = Opened { rested: self.now, ..used.connection };
        self.feed(client, Input::CheckedIn { id, conn, health: Health::Healthy });
        self.thinks(client, used.ask.caller);
    }

    /// A connection failed in use: SDAM sees the error first.
    fn broken(&mut self, client: u32, id: ConnId, used: Use) {
        self.clear(client, Failure::Broken);
        let health = Health::Errored(Failure::Broken);
        self.feed(client, Input::CheckedIn { id, conn: used.connection, health });
        self.again_or_failed(client, used.ask, 1);
    }

    /// The peer closes a connection because of its age.
    pub(super) fn cut(&mut self, client: u32, id: ConnId) {
        match self.of(client).in_use.remove(&id) {
            Some(used) => self.broken(client, id, used),
            None => self.feed(client, Input::IdleClosedByPeer { id, cause: Failure::Broken }),
        }
    }

    /// Fails every connection in use.
    pub(super) fn break_all(&mut self, client: u32) {
        for (id, used) in std::mem::take(&mut self.of(client).in_use) {
            self.broken(client, id, used);
        }
    }

    pub(super) fn ask(&mut self, client: u32, ask: Ask) {
        let user = self.of(client);
        // The server is not selectable.
        if user.is_watching {
            return user.held.push(ask);
        }
        user.requests += 1;
        let id = WaiterId(user.requests);
        let request =
            Input::CheckOutRequested { id, waiter: ask, deadline: None, purpose: Purpose::Other };
        self.feed(client, request);
    }

    fn disappointed(&mut self, client: u32, ask: Ask, error: &CheckOutError<Failure>) {
        match error {
            // Overload: `maxAdaptiveRetries`, each after a pause (ER-42).
            CheckOutError::EstablishFailed { .. }
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. }
                if self.setup.has_labels =>
            {
                self.again_or_failed(client, ask, 2);
            }
            CheckOutError::EstablishFailed { .. } | CheckOutError::PoolCleared { .. } => {
                self.again_or_failed(client, ask, 1);
            }
            CheckOutError::WaitQueueTimeout { .. }
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. }
            | CheckOutError::PoolClosed
            | CheckOutError::Cancelled => self.failed(client, ask),
        }
    }

    pub(super) fn of(&mut self, client: u32) -> &mut Client {
        &mut self.clients[client as usize]
    }
}
