//! Who holds what since when: what a pool's actions tell, kept beside the replay, because the
//! machine itself does not know who holds a connection.

use std::collections::BTreeMap;

use cenote_core::pool::{
    Action, ConnId, ConnectionState, Health, Input, Instant, PoolState, Purpose, WaiterId,
};
use cenote_core::trace::{Step, Traced};

/// The connections and the requests of a pool, as they are between two steps.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    /// By their numbers.
    pub connections: BTreeMap<u64, Connection>,
    /// Requests without an outcome.
    pub requests: BTreeMap<WaiterId, Request>,
    /// Who was handed a connection last, even if it has come back since.
    pub last_holder: BTreeMap<u64, WaiterId>,
}

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection {
    /// Since when it exists.
    pub created: Instant,
    /// The request that it was created for, if it was for one and that was seen.
    pub creator: Option<WaiterId>,
    /// What it does.
    pub doing: Doing,
    /// Since when it does that.
    pub since: Instant,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It is being established.
    Pending,
    /// It lies in the pool.
    Idle,
    /// It is checked out, by this request if that was seen.
    InUse(Option<WaiterId>),
}

/// One request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it came.
    pub started: Instant,
    /// The step in which it came; 0 for one from before the trace.
    pub step: u64,
    /// What for.
    pub purpose: Purpose,
}

impl Mirror {
    /// What a pool tells of itself; holders are not among it.
    pub fn of(pool: &PoolState<Traced>) -> Self {
        let mut mirror = Self::default();
        for connection in pool.connections() {
            let (doing, creator) = match connection.state {
                ConnectionState::Pending { owner, .. } => (Doing::Pending, owner),
                ConnectionState::Available => (Doing::Idle, None),
                ConnectionState::InUse { .. } => (Doing::InUse(None), None),
            };
            let (created, since) = (connection.created, connection.since);
            let seen = Connection { created, creator, doing, since };
            mirror.connections.insert(connection.id.number(), seen);
        }
        for waiter in pool.waiters() {
            let request = Request { started: waiter.started, step: 0, purpose: waiter.purpose };
            mirror.requests.insert(waiter.id, request);
        }
        mirror
    }

    /// Takes in what a step brought about.
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
    }

    fn take_input(&mut self, step: &Step, pool: &PoolState<Traced>, now: Instant) {
        match &step.input {
            Input::CheckOutRequested { id, purpose, .. } => {
                let request = Request { started: now, step: step.number, purpose: *purpose };
                self.requests.insert(*id, request);
            }
            Input::CheckedIn { id, health: Health::Healthy | Health::Errored(_), .. }
            | Input::EstablishSucceeded { id, .. } => {
                // If somebody is handed it at once, that is the next to be seen.
                if let Some(connection) = self.connections.get_mut(&id.number()) {
                    (connection.doing, connection.since) = (Doing::Idle, now);
                }
            }
            // There is no socket to be closed.
            Input::EstablishFailed { id, .. } => drop(self.connections.remove(&id.number())),
            Input::ResetAfterFork => *self = Self::of(pool),
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::IdleClosedByPeer { .. }
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
                    Connection { created: now, creator, doing: Doing::Pending, since: now };
                self.connections.insert(id.number(), pending);
            }
            Action::Deliver { waiter, outcome } => {
                self.requests.remove(waiter);
                if let Ok((id, ())) = outcome {
                    self.last_holder.insert(id.number(), *waiter);
                    if let Some(connection) = self.connections.get_mut(&id.number()) {
                        (connection.doing, connection.since) = (Doing::InUse(Some(*waiter)), now);
                    }
                }
            }
            Action::AbortEstablish { id } | Action::CloseSocket { id, .. } => {
                self.connections.remove(&id.number());
                self.last_holder.remove(&id.number());
            }
            Action::Interrupt { .. } | Action::ReportLeak { .. } | Action::EmitEvent(_) => {}
        }
    }
}

/// The request that a pending connection belongs to.
fn owner_of(id: ConnId, pool: &PoolState<Traced>) -> Option<WaiterId> {
    let pending = pool.connections().find(|connection| connection.id == id)?;
    match pending.state {
        ConnectionState::Pending { owner, .. } => owner,
        ConnectionState::Available | ConnectionState::InUse { .. } => None,
    }
}
