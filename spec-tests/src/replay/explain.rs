//! Why check-outs failed, in words: what each waited for, who held what since when, and which limit
//! stood in the way.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Input, Instant, Status, WaiterId};
use cenote_core::trace::Cause;

use super::mirror::{Doing, Mirror, Request};
use super::text::span;
use super::watch::View;

/// Goes along with a replay and explains what fails.
#[derive(Debug, Default)]
pub struct Explainer {
    uses: Typical,
    establishments: Typical,
    /// When the pool became paused, and why.
    paused: Option<(Instant, Option<Cause>)>,
}

impl Explainer {
    /// Whoever begins with a state has a past that is not told.
    pub fn new() -> Self {
        Self::default()
    }

    /// Explains what failed in a step, and learns from it.
    pub fn explain(&mut self, view: &View<'_>) -> Vec<String> {
        let failed = view.actions.iter().filter_map(|action| match action {
            Action::Deliver { waiter, outcome: Err(error) } => Some((*waiter, error)),
            Action::Deliver { outcome: Ok(_), .. }
            | Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::EmitEvent(_) => None,
        });
        let told = failed.map(|(waiter, error)| self.one(view, waiter, error)).collect();
        self.learn(view);
        told
    }

    fn one(&self, view: &View<'_>, waiter: WaiterId, error: &CheckOutError<Cause>) -> String {
        let now = view.pool.now();
        // One that failed in the step in which it came is not among those from before.
        let asked = view.mirror.requests.get(&waiter).copied();
        let waited = asked.map_or(Duration::ZERO, |request| now.saturating_since(request.started));
        let number = view.step.number;
        let mut text = format!("step {number}, {now}: the check-out of {waiter} failed ");
        let _ = match asked {
            Some(request) => write!(text, "after {}{}: ", span(waited), since(request)),
            None => write!(text, "at once: "),
        };
        text += &match error {
            CheckOutError::PoolClosed => "the pool was closed.".to_owned(),
            CheckOutError::PoolCleared { cause } => self.cleared(view, asked, cause.as_ref()),
            CheckOutError::WaitQueueTimeout { .. } => self.timed_out(view, waiter, now),
            CheckOutError::EstablishFailed { cause } => self.not_established(view, waiter, cause),
            CheckOutError::Cancelled => {
                format!("its caller went away. Meanwhile {}", self.obstacle(view, waiter, now))
            }
        };
        text
    }

    fn timed_out(&self, view: &View<'_>, waiter: WaiterId, now: Instant) -> String {
        format!("its time to wait ran out. {}", capitalised(&self.obstacle(view, waiter, now)))
    }

    fn cleared(&self, view: &View<'_>, asked: Option<Request>, cause: Option<&Cause>) -> String {
        if asked.is_none() {
            return match (cause, &self.paused) {
                (None, _) => "the pool is paused: it has never been ready.".to_owned(),
                (Some(cause), Some((at, _))) => {
                    format!("the pool is paused since {at}, when it was cleared ({cause}).")
                }
                (Some(cause), None) => format!("the pool is paused; it was cleared ({cause})."),
            };
        }
        let because = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        if let Input::EstablishSucceeded { id, .. } = &view.step.input {
            return format!(
                "connection {id}, which was made for it, was ready only after the pool had been \
                 cleared{because}."
            );
        }
        format!("the pool was cleared while it waited{because}.")
    }

    fn not_established(&self, view: &View<'_>, waiter: WaiterId, cause: &Cause) -> String {
        match owned(view.mirror, waiter) {
            Some((number, since)) => format!(
                "connection c{number}, which was being made for it for {}, could not be \
                 established: {cause}.",
                span(view.pool.now().saturating_since(since))
            ),
            None => {
                format!("the connection that was made for it could not be established: {cause}.")
            }
        }
    }

    /// What stood in its way, as a sentence that begins small.
    fn obstacle(&self, view: &View<'_>, waiter: WaiterId, now: Instant) -> String {
        let before = &view.before;
        if let Some((number, since)) = owned(view.mirror, waiter) {
            return self.slow_establishment(number, now.saturating_since(since));
        }
        let ahead = view.mirror.requests.keys().filter(|&&id| id < waiter).count();
        let queue = format!("{ahead} requests were ahead of it");
        let is_full = before.max_pool_size.is_some_and(|max| before.total >= max);
        if is_full {
            let max = before.max_pool_size.unwrap_or(before.total);
            format!(
                "maxPoolSize stood in the way: all {} of {max} connections were taken ({} in use, \
                 {} being established), and {queue}. {}",
                before.total,
                before.in_use,
                before.pending,
                self.holders(view.mirror, now)
            )
        } else if before.pending >= before.max_connecting {
            format!(
                "maxConnecting stood in the way: {} of {} connections were being established at \
                 once, with room for more ({} of {}), and {queue}. {}",
                before.pending,
                before.max_connecting,
                before.total,
                before.max_pool_size.map_or("any number".to_owned(), |max| max.to_string()),
                self.pending(view.mirror, now)
            )
        } else {
            format!("nothing stood in the way but {queue}.")
        }
    }

    fn slow_establishment(&self, number: u64, since: Duration) -> String {
        let usual = self
            .establishments
            .median()
            .map(|usual| format!(" (half of those before took less than {})", span(usual)));
        format!(
            "slow establishment stood in the way: connection c{number} was being made for it for \
             {}{}.",
            span(since),
            usual.unwrap_or_default()
        )
    }

    fn pending(&self, mirror: &Mirror, now: Instant) -> String {
        let mut pending: Vec<_> = mirror
            .connections
            .iter()
            .filter(|(_, connection)| connection.doing == Doing::Pending)
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

    fn holders(&self, mirror: &Mirror, now: Instant) -> String {
        let mut held: Vec<_> = mirror
            .connections
            .iter()
            .filter_map(|(number, connection)| match connection.doing {
                Doing::InUse(holder) => {
                    Some((now.saturating_since(connection.since), *number, holder))
                }
                Doing::Pending | Doing::Idle => None,
            })
            .collect();
        held.sort_unstable_by_key(|&(age, number, _)| (std::cmp::Reverse(age), number));
        let listed: Vec<_> = held
            .iter()
            .take(LISTED)
            .map(|(age, number, holder)| {
                let holder = holder.map_or("somebody".to_owned(), |id| id.to_string());
                format!("c{number} by {holder} for {}", span(*age))
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
                    " {suspect} of them look like a leak: half of all uses before took less than \
                     {usual}."
                );
            } else {
                let _ = write!(
                    text,
                    " No leak shows: half of all uses before took less than {usual}, so there was \
                     more work than connections."
                );
            }
        }
        text
    }

    /// How long things usually take, and since when the pool is paused.
    fn learn(&mut self, view: &View<'_>) {
        let now = view.pool.now();
        let connection = |number| view.mirror.connections.get(&number);
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
            | Input::Close
            | Input::Timer
            | Input::ResetAfterFork
            | Input::SetOptions { .. } => {}
        }
    }
}

/// The last few durations of a kind.
#[derive(Debug, Default)]
struct Typical(VecDeque<Duration>);

impl Typical {
    fn add(&mut self, duration: Duration) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(duration);
    }

    /// `None` as long as there are too few to say.
    fn median(&self) -> Option<Duration> {
        let mut sorted: Vec<_> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        (sorted.len() >= FEW).then(|| sorted[sorted.len() / 2])
    }
}

fn since(request: Request) -> String {
    if request.step == 0 {
        format!(" (since {}, before this trace begins)", request.started)
    } else {
        format!(" (since {}, step {})", request.started, request.step)
    }
}

/// The pending connection that was created for a request, and since when.
fn owned(mirror: &Mirror, waiter: WaiterId) -> Option<(u64, Instant)> {
    let mut pending = mirror.connections.iter().filter(|(_, connection)| {
        connection.doing == Doing::Pending && connection.creator == Some(waiter)
    });
    pending.next().map(|(number, connection)| (*number, connection.since))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

/// A use that is so many times as long as half of the others looks like a leak.
const LEAK_FACTOR: u32 = 20;
const LISTED: usize = 3;
const REMEMBERED: usize = 512;
const FEW: usize = 3;
