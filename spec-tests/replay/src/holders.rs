//! Tracks which request holds which connection since when, from the pool's actions; the machine
//! itself does not know the holders.

use std::collections::BTreeMap;
use std::sync::Arc;

use cenote_core::pool::{
    Action, ConnId, ConnectionState, Input, Instant, PoolState, Purpose, WaiterId,
};
use cenote_core::trace::{Step, Traced};

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
    /// The time of its creation.
    pub created: Instant,
    /// The request for which it was created, if any and if known.
    pub creator: Option<WaiterId>,
    /// Its activity.
    pub activity: Activity,
    /// The time at which that began.
    pub since: Instant,
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
    /// Its purpose.
    pub purpose: Purpose,
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
            let (created, since) = (connection.created, connection.since);
            let seen = Connection { created, creator, activity, since };
            holders.connections.insert(connection.id.number(), seen);
        }
        for waiter in pool.waiters() {
            let request = Request { started: waiter.started, step: 0, purpose: waiter.purpose };
            holders.requests.insert(waiter.id, request);
        }
        holders
    }

    /// The name of a request, with its place if that is known: `w4711 at src/orders.rs:41:32`.
    pub fn name(&self, request: Option<WaiterId>) -> String {
        let Some(id) = request else { return "an unknown request".to_owned() };
        match self.places.get(&id) {
            Some(place) => format!("{id} at {place}"),
            None => id.to_string(),
        }
    }

    /// Updates the state after a step.
    pub fn follow(&mut self, step: &Step, actions: &[Action<Traced>], pool: &PoolState<Traced>) {
        let now = pool.now();
        if step.lost_before.is_some() {
            *self = Self::of(pool);
            return;
        }
        if step.refused {
            return;
        }
        self.take_input(step, pool, now);
        for action in actions {
            self.take_action(action, pool, now);
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

    fn take_input(&mut self, step: &Step, pool: &PoolState<Traced>, now: Instant) {
        match &step.input {
            Input::CheckOutRequested { id, purpose, .. } => {
                let request = Request { started: now, step: step.number, purpose: *purpose };
                self.requests.insert(*id, request);
                self.places.extend(step.place.clone().map(|place| (*id, place)));
            }
            Input::CheckedIn { id, .. }
            | Input::DrainSucceeded { id, .. }
            | Input::EstablishSucceeded { id, .. } => {
                // If it is delivered at once, that is the next action.
                if let Some(connection) = self.connections.get_mut(&id.number()) {
                    if let Activity::InUse(Some(holder)) = connection.activity {
                        self.places.remove(&holder);
                    }
                    (connection.activity, connection.since) = (Activity::Idle, now);
                }
            }
            // There is no socket to close.
            Input::EstablishFailed { id, .. } | Input::DrainFailed { id, .. } => {
                self.connections.remove(&id.number());
            }
            Input::ResetAfterFork => *self = Self::of(pool),
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::IdleClosedByPeer { .. }
            | Input::DrainProgress { .. }
            | Input::RetireConnections
            | Input::ReleaseIdle
            | Input::Ready
            | Input::Close
            | Input::Timer
            | Input::Clear { .. }
            | Input::SetOptions { .. } => {}
        }
    }

    fn take_action(&mut self, action: &Action<Traced>, pool: &PoolState<Traced>, now: Instant) {
        match action {
            Action::StartEstablish { id, .. } => {
                let creator = owner_of(*id, pool);
                let pending =
                    Connection { created: now, creator, activity: Activity::Pending, since: now };
                self.connections.insert(id.number(), pending);
            }
            Action::Deliver { waiter, outcome } => {
                self.requests.remove(waiter);
                if outcome.is_err() {
                    self.places.remove(waiter);
                }
                if let Ok((id, ())) = outcome {
                    self.last_holder.insert(id.number(), *waiter);
                    if let Some(connection) = self.connections.get_mut(&id.number()) {
                        (connection.activity, connection.since) =
                            (Activity::InUse(Some(*waiter)), now);
                    }
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
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }
}

/// The request that owns a pending connection.
fn owner_of(id: ConnId, pool: &PoolState<Traced>) -> Option<WaiterId> {
    let pending = pool.connections().find(|connection| connection.id == id)?;
    match pending.state {
        ConnectionState::Pending { owner, .. } => owner,
        ConnectionState::Available
        | ConnectionState::InUse { .. }
        | ConnectionState::PendingResponse { .. }
        | ConnectionState::Draining { .. } => None,
    }
}
