//! Explains why check-outs failed: what each waited for, which request held which connection since
//! when, and which limit was reached.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Input, Instant, Status, WaiterId};
use cenote_core::trace::Cause;

use crate::clock::Clock;
use crate::holders::{Activity, Holders, Request};
use crate::step_reader::View;
use crate::text::{counted, span};
use crate::topology::ServerHistory;

use super::wait::{Counts, Obstacle};

/// Follows a replay and explains failed check-outs.
#[derive(Debug)]
pub struct Explainer {
    clock: Clock,
    uses: Typical,
    establishments: Typical,
    /// The time and the cause of the last clear.
    paused: Option<(Instant, Option<Cause>)>,
    /// What became of the server of the pool, if that is known.
    server: Option<ServerHistory>,
}

impl Explainer {
    /// Creates one for a trace from its beginning; what happened before it is unknown.
    pub fn new(clock: Clock) -> Self {
        let (uses, establishments) = (Typical::default(), Typical::default());
        Self { clock, uses, establishments, paused: None, server: None }
    }

    /// With the change of the topology that each failure follows.
    #[must_use]
    pub fn following(self, server: Option<ServerHistory>) -> Self {
        Self { server, ..self }
    }

    /// Explains the check-outs that failed in a step, and updates the statistics.
    pub fn explain(&mut self, view: &View<'_>) -> Vec<String> {
        let failed = view.actions.iter().filter_map(|action| match action {
            Action::Deliver { waiter, outcome: Err(error) } => Some((*waiter, error)),
            Action::Deliver { outcome: Ok(_), .. }
            | Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => None,
        });
        let told = failed.map(|(waiter, error)| self.one(view, waiter, error)).collect();
        self.learn(view);
        told
    }

    fn one(&self, view: &View<'_>, waiter: WaiterId, error: &CheckOutError<Cause>) -> String {
        let now = view.pool.now();
        // A request that failed in the step in which it came is not in the state before it.
        let asked = view.holders.requests.get(&waiter).copied();
        let waited = asked.map_or(Duration::ZERO, |request| now.saturating_since(request.started));
        let number = view.step.number;
        let mut text =
            format!("step {number}, {}: the check-out of {waiter} failed ", self.clock.both(now));
        let _ = match asked {
            Some(request) => write!(text, "after {}{}: ", span(waited), self.since(request)),
            None => write!(text, "at once: "),
        };
        text += &match error {
            CheckOutError::PoolClosed => "the pool was closed.".to_owned(),
            CheckOutError::PoolCleared { cause } => self.cleared(view, asked, cause.as_ref()),
            CheckOutError::WaitQueueTimeout { .. } => self.timed_out(view, waiter, now),
            CheckOutError::WaitQueueFull { max } => format!(
                "the wait queue was full: max_wait_queue_size is {max}. {}",
                capitalised(&self.obstacle(view, waiter, now))
            ),
            CheckOutError::Shed { delay } => format!(
                "it was shed: for {} the longest wait was never below {}. {}",
                span(delay.interval()),
                span(delay.target()),
                capitalised(&self.obstacle(view, waiter, now))
            ),
            CheckOutError::EstablishFailed { cause } => self.not_established(view, waiter, cause),
            CheckOutError::Cancelled => {
                format!(
                    "its caller cancelled it. At that time, {}",
                    self.obstacle(view, waiter, now)
                )
            }
        };
        let asked = asked.map_or(now, |request| request.started);
        let reason = self.server.as_ref().and_then(|server| server.before_wait(asked, now));
        if let Some(reason) = reason {
            let at = self.clock.short(reason.at);
            let _ =
                write!(text, " This follows a change of the topology: {} at {at}.", reason.text);
        }
        text
    }

    fn timed_out(&self, view: &View<'_>, waiter: WaiterId, now: Instant) -> String {
        format!("its wait timed out. {}", capitalised(&self.obstacle(view, waiter, now)))
    }

    fn cleared(&self, view: &View<'_>, asked: Option<Request>, cause: Option<&Cause>) -> String {
        if asked.is_none() {
            return match (cause, &self.paused) {
                (None, _) => "the pool is paused: it has never been ready.".to_owned(),
                (Some(cause), Some((at, _))) => {
                    let at = self.clock.short(*at);
                    format!("the pool is paused since {at}, when it was cleared ({cause}).")
                }
                (Some(cause), None) => format!("the pool is paused; it was cleared ({cause})."),
            };
        }
        let because = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        if let Input::EstablishSucceeded { id, .. } = &view.step.input {
            return format!(
                "connection {id}, which was created for it, was established only after the pool had \
                 been cleared{because}."
            );
        }
        format!("the pool was cleared while it waited{because}.")
    }

    fn not_established(&self, view: &View<'_>, waiter: WaiterId, cause: &Cause) -> String {
        match owned(view.holders, waiter) {
            Some((number, since)) => format!(
                "connection c{number}, which was created for it {} before, could not be \
                 established: {cause}.",
                span(view.pool.now().saturating_since(since))
            ),
            None => {
                format!("the connection that was created for it could not be established: {cause}.")
            }
        }
    }

    /// What kept it waiting, as a sentence that begins in lower case.
    fn obstacle(&self, view: &View<'_>, waiter: WaiterId, now: Instant) -> String {
        let before = &view.before;
        if let Some((number, since)) = owned(view.holders, waiter) {
            return self.slow_establishment(number, now.saturating_since(since));
        }
        if let Some((number, since)) = drained(view.holders, waiter) {
            let since = span(now.saturating_since(since));
            return format!(
                "the reply to an earlier command, whose caller had timed out, was late: connection \
                 c{number} waited for it for {since}."
            );
        }
        let ahead = view.holders.requests.keys().filter(|&&id| id < waiter).count() as u64;
        let queue = counted(ahead, "request was ahead of it", "requests were ahead of it");
        let counts = Counts::of(before, view.pool.options());
        let max = counts.max.map_or("unlimited".to_owned(), |max| max.to_string());
        match counts.obstacle() {
            Obstacle::MaxPoolSize => format!(
                "the limit was maxPoolSize: there were {} of {max} connections ({} in use, {} being \
                 established), and {queue}. {}",
                before.total,
                before.in_use,
                before.pending,
                self.holders(view.holders, now)
            ),
            Obstacle::Establishments if counts.max == Some(counts.total) => format!(
                "establishment was in the way: of {max} connections, which is maxPoolSize, {} were being \
                 established and {} in use, and {queue}. {}",
                before.pending,
                before.in_use,
                self.pending(view.holders, now)
            ),
            Obstacle::Establishments => format!(
                "the limit was maxConnecting: {} of {} connections were being established at once, \
                 with room for more ({} of {}), and {queue}. {}",
                before.pending,
                before.max_connecting,
                before.total,
                before.max_pool_size.map_or("any number".to_owned(), |max| max.to_string()),
                self.pending(view.holders, now)
            ),
            Obstacle::Pacing => format!(
                "the pool was waiting to establish more connections (overload_backoff or \
                 adaptive_connecting): {} of {max} connections, {} being established, and {queue}. {}",
                before.total,
                before.pending,
                self.pending(view.holders, now)
            ),
            Obstacle::OwnConnection | Obstacle::LateReply | Obstacle::Queue => {
                format!("no limit was reached, but {queue}.")
            }
        }
    }

    fn slow_establishment(&self, number: u64, since: Duration) -> String {
        let usual = self
            .establishments
            .median()
            .map(|usual| format!(" (the median before was {})", span(usual)));
        format!(
            "establishment was slow: connection c{number} was being established for it for {}{}.",
            span(since),
            usual.unwrap_or_default()
        )
    }

    fn pending(&self, holders: &Holders, now: Instant) -> String {
        let mut pending: Vec<_> = holders
            .connections
            .iter()
            .filter(|(_, connection)| connection.activity == Activity::Pending)
            .map(|(number, connection)| (now.saturating_since(connection.since), *number))
            .collect();
        pending.sort_unstable_by(|a, b| b.cmp(a));
        let listed: Vec<_> = pending
            .iter()
            .take(LISTED)
            .map(|(age, number)| format!("c{number} for {}", span(*age)))
            .collect();
        let usual = self.establishments.median();
        let slow = pending.first().zip(usual).is_some_and(|((age, _), usual)| *age > 5 * usual);
        let verdict = if slow {
            " That is slow establishment: look at the network and the server."
        } else {
            ""
        };
        format!("Being established: {}.{verdict}", listed.join(", "))
    }

    fn holders(&self, holders: &Holders, now: Instant) -> String {
        let mut held: Vec<_> = holders
            .connections
            .iter()
            .filter_map(|(number, connection)| match connection.activity {
                Activity::InUse(holder) => {
                    Some((now.saturating_since(connection.since), *number, holder))
                }
                Activity::Pending | Activity::Idle | Activity::Draining(_) => None,
            })
            .collect();
        held.sort_unstable_by_key(|&(age, number, _)| (std::cmp::Reverse(age), number));
        let listed: Vec<_> = held
            .iter()
            .take(LISTED)
            .map(|(age, number, holder)| {
                format!("c{number} by {} for {}", holders.name(*holder), span(*age))
            })
            .collect();
        let more = held.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let mut text = format!("Held longest: {}{more}.", listed.join(", "));
        if let Some(usual) = self.uses.median() {
            let suspect = held.iter().filter(|(age, ..)| *age > LEAK_FACTOR * usual).count();
            let usual = span(usual);
            if suspect > 0 {
                let _ = write!(
                    text,
                    " {suspect} of them look like leaks: the median use before took {usual}."
                );
            } else {
                let _ = write!(
                    text,
                    " None looks like a leak: the median use before took {usual}, so there was more \
                     work than connections."
                );
            }
        }
        text
    }

    fn since(&self, request: Request) -> String {
        let started = self.clock.short(request.started);
        if request.step == 0 {
            format!(" (since {started}, before the trace begins)")
        } else {
            format!(" (since {started}, step {})", request.step)
        }
    }

    /// Updates typical durations, and the time of the last clear.
    fn learn(&mut self, view: &View<'_>) {
        let now = view.pool.now();
        let connection = |number| view.holders.connections.get(&number);
        match &view.step.input {
            Input::CheckedIn { id, .. } if !view.step.refused => {
                let since = connection(id.number()).map(|connection| connection.since);
                since.into_iter().for_each(|since| self.uses.add(now.saturating_since(since)));
            }
            Input::EstablishSucceeded { id, .. } if !view.step.refused => {
                let since = connection(id.number()).map(|connection| connection.since);
                let took = since.map(|since| now.saturating_since(since));
                took.into_iter().for_each(|took| self.establishments.add(took));
            }
            Input::Clear { cause, .. } if view.pool.snapshot().status == Status::Paused => {
                self.paused.get_or_insert((now, Some(cause.clone())));
            }
            Input::Ready => self.paused = None,
            Input::CheckedIn { .. }
            | Input::EstablishSucceeded { .. }
            | Input::Clear { .. }
            | Input::CheckOutRequested { .. }
            | Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::EstablishFailed { .. }
            | Input::IdleClosedByPeer { .. }
            | Input::DrainSucceeded { .. }
            | Input::DrainFailed { .. }
            | Input::DrainProgress { .. }
            | Input::RetireConnections
            | Input::ReleaseIdle
            | Input::Close
            | Input::Timer
            | Input::ResetAfterFork
            | Input::SetOptions { .. } => {}
        }
    }
}

/// The last durations of a kind.
#[derive(Debug, Default)]
struct Typical(VecDeque<Duration>);

impl Typical {
    fn add(&mut self, duration: Duration) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(duration);
    }

    /// `None` if there are too few.
    fn median(&self) -> Option<Duration> {
        let mut sorted: Vec<_> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        (sorted.len() >= FEW).then(|| sorted[sorted.len() / 2])
    }
}

/// The pending connection that was created for a request, and its age.
fn owned(holders: &Holders, waiter: WaiterId) -> Option<(u64, Instant)> {
    let mut pending = holders.connections.iter().filter(|(_, connection)| {
        connection.activity == Activity::Pending && connection.creator == Some(waiter)
    });
    pending.next().map(|(number, connection)| (*number, connection.since))
}

/// The connection whose late reply a request waits for, and since when.
fn drained(holders: &Holders, waiter: WaiterId) -> Option<(u64, Instant)> {
    let mut draining = holders
        .connections
        .iter()
        .filter(|(_, connection)| connection.activity == Activity::Draining(Some(waiter)));
    draining.next().map(|(number, connection)| (*number, connection.since))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

/// A use that is this many times as long as the median looks like a leak.
const LEAK_FACTOR: u32 = 20;
const LISTED: usize = 3;
const REMEMBERED: usize = 512;
const FEW: usize = 3;
