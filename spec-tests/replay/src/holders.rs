//! Tracks which request holds which connection since when, from the pool's actions; the machine
//! itself does not know the holders.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::error::Stage;
use cenote_core::pool::{Action, ConnectionState, Input, Instant, PoolState, WaiterId};
use cenote_core::trace::{StageRecord, Step, Traced};

use crate::text::span;

/// The connections and the requests of a pool between two steps.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    /// The connections by number.
    pub connections: BTreeMap<u64, Connection>,
    /// The waiting requests.
    pub requests: BTreeMap<WaiterId, Request>,
    /// The last holder of each connection, even if it was checked in since.
    pub last_holder: BTreeMap<u64, WaiterId>,
    /// Where in the program the requests that wait or hold a connection were called, as far as that is known.
    pub places: BTreeMap<WaiterId, Arc<str>>,
}

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection {
    /// The request for which it was created, if any and if known.
    pub creator: Option<WaiterId>,
    /// Its activity.
    pub activity: Activity,
    /// The time at which that began.
    pub since: Instant,
    /// The step of its check-out; 0 if it is not checked out, or was before the trace.
    pub step: u64,
    /// When the pool reported it as a possible leak.
    pub reported: Option<Instant>,
    /// The stage that its establishment has come to and when, if that was recorded.
    pub stage: Option<(Stage, Instant)>,
}

/// The activity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It is being established.
    Pending,
    /// It is available.
    Idle,
    /// It is checked out, by this request if known.
    InUse(Option<WaiterId>),
    /// A late reply is read, for this request if there is one.
    Draining(Option<WaiterId>),
}

/// A waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The time of its arrival.
    pub started: Instant,
    /// The step of its arrival; 0 if it came before the trace.
    pub step: u64,
    /// How many requests were in the queue before it when it came; `None` if that is unknown.
    pub ahead: Option<u64>,
    /// For how long it may wait, if there is a limit and if that is known.
    pub limit: Option<Duration>,
}

impl Connection {
    pub(crate) fn new(activity: Activity, since: Instant, creator: Option<WaiterId>) -> Self {
        Self { creator, activity, since, step: 0, reported: None, stage: None }
    }
}

impl Holders {
    /// The state of a pool, without holders, which are unknown.
    pub fn of(pool: &PoolState<Traced>) -> Self {
        let mut holders = Self::default();
        for connection in pool.connections() {
            let (activity, creator) = match connection.state {
                ConnectionState::Pending { owner, .. } => (Activity::Pending, owner),
                ConnectionState::Available | ConnectionState::PendingResponse { .. } => {
                    (Activity::Idle, None)
                }
                ConnectionState::Draining { owner, .. } => (Activity::Draining(owner), None),
                ConnectionState::InUse { .. } => (Activity::InUse(None), None),
            };
            let seen = Connection::new(activity, connection.since, creator);
            holders.connections.insert(connection.id.number(), seen);
        }
        for waiter in pool.waiters() {
            let request = Request { started: waiter.started, step: 0, ahead: None, limit: None };
            holders.requests.insert(waiter.id, request);
        }
        holders
    }

    /// The connections in use, with their holders.
    pub fn in_use(&self) -> impl Iterator<Item = (u64, Option<WaiterId>, &Connection)> {
        self.connections.iter().filter_map(|(&number, connection)| match connection.activity {
            Activity::InUse(holder) => Some((number, holder, connection)),
            Activity::Pending | Activity::Idle | Activity::Draining(_) => None,
        })
    }

    /// How the establishment of a connection stands, as ` (TLS handshake for 3 s)`; nothing if that was not recorded.
    pub fn stage(&self, connection: u64, now: Instant) -> String {
        let stage = self.connections.get(&connection).and_then(|it| it.stage);
        stage.map_or_else(String::new, |(stage, since)| {
            format!(" ({stage} for {})", span(now.saturating_since(since)))
        })
    }

    /// The connection that was created for a request and is being established, and since when.
    pub fn own(&self, request: WaiterId) -> Option<(u64, Instant)> {
        self.find(|it| it.activity == Activity::Pending && it.creator == Some(request))
    }

    /// The connection whose late reply a request waits for, and since when.
    pub fn drained(&self, request: WaiterId) -> Option<(u64, Instant)> {
        self.find(|it| it.activity == Activity::Draining(Some(request)))
    }

    fn find(&self, is_it: impl Fn(&Connection) -> bool) -> Option<(u64, Instant)> {
        let (number, found) = self.connections.iter().find(|(_, connection)| is_it(connection))?;
        Some((*number, found.since))
    }

    /// How many requests came before this one, and still wait.
    pub fn ahead(&self, request: WaiterId) -> u64 {
        self.requests.range(..request).count() as u64
    }

    /// The name of a request, with its place if that is known: `w4711 at src/orders.rs:41:32`.
    pub fn name(&self, request: Option<WaiterId>) -> String {
        let Some(id) = request else { return "an unknown request".to_owned() };
        match self.places.get(&id) {
            Some(place) => format!("{id} at {place}"),
            None => id.to_string(),
        }
    }

    /// Updates the state by the stages of a step, before the step itself.
    pub fn enter(&mut self, stages: &[StageRecord]) {
        let entered = stages.iter().filter(|record| record.failed.is_none());
        for &StageRecord { connection, stage, at, .. } in entered {
            let known = self.connections.get_mut(&connection);
            if let Some(known) = known.filter(|it| it.activity == Activity::Pending) {
                known.stage = Some((stage, at));
            }
        }
    }

    /// Updates the state after a step, before which so many requests were waiting.
    pub fn follow(
        &mut self,
        step: &Step,
        waiting: u64,
        actions: &[Action<Traced>],
        pool: &PoolState<Traced>,
    ) {
        if step.lost_before.is_some() || matches!(step.input, Input::ResetAfterFork) {
            *self = Self::of(pool);
            return;
        }
        if step.refused {
            return;
        }
        self.take_input(step, waiting, pool);
        for action in actions {
            self.take_action(action, step.number, pool.now());
        }
        self.take_drains(pool);
    }

    /// Which request waits for a drain is in no action: drains go on when requests leave them.
    fn take_drains(&mut self, pool: &PoolState<Traced>) {
        let snapshot = pool.snapshot();
        let may_drain = snapshot.pending_response > 0 || snapshot.in_use > 0;
        if pool.options().experimental_pending_response != Some(true) || !may_drain {
            return;
        }
        for info in pool.connections() {
            let ConnectionState::Draining { owner, .. } = info.state else { continue };
            if let Some(connection) = self.connections.get_mut(&info.id.number()) {
                (connection.activity, connection.since) = (Activity::Draining(owner), info.since);
            }
        }
    }

    fn take_input(&mut self, step: &Step, waiting: u64, pool: &PoolState<Traced>) {
        if let Input::CheckOutRequested { id, .. } = &step.input {
            self.requests.insert(*id, Request::of(step, waiting, pool));
            self.places.extend(step.place.clone().map(|place| (*id, place)));
        } else if let Input::CheckedIn { id, .. }
        | Input::DrainSucceeded { id, .. }
        | Input::EstablishSucceeded { id, .. } = &step.input
        {
            // If it is delivered at once, that is the next action.
            if let Some(connection) = self.connections.get_mut(&id.number()) {
                if let Activity::InUse(Some(holder)) = connection.activity {
                    self.places.remove(&holder);
                }
                *connection = Connection::new(Activity::Idle, pool.now(), connection.creator);
            }
        } else if let Input::EstablishFailed { id, .. } | Input::DrainFailed { id, .. } =
            &step.input
        {
            // There is no socket to close.
            self.connections.remove(&id.number());
        }
    }

    fn take_action(&mut self, action: &Action<Traced>, step: u64, now: Instant) {
        match action {
            Action::StartEstablish { id, owner, .. } => {
                let pending = Connection::new(Activity::Pending, now, *owner);
                self.connections.insert(id.number(), pending);
            }
            Action::Deliver { waiter, outcome: Ok((id, ())) } => {
                self.requests.remove(waiter);
                self.last_holder.insert(id.number(), *waiter);
                if let Some(connection) = self.connections.get_mut(&id.number()) {
                    let in_use = Activity::InUse(Some(*waiter));
                    *connection =
                        Connection { step, ..Connection::new(in_use, now, connection.creator) };
                }
            }
            Action::Deliver { waiter, outcome: Err(_) } => {
                self.requests.remove(waiter);
                self.places.remove(waiter);
            }
            Action::ReportLeak { id, .. } => {
                if let Some(connection) = self.connections.get_mut(&id.number()) {
                    connection.reported = Some(now);
                }
            }
            Action::AbortEstablish { id }
            | Action::AbortDrain { id }
            | Action::CloseSocket { id, .. } => {
                self.connections.remove(&id.number());
                self.last_holder.remove(&id.number());
            }
            // What drains is looked at after the step.
            Action::StartDrain { .. }
            | Action::Interrupt { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }
}

impl Request {
    /// The one that came in this step.
    pub fn of(step: &Step, waiting: u64, pool: &PoolState<Traced>) -> Self {
        let now = pool.now();
        let deadline = if let Input::CheckOutRequested { deadline, .. } = step.input {
            deadline
        } else {
            None
        };
        let by_option = pool.options().wait_queue_timeout.filter(|limit| !limit.is_zero());
        let limit = deadline.map(|deadline| deadline.saturating_since(now)).or(by_option);
        Self { started: now, step: step.number, ahead: Some(waiting), limit }
    }
}
