//! What became of the requests and the connections of a pool.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Input, Instant, Snapshot, WaiterId};
use cenote_core::trace::Traced;

use super::goal::{Missed, Stop};
use super::request::nanos;

/// What became of the requests and the connections of a pool, recorded or predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Requests that got a connection.
    pub served: u64,
    /// Requests whose time ran out: `waitQueueTimeoutMS`, their deadline, or the patience of a caller that cancelled.
    pub timed_out: u64,
    /// Requests that were shed, or found the wait queue full.
    pub shed: u64,
    /// Requests that failed otherwise: the pool was paused, cleared or closed, or their connection could not be
    /// established.
    pub failed: u64,
    /// Requests without an outcome at the end.
    pub waiting: u64,
    /// Connections that were started.
    pub opened: u64,
    /// The largest number of connections at once.
    pub peak: u32,
    /// The average number of connections.
    pub mean_open: f64,
    /// The average number of connections in use.
    pub mean_in_use: f64,
    /// The largest number of connections in use at once.
    pub most_in_use: u32,
    /// How long requests waited for their outcome: for each number of thousandths from 0 to 1000 the wait that so many
    /// reached at most, in nanoseconds.
    waits: Vec<u64>,
    /// The same of all requests until they were served, as far as so many were.
    served_waits: Vec<u64>,
}

impl Outcome {
    /// The number of requests.
    pub const fn requests(&self) -> u64 {
        self.served + self.timed_out + self.shed + self.failed + self.waiting
    }

    /// At least this part of the requests, in thousandths, waited no longer for their outcome, whatever that was. Zero
    /// without requests.
    pub fn wait(&self, thousandths: usize) -> Duration {
        self.waits.get(thousandths).map_or(Duration::ZERO, |&it| Duration::from_nanos(it))
    }

    /// At least this part of the requests, in thousandths, was served after this wait; `None` if fewer were served.
    pub fn served_within(&self, thousandths: usize) -> Option<Duration> {
        if thousandths == 0 || self.requests() == 0 {
            return Some(Duration::ZERO);
        }
        self.served_waits.get(thousandths).map(|&it| Duration::from_nanos(it))
    }

    /// The part of the requests that timed out; zero without requests.
    pub fn time_out_share(&self) -> f64 {
        self.timed_out as f64 / self.requests().max(1) as f64
    }

    /// The part of the connections that was in use, on average; zero without connections.
    pub fn busy_share(&self) -> f64 {
        if self.mean_open > 0.0 { self.mean_in_use / self.mean_open } else { 0.0 }
    }
}

/// Of each thousandth one of so many, of which these are the least, sorted.
fn thousandths(sorted: &[u64], of: usize) -> Vec<u64> {
    let rank = |thousandths: usize| (of * thousandths).div_ceil(1000);
    (0..=1000).map_while(|it| sorted.get(rank(it).saturating_sub(1)).copied()).collect()
}

/// Counts while a pool runs.
#[derive(Debug)]
pub(crate) struct Tally {
    outcome: Outcome,
    /// How long requests waited that were served, and others, in nanoseconds.
    waits: [Vec<u64>; 2],
    missed: Missed,
    asked: BTreeMap<WaiterId, Instant>,
    start: Instant,
    now: Instant,
    level: Level,
    /// Connections times nanoseconds.
    open_time: u128,
    in_use_time: u128,
    created_before: u64,
}

/// How many connections there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) open: u32,
    pub(crate) in_use: u32,
    /// So far.
    pub(crate) created: u64,
}

impl From<Snapshot> for Level {
    fn from(it: Snapshot) -> Self {
        Self { open: it.total, in_use: it.in_use, created: it.connections_created }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Served,
    TimedOut,
    Shed,
    Failed,
}

impl Tally {
    /// Begins with a pool in this state.
    pub(crate) fn new(start: Instant, level: Level) -> Self {
        Self {
            outcome: Outcome { peak: level.open, ..Outcome::default() },
            waits: [Vec::new(), Vec::new()],
            missed: Missed::default(),
            asked: BTreeMap::new(),
            start,
            now: start,
            level,
            open_time: 0,
            in_use_time: 0,
            created_before: level.created,
        }
    }

    pub(super) fn until(self, stop: Option<Stop>) -> Self {
        Self { missed: Missed::new(stop), ..self }
    }

    /// Whether the goal is lost until which it counts.
    pub(super) fn is_lost(&self) -> bool {
        self.missed.is_lost()
    }

    /// A request that counts. Others do not: they held a connection when the trace began.
    pub(crate) fn asked(&mut self, at: Instant, id: WaiterId) {
        self.asked.insert(id, at);
    }

    pub(crate) fn input(&mut self, at: Instant, input: &Input<Traced>) {
        if let Input::CheckOutRequested { id, .. } = input {
            self.asked(at, *id);
        }
    }

    pub(crate) fn action(&mut self, at: Instant, action: &Action<Traced>) {
        let Action::Deliver { waiter, outcome } = action else { return };
        let answer = match outcome {
            Ok(_) => Answer::Served,
            Err(CheckOutError::WaitQueueTimeout { .. } | CheckOutError::Cancelled) => {
                Answer::TimedOut
            }
            Err(CheckOutError::Shed { .. } | CheckOutError::WaitQueueFull { .. }) => Answer::Shed,
            Err(
                CheckOutError::PoolClosed
                | CheckOutError::PoolCleared { .. }
                | CheckOutError::EstablishFailed { .. },
            ) => Answer::Failed,
        };
        self.answered(at, *waiter, answer);
    }

    pub(crate) fn answered(&mut self, at: Instant, id: WaiterId, answer: Answer) {
        let Some(asked) = self.asked.remove(&id) else { return };
        let wait = at.saturating_since(asked);
        self.missed.count(answer, wait);
        self.waits[usize::from(answer != Answer::Served)].push(nanos(wait));
        match answer {
            Answer::Served => self.outcome.served += 1,
            Answer::TimedOut => self.outcome.timed_out += 1,
            Answer::Shed => self.outcome.shed += 1,
            Answer::Failed => self.outcome.failed += 1,
        }
    }

    /// The state after the actions of an input.
    pub(crate) fn after(&mut self, at: Instant, level: Level) {
        self.pass(at);
        self.level = level;
        self.outcome.peak = self.outcome.peak.max(level.open);
        self.outcome.most_in_use = self.outcome.most_in_use.max(level.in_use);
    }

    pub(crate) fn finish(mut self, end: Instant) -> Outcome {
        self.pass(end);
        let mut outcome = self.outcome;
        outcome.waiting = self.asked.len() as u64;
        let [mut waits, others] = self.waits;
        waits.sort_unstable();
        outcome.served_waits = thousandths(&waits, outcome.requests() as usize);
        waits.extend(others);
        waits.extend(self.asked.values().map(|&asked| nanos(end.saturating_since(asked))));
        waits.sort_unstable();
        outcome.waits = thousandths(&waits, waits.len());
        outcome.opened = self.level.created - self.created_before;
        let time = end.saturating_since(self.start).as_nanos().max(1) as f64;
        outcome.mean_open = self.open_time as f64 / time;
        outcome.mean_in_use = self.in_use_time as f64 / time;
        outcome
    }

    fn pass(&mut self, at: Instant) {
        let nanos = at.saturating_since(self.now).as_nanos();
        self.open_time += nanos * u128::from(self.level.open);
        self.in_use_time += nanos * u128::from(self.level.in_use);
        self.now = self.now.max(at);
    }
}
