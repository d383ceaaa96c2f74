//! Explains why check-outs failed: what each waited for, which request held which connection since
//! when, and which limit was reached.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Input, Instant, Status, WaiterId};
use cenote_core::trace::Cause;

use super::list;
use super::wait::{Counts, Obstacle};
use crate::clock::Clock;
use crate::filter::connection_of;
use crate::holders::{Activity, Holders, Request};
use crate::step_reader::View;
use crate::text::{counted, span};
use crate::topology::ServerHistory;

/// Follows a replay and explains failed check-outs.
#[derive(Debug)]
pub struct Explainer {
    clock: Clock,
    uses: Typical,
    establishments: Typical,
    /// The time of the last clear.
    paused: Option<Instant>,
    /// What became of the server of the pool, if that is known.
    server: Option<ServerHistory>,
}

impl Explainer {
    /// Creates one for a trace from its beginning; what happened before it is unknown. With a server, each failure names
    /// the change of the topology that it follows.
    pub fn new(clock: Clock, server: Option<ServerHistory>) -> Self {
        let (uses, establishments) = (Typical::default(), Typical::default());
        Self { clock, uses, establishments, paused: None, server }
    }

    /// Explains the check-outs that failed in a step, and updates the statistics.
    pub fn explain(&mut self, view: &View<'_>) -> Vec<String> {
        let failed = view.actions.iter().filter_map(|action| {
            let Action::Deliver { waiter, outcome: Err(error) } = action else { return None };
            Some(self.one(view, *waiter, error))
        });
        let told = failed.collect();
        self.learn(view);
        told
    }

    fn one(&self, view: &View<'_>, waiter: WaiterId, error: &CheckOutError<Cause>) -> String {
        let now = view.pool.now();
        // A request that failed in the step in which it came is not in the state before it.
        let asked = view.holders.requests.get(&waiter).copied();
        let when = match asked {
            Some(Request { started, step, .. }) => {
                let (waited, since) =
                    (span(now.saturating_since(started)), self.clock.short(started));
                let step = match step {
                    0 => "before the trace begins".to_owned(),
                    step => format!("step {step}"),
                };
                format!("after {waited} (since {since}, {step})")
            }
            None => "at once".to_owned(),
        };
        let obstacle = || self.obstacle(view, waiter);
        let why = match error {
            CheckOutError::PoolClosed => "the pool was closed.".to_owned(),
            CheckOutError::PoolCleared { cause } => {
                self.cleared(view, asked.is_some(), cause.as_ref())
            }
            CheckOutError::WaitQueueTimeout { .. } => format!("its wait timed out. {}", obstacle()),
            CheckOutError::WaitQueueFull { max } => {
                format!("the wait queue was full: max_wait_queue_size is {max}. {}", obstacle())
            }
            CheckOutError::Shed { delay } => {
                let (interval, target) = (span(delay.interval()), span(delay.target()));
                let shed = format!("for {interval} the longest wait was never below {target}");
                format!("it was shed: {shed}. {}", obstacle())
            }
            CheckOutError::EstablishFailed { cause } => {
                let own = view.holders.own(waiter).map(|(number, since)| {
                    let before = span(now.saturating_since(since));
                    format!(", c{number}, which was created {before} before,")
                });
                let own = own.unwrap_or_default();
                format!("its connection{own} could not be established: {cause}.")
            }
            CheckOutError::Cancelled => format!("its caller cancelled it. {}", obstacle()),
        };
        let (number, at) = (view.step.number, self.clock.both(now));
        let mut text =
            format!("step {number}, {at}: the check-out of {waiter} failed {when}: {why}");
        let asked = asked.map_or(now, |request| request.started);
        let reason = self.server.as_ref().and_then(|server| server.before_wait(asked, now));
        if let Some(reason) = reason {
            let (change, at) = (reason.text, self.clock.short(reason.at));
            let _ = write!(text, " This follows a change of the topology: {change} at {at}.");
        }
        text
    }

    fn cleared(&self, view: &View<'_>, has_waited: bool, cause: Option<&Cause>) -> String {
        let because = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        match (has_waited, &view.step.input, self.paused) {
            (true, Input::EstablishSucceeded { id, .. }, _) => format!(
                "connection {id}, which was created for it, was established only after the pool had \
                 been cleared{because}."
            ),
            (true, ..) => format!("the pool was cleared while it waited{because}."),
            (false, ..) if cause.is_none() => {
                "the pool is paused: it has never been ready.".to_owned()
            }
            (false, _, Some(at)) => {
                let at = self.clock.short(at);
                format!("the pool is paused since {at}, when it was cleared{because}.")
            }
            (false, _, None) => format!("the pool is paused; it was cleared{because}."),
        }
    }

    /// What kept it waiting.
    fn obstacle(&self, view: &View<'_>, waiter: WaiterId) -> String {
        let (holders, now) = (view.holders, view.pool.now());
        if let Some((number, since)) = holders.own(waiter) {
            let usual = self.establishments.median();
            let usual = usual.map(|usual| format!(" (the median before was {})", span(usual)));
            return format!(
                "Establishment was slow: connection c{number} was being established for it for {}{}{}.",
                span(now.saturating_since(since)),
                holders.stage(number, now),
                usual.unwrap_or_default()
            );
        }
        if let Some((number, since)) = holders.drained(waiter) {
            let since = span(now.saturating_since(since));
            return format!(
                "The reply to an earlier command, whose caller had timed out, was late: connection \
                 c{number} waited for it for {since}."
            );
        }
        let ahead = holders.ahead(waiter);
        let ahead = counted(ahead, "request was ahead of it", "requests were ahead of it");
        let counts = Counts::of(&view.before, view.pool.options());
        let obstacle = counts.obstacle();
        let more = match obstacle {
            Obstacle::MaxPoolSize => self.held(holders, now),
            Obstacle::Establishments | Obstacle::Pacing => self.pending(holders, now),
            Obstacle::OwnConnection | Obstacle::LateReply | Obstacle::Queue => String::new(),
        };
        format!("In the way was {}; {ahead}.{more}", counts.tell(obstacle))
    }

    fn pending(&self, holders: &Holders, now: Instant) -> String {
        let pending = holders.connections.iter();
        let pending = pending.filter(|(_, connection)| connection.activity == Activity::Pending);
        let mut pending: Vec<_> = pending
            .map(|(number, connection)| (now.saturating_since(connection.since), *number))
            .collect();
        if pending.is_empty() {
            return String::new();
        }
        pending.sort_unstable_by(|a, b| b.cmp(a));
        let listed = pending.iter().map(|(age, number)| {
            format!("c{number} for {}{}", span(*age), holders.stage(*number, now))
        });
        let listed = list(listed.take(LISTED), pending.len() as u64);
        let longest = pending.first().zip(self.establishments.median());
        let is_slow = longest.is_some_and(|((age, _), usual)| *age > 5 * usual);
        let slow = " That is slow establishment: look at the network and the server.";
        format!(" Being established{listed}.{}", if is_slow { slow } else { "" })
    }

    fn held(&self, holders: &Holders, now: Instant) -> String {
        let age = |since| Reverse(now.saturating_since(since));
        let held = holders.in_use().map(|(number, holder, it)| (age(it.since), number, holder));
        let mut held: Vec<_> = held.collect();
        held.sort_unstable();
        let listed = held.iter().map(|(Reverse(age), number, holder)| {
            format!("c{number} by {} for {}", holders.name(*holder), span(*age))
        });
        let listed = list(listed.take(LISTED), held.len() as u64);
        let verdict = self.uses.median().map(|usual| {
            let suspect = held.iter().filter(|(Reverse(age), ..)| *age > LEAK_FACTOR * usual);
            let usual = format!("the median use before took {}", span(usual));
            match suspect.count() {
                0 => format!(
                    " None looks like a leak: {usual}, so there was more work than connections."
                ),
                count => format!(" {count} of them are slow or leaked: {usual}."),
            }
        });
        format!(" Held longest{listed}.{}", verdict.unwrap_or_default())
    }

    /// Updates typical durations, and the time of the last clear.
    fn learn(&mut self, view: &View<'_>) {
        if view.step.refused {
            return;
        }
        let (now, input) = (view.pool.now(), &view.step.input);
        let known = connection_of(input).and_then(|it| view.holders.connections.get(&it));
        let lasted = known.map(|it| now.saturating_since(it.since));
        if let Input::CheckedIn { .. } = input {
            self.uses.add(lasted);
        } else if let Input::EstablishSucceeded { .. } = input {
            self.establishments.add(lasted);
        } else if let Input::Ready = input {
            self.paused = None;
        } else if let Input::Clear { .. } = input
            && view.pool.snapshot().status == Status::Paused
        {
            self.paused.get_or_insert(now);
        }
    }
}

/// The last durations of a kind.
#[derive(Debug, Default)]
struct Typical(VecDeque<Duration>);

impl Typical {
    fn add(&mut self, duration: Option<Duration>) {
        self.0.extend(duration);
        if self.0.len() > REMEMBERED {
            self.0.pop_front();
        }
    }

    /// `None` if there are too few.
    fn median(&self) -> Option<Duration> {
        let mut sorted: Vec<_> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        (sorted.len() >= FEW).then(|| sorted[sorted.len() / 2])
    }
}

/// A use that is this many times as long as the median is slow, or leaked.
const LEAK_FACTOR: u32 = 20;
const LISTED: usize = 3;
const REMEMBERED: usize = 512;
const FEW: usize = 3;
