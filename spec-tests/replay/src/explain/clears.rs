//! What each clear did.

use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Event, Input, Instant, WaiterId};
use cenote_core::trace::Cause;

use super::list;
use super::wait::Counts;
use crate::clock::Clock;
use crate::holders::Activity;
use crate::step_reader::View;
use crate::text::{counted, grouped, paragraph, span};
use crate::topology::Reason;

/// The clears of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Clears {
    pub(super) all: Vec<Clear>,
    /// How many there were before those that are counted.
    before: u64,
}

/// A clear and what followed from it, until the next one.
#[derive(Clone, Debug)]
pub(super) struct Clear {
    pub(super) number: u64,
    pub(super) at: Instant,
    pub(super) step: u64,
    pub(super) cause: String,
    pub(super) interrupts: bool,
    pub(super) service: Option<String>,
    /// The counts before it.
    total: u32,
    in_use: u32,
    pending: u32,
    /// The number of the last connection before it.
    last_connection: u64,
    /// Requests that failed because of it, and how long they had waited.
    pub(super) cleared: Few<(WaiterId, Duration)>,
    /// Requests that failed since, because the pool was paused.
    pub(super) refused: u64,
    /// Connections, their holders, and for how long they were in use.
    pub(super) interrupted: Few<(u64, Option<WaiterId>, Duration)>,
    /// Connections of the time before it that were closed, and when.
    pub(super) closed: Few<(u64, Instant)>,
    /// When the pool became ready again.
    pub(super) ready: Option<Instant>,
    /// Connections that were established since the pool became ready.
    pub(super) established: u64,
    /// The change of the topology that it follows, if that is known.
    pub(super) because: Option<Reason>,
    /// The step of the client that it follows.
    pub(super) follows: Option<u64>,
}

/// The first of many, and their number.
#[derive(Clone, Debug)]
pub(super) struct Few<T> {
    first: Vec<T>,
    pub(super) count: u64,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: Vec::new(), count: 0 }
    }
}

impl<T> Few<T> {
    pub(super) fn add(&mut self, item: T) {
        self.count += 1;
        if self.first.len() < FEW {
            self.first.push(item);
        }
    }
}

impl Clears {
    /// Takes a step. Earlier clears than the first that `counts` are only numbered.
    pub(super) fn add(&mut self, view: &View<'_>, counts: bool) {
        let is_cleared = |action: &Action<_>| {
            matches!(action, Action::EmitEvent(Event::ConnectionPoolCleared { .. }))
        };
        if view.actions.iter().any(is_cleared) {
            if counts {
                let number = self.before + self.all.len() as u64 + 1;
                self.all.push(Clear::of(view, number));
            } else {
                self.before += 1;
            }
        }
        if let Some(clear) = self.all.last_mut() {
            clear.take(view);
        }
    }

    /// The counts of each, one per line.
    pub(super) fn table(&self, clock: &Clock, at_most: usize) -> String {
        let count = self.all.len() as u64;
        if count == 0 {
            return "the pool was never cleared\n".to_owned();
        }
        let mut text = format!("the pool was cleared {}\n", counted(count, "time", "times"));
        for clear in self.all.iter().take(at_most) {
            let _ = writeln!(text, "  --clear {:<3} {}", clear.number, clear.line(clock));
        }
        let more = self.all.len().saturating_sub(at_most);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more: --clear N explains one");
        }
        text
    }

    /// All about the clear of this number.
    pub(super) fn one(&self, number: u64, clock: &Clock) -> Option<String> {
        let clear = self.all.iter().find(|clear| clear.number == number)?;
        Some(clear.tell(clock))
    }
}

impl Clear {
    fn of(view: &View<'_>, number: u64) -> Self {
        let (cause, interrupts, service) =
            if let Input::Clear { cause, interrupt, service } = &view.step.input {
                (cause.to_string(), *interrupt, service.map(|service| service.to_string()))
            } else {
                (view.step.input.name().to_owned(), false, None)
            };
        let (at, step) = (view.pool.now(), view.step.number);
        let counts = Counts::of(&view.before, view.pool.options());
        let last = view.before.connections_created;
        let clear = Self::new(number, (at, step), cause, counts, last);
        Self { interrupts, service, follows: view.step.follows, ..clear }
    }

    /// Of a pool with these counts, whose last connection has this number.
    pub(super) fn new(
        number: u64,
        (at, step): (Instant, u64),
        cause: String,
        counts: Counts,
        last_connection: u64,
    ) -> Self {
        let Counts { total, in_use, pending, .. } = counts;
        Self {
            number,
            at,
            step,
            cause,
            interrupts: false,
            service: None,
            total,
            in_use,
            pending,
            last_connection,
            cleared: Few::default(),
            refused: 0,
            interrupted: Few::default(),
            closed: Few::default(),
            ready: None,
            established: 0,
            because: None,
            follows: None,
        }
    }

    fn take(&mut self, view: &View<'_>) {
        let now = view.pool.now();
        for action in view.actions {
            if let Action::Deliver { waiter, outcome: Err(CheckOutError::PoolCleared { .. }) } =
                action
            {
                match view.holders.requests.get(waiter) {
                    Some(request) => {
                        self.cleared.add((*waiter, now.saturating_since(request.started)));
                    }
                    None => self.refused += 1,
                }
            } else if let Action::Interrupt { id } = action {
                let held = view.holders.connections.get(&id.number());
                let (holder, since) = match held.map(|held| (held.activity, held.since)) {
                    Some((Activity::InUse(holder), since)) => (holder, since),
                    Some(_) | None => (None, now),
                };
                self.interrupted.add((id.number(), holder, now.saturating_since(since)));
            } else if let Action::EmitEvent(event) = action {
                self.hear(event, now);
            }
        }
    }

    fn hear(&mut self, event: &Event<Cause>, now: Instant) {
        if let Event::ConnectionClosed { connection_id, .. } = event {
            self.close(*connection_id, now);
        } else if let Event::ConnectionPoolReady = event {
            self.ready.get_or_insert(now);
        } else if let Event::ConnectionReady { .. } = event {
            self.establish();
        }
    }

    /// A connection was closed.
    pub(super) fn close(&mut self, connection: u64, now: Instant) {
        if connection <= self.last_connection {
            self.closed.add((connection, now));
        }
    }

    /// A connection was established.
    pub(super) fn establish(&mut self) {
        self.established += u64::from(self.ready.is_some() || self.service.is_some());
    }

    /// How many requests failed because of it.
    pub(super) const fn failed(&self) -> u64 {
        self.cleared.count + self.refused
    }

    /// Its counts in one line.
    fn line(&self, clock: &Clock) -> String {
        let ready = match (self.ready, &self.service) {
            (Some(ready), _) => format!("ready after {}", span(ready.saturating_since(self.at))),
            (None, Some(_)) => "of one service".to_owned(),
            (None, None) => "not ready again".to_owned(),
        };
        format!(
            "{}  {}, {}, {} closed, {ready} ({}){}",
            clock.short(self.at),
            counted(self.failed(), "request failed", "requests failed"),
            if self.interrupts {
                counted(self.interrupted.count, "operation interrupted", "operations interrupted")
            } else {
                "none interrupted".to_owned()
            },
            grouped(self.closed.count),
            self.cause,
            self.because()
        )
    }

    /// In a few words, for behind the cause.
    pub(super) fn because(&self) -> String {
        let because = self.because.as_ref().map(|it| format!(", because {}", it.brief));
        because.unwrap_or_default()
    }

    fn tell(&self, clock: &Clock) -> String {
        let mut text = String::new();
        let service = self.service.as_ref().map(|id| format!(" of service {id}"));
        let service = service.unwrap_or_default();
        let (at, step) = (clock.both(self.at), self.step);
        paragraph(
            &mut text,
            &format!("clear {:<8}", self.number),
            &format!("at {at}, step {step}{service}: {}", self.cause),
        );
        if let Some(Reason { at, text: because, .. }) = &self.because {
            paragraph(&mut text, "because       ", &format!("{because}, at {}", clock.both(*at)));
        }
        let connections = counted(self.total.into(), "connection", "connections");
        let Self { in_use, pending, .. } = self;
        let before = format!("{connections}, {in_use} in use, {pending} being established");
        paragraph(&mut text, "before it     ", &before);
        paragraph(&mut text, "requests      ", &self.requests());
        paragraph(&mut text, "operations    ", &self.operations());
        paragraph(&mut text, "connections   ", &self.connections());
        let ready = match self.ready {
            Some(ready) => format!(
                "at {}, after {}; {} established since",
                clock.both(ready),
                span(ready.saturating_since(self.at)),
                counted(self.established, "connection was", "connections were")
            ),
            None if self.service.is_some() => "at once: a service does not pause".to_owned(),
            None => "not before the next clear or the end of the trace".to_owned(),
        };
        paragraph(&mut text, "ready again   ", &ready);
        text
    }

    fn requests(&self) -> String {
        let Few { first, count } = &self.cleared;
        let cleared =
            first.iter().map(|(waiter, waited)| format!("{waiter} after {}", span(*waited)));
        format!(
            "{} failed that waited{}; {} failed at once since then, because the pool was paused",
            grouped(*count),
            list(cleared, *count),
            grouped(self.refused)
        )
    }

    fn operations(&self) -> String {
        let Few { first, count } = &self.interrupted;
        let interrupted = first.iter().map(|(number, holder, held)| {
            let holder = holder.map(|holder| format!(" of {holder}")).unwrap_or_default();
            format!("c{number}{holder} after {}", span(*held))
        });
        format!("{} interrupted{}", grouped(*count), list(interrupted, *count))
    }

    fn connections(&self) -> String {
        let Few { first, count } = &self.closed;
        let closed = first.iter().map(|(number, at)| match at.saturating_since(self.at) {
            Duration::ZERO => format!("c{number} at once"),
            later => format!("c{number} after {}", span(later)),
        });
        format!("{} closed{}", grouped(*count), list(closed, *count))
    }
}

/// How many requests or connections a clear lists.
const FEW: usize = 5;
