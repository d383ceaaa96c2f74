//! Fair endings: from now on the environment behaves, and time passes. Then every request that waits has to be answered,
//! the minimum to be reached, and the pool to close.
//!
//! The machine alone: a model that forgets the same request as the machine agrees with it.

use cenote_core::pool::{
    Action, ConnectionInfo, ConnectionState, Health, Input, Instant, Maintenance, NoPayload,
    PoolState, Status, WaiterInfo, WaitsFor,
};

use crate::lockstep::{self, service};

/// More inputs than a pool needs that is small enough to be explored.
const PATIENCE: usize = 100;

/// Checks that the pool ends well from this state.
pub(super) fn expect_fair_ending(pool: &PoolState<NoPayload>) -> Result<(), String> {
    let mut ending = Ending { pool: pool.clone(), waiting: pool.waiters().count() };
    let (now, status) = (pool.now(), pool.snapshot().status);
    if status == Status::Paused {
        ending.feed(now, Input::Ready)?;
    }
    let mut fed = 0;
    while let Some((now, input)) = ending.next()? {
        fed += 1;
        if fed > PATIENCE {
            return Err(format!("no rest after {PATIENCE} inputs: {}", ending.pool.snapshot()));
        }
        ending.feed(now, input)?;
    }
    if ending.waiting > 0 {
        return Err(format!("{} requests without an answer", ending.waiting));
    }
    ending.feed(ending.pool.now(), Input::Close)?;
    match (ending.pool.snapshot(), ending.pool.next_deadline()) {
        (left, None) if left.total == 0 => Ok(()),
        (left, deadline) => Err(format!("closed, and left are {left} and {deadline:?}")),
    }
}

struct Ending {
    pool: PoolState<NoPayload>,
    /// The requests without an answer.
    waiting: usize,
}

impl Ending {
    fn feed(&mut self, now: Instant, input: Input<NoPayload>) -> Result<(), String> {
        let fed = lockstep::feed(&mut self.pool, now, input)?;
        let actions = fed.map_err(|(reason, _)| format!("refused: {reason}"))?;
        let is_answer = |action: &&Action<_>| matches!(action, Action::Deliver { .. });
        let answers = actions.iter().filter(is_answer).count();
        self.waiting = self.waiting.checked_sub(answers).ok_or("answered twice")?;
        Ok(())
    }

    /// What the environment owes the pool, or else the time for which it waits; `None` at rest.
    fn next(&self) -> Result<Option<(Instant, Input<NoPayload>)>, String> {
        let is_balanced = self.pool.options().load_balanced == Some(true);
        let owed = self.pool.connections().find_map(|connection| owed(&connection, is_balanced));
        if let Some(input) = owed {
            return Ok(Some((self.pool.now(), input)));
        }
        // A request may still wait for the time of the next connection, or for the end of its own time.
        let now = self.pool.now();
        let is_lost = |waiter: &WaiterInfo| {
            let is_due = waiter.deadline.is_some_and(|deadline| deadline <= now);
            waiter.waits_for != WaitsFor::Pacing && !is_due
        };
        if let Some(WaiterInfo { id, waits_for, .. }) = self.pool.waiters().find(is_lost) {
            return Err(format!("{id} waits for {waits_for:?}, and nothing is under way"));
        }
        let grows = self.pool.options().maintenance != Some(Maintenance::Never)
            && self.pool.snapshot().status == Status::Ready;
        if self.waiting == 0 && (self.pool.is_filled() || !grows) {
            return Ok(None);
        }
        let deadline = self.pool.next_deadline();
        let deadline = deadline.ok_or_else(|| format!("no timer: {}", self.pool.snapshot()))?;
        Ok(Some((deadline.at.max(now), Input::Timer)))
    }
}

/// The server answers, the caller returns what it has, and the late reply comes.
fn owed(connection: &ConnectionInfo, is_balanced: bool) -> Option<Input<NoPayload>> {
    let &ConnectionInfo { id, state, .. } = connection;
    match state {
        ConnectionState::Pending { handshaken: false, .. } if is_balanced => {
            Some(Input::Handshaken { id, service: Some(service(0)), clears_at_hello: None })
        }
        ConnectionState::Pending { .. } => Some(Input::EstablishSucceeded { id, conn: () }),
        ConnectionState::InUse { .. } => {
            Some(Input::CheckedIn { id, conn: (), health: Health::Healthy })
        }
        ConnectionState::Draining { .. } => Some(Input::DrainSucceeded { id, conn: () }),
        ConnectionState::Available | ConnectionState::PendingResponse { .. } => None,
    }
}
