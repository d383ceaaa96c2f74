//! The story of one wait: what was in the way when the request came, which connections became free and for
//! which requests, and how the wait ended.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Event, Health, Input, Instant, Snapshot, WaiterId};

use super::paragraph;
use super::wait::{Counts, Obstacle, limit};
use crate::clock::Clock;
use crate::filter::connection_of;
use crate::holders::Activity;
use crate::step_reader::View;
use crate::text::{counted, failure, grouped, span};
use crate::topology::ServerHistory;

/// Follows one request through a replay.
#[derive(Clone, Debug)]
pub struct Story {
    /// What became of the server of the pool, if that is known.
    server: Option<ServerHistory>,
    waiter: WaiterId,
    clock: Clock,
    begin: Option<Begin>,
    /// Connections that became free, and other events, while it waited.
    events: Ends<String>,
    freed: u64,
    /// When each connection that was in use at the beginning was checked in.
    returned: BTreeMap<u64, Instant>,
    end: Option<End>,
    /// The connection that was created for it, and when.
    own: Option<(u64, Instant)>,
    last: Instant,
}

#[derive(Clone, Debug)]
struct Begin {
    at: Instant,
    step: u64,
    limit: Option<Duration>,
    before: Snapshot,
    after: Counts,
    /// The first and the last of the requests before it, and their number.
    ahead: Option<(WaiterId, WaiterId, u64)>,
    /// The connections in use: number, holder, since when.
    held: Vec<(u64, String, Instant)>,
    /// Where in the program it asked.
    place: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
struct End {
    at: Instant,
    step: u64,
    /// The counts before.
    counts: Counts,
    /// How many requests were still before it.
    ahead: u64,
    outcome: String,
    /// How it got its connection.
    how: Option<String>,
}

impl Story {
    /// The story of this request.
    pub fn new(waiter: u64, clock: Clock) -> Self {
        Self {
            server: None,
            waiter: WaiterId(waiter),
            clock,
            begin: None,
            events: Ends::default(),
            freed: 0,
            returned: BTreeMap::new(),
            end: None,
            own: None,
            last: Instant::ORIGIN,
        }
    }

    /// With the changes of the topology during the wait.
    #[must_use]
    pub fn following(self, server: Option<ServerHistory>) -> Self {
        Self { server, ..self }
    }

    /// Takes a step.
    pub fn add(&mut self, view: &View<'_>) {
        self.last = view.pool.now();
        if view.step.refused || self.end.is_some() && self.has_all_returns() {
            return;
        }
        if self.begin.is_none() {
            self.begin = self.begin(view);
        }
        let Some(begin) = &self.begin else { return };
        let is_held = |number: u64| begin.held.iter().any(|(held, ..)| *held == number);
        if let Input::CheckedIn { id, .. } = &view.step.input {
            if is_held(id.number()) {
                self.returned.entry(id.number()).or_insert(view.pool.now());
            }
        }
        if self.end.is_none() {
            if view.step.number > begin.step {
                self.notice(view);
            }
            for action in view.actions {
                if let Action::StartEstablish { id, owner: Some(owner), .. } = action {
                    if *owner == self.waiter {
                        self.own = Some((id.number(), view.pool.now()));
                    }
                }
            }
            self.end = self.end(view);
        }
    }

    /// The story; `None` if the trace has no such request.
    pub fn tell(&self, at_most: usize) -> Option<String> {
        let begin = self.begin.as_ref()?;
        let mut text = String::new();
        paragraph(&mut text, &format!("{:<15}", self.waiter.to_string()), &self.first_line(begin));
        if self.end.as_ref().is_some_and(|end| end.step == begin.step) {
            let _ = writeln!(text, "the pool then  {}", begin.before);
            return Some(text);
        }
        let counts = begin.after;
        let obstacle = match self.own {
            Some((number, since)) if since == begin.at => {
                format!("connection c{number} was created for it")
            }
            Some(_) | None => format!("in the way was {}", counts.tell(counts.obstacle())),
        };
        let ahead = match begin.ahead {
            Some((first, last, count)) if count > 1 => {
                format!("{} requests were ahead of it ({first} to {last})", grouped(count))
            }
            Some((first, ..)) => format!("1 request was ahead of it ({first})"),
            None => "no request was ahead of it".to_owned(),
        };
        paragraph(&mut text, "when it came   ", &format!("{obstacle}; {ahead}"));
        self.held(begin, at_most, &mut text);
        self.events(at_most, &mut text);
        self.topology(begin, at_most, &mut text);
        self.outcome(&mut text);
        Some(text)
    }

    fn has_all_returns(&self) -> bool {
        self.begin.as_ref().is_some_and(|begin| self.returned.len() == begin.held.len())
    }

    fn begin(&self, view: &View<'_>) -> Option<Begin> {
        let now = view.pool.now();
        let asked =
            matches!(&view.step.input, Input::CheckOutRequested { id, .. } if *id == self.waiter);
        let (at, step, limit) = if asked {
            (now, view.step.number, limit(view))
        } else {
            let before = view.holders.requests.get(&self.waiter).filter(|it| it.step == 0)?;
            (before.started, 0, None)
        };
        // Requests that own a connection have left the queue, and do not count.
        let is_owner = |id: WaiterId| {
            let mut connections = view.holders.connections.values();
            connections.any(|it| it.activity == Activity::Pending && it.creator == Some(id))
        };
        let mut ahead = None;
        if view.before.waiting > 0 {
            for &id in view.holders.requests.keys().filter(|&&id| id < self.waiter) {
                if view.before.owners > 0 && is_owner(id) {
                    continue;
                }
                let (first, count) = ahead.map_or((id, 0), |(first, _, count)| (first, count));
                ahead = Some((first, id, count + 1));
            }
        }
        let held = view.holders.connections.iter().filter_map(|(&number, connection)| {
            match connection.activity {
                Activity::InUse(holder) => {
                    Some((number, view.holders.name(holder), connection.since))
                }
                Activity::Pending | Activity::Idle | Activity::Draining(_) => None,
            }
        });
        let after = Counts::of(&view.pool.snapshot(), view.pool.options());
        let before = view.before;
        let place = view.step.place.clone().filter(|_| asked);
        Some(Begin { at, step, limit, before, after, ahead, held: held.collect(), place })
    }

    /// Notes what made a connection free, or made the wait longer.
    fn notice(&mut self, view: &View<'_>) {
        let Some(told) = told(view) else { return };
        let mut given = None;
        for action in view.actions {
            if let Action::Deliver { waiter, outcome: Ok((id, ())) } = action {
                given = (*waiter != self.waiter).then(|| format!("{id} to {waiter}"));
            } else if let Action::EmitEvent(Event::ConnectionClosed {
                connection_id, reason, ..
            }) = action
            {
                given = Some(format!("c{connection_id} closed ({})", reason.as_str()));
            } else if let Action::StartEstablish { id, owner: Some(owner), .. } = action {
                let more = format!("{id} created for {owner}");
                given = Some(given.map_or(more.clone(), |given| format!("{given}, {more}")));
            }
        }
        let is_free =
            matches!(view.step.input, Input::CheckedIn { .. } | Input::EstablishSucceeded { .. });
        self.freed += u64::from(is_free);
        let time = self.clock.short(view.pool.now());
        let given = given.map(|given| format!("; {given}")).unwrap_or_default();
        self.events.add(format!("{time}  {told}{given}"));
    }

    fn end(&self, view: &View<'_>) -> Option<End> {
        let mut outcomes = view.actions.iter().filter_map(|action| {
            let Action::Deliver { waiter, outcome } = action else { return None };
            (*waiter == self.waiter).then_some(outcome)
        });
        let outcome = outcomes.next()?;
        let ahead = view.holders.requests.keys().filter(|&&id| id < self.waiter).count() as u64;
        let how = if let Input::CheckedIn { id, .. } = &view.step.input {
            Some(format!("{id} was checked in"))
        } else if let Input::EstablishSucceeded { id, .. } = &view.step.input {
            Some(format!("{id} was established"))
        } else if let Input::DrainSucceeded { id, .. } = &view.step.input {
            Some(format!("{id} got its late reply"))
        } else {
            None
        };
        let outcome = match outcome {
            Ok((id, ())) => format!("got {id}"),
            Err(error @ CheckOutError::WaitQueueTimeout { .. }) => failure(error),
            Err(error) => format!("failed: {}", failure(error)),
        };
        let (at, step) = (view.pool.now(), view.step.number);
        Some(End {
            at,
            step,
            counts: Counts::of(&view.before, view.pool.options()),
            ahead,
            outcome,
            how,
        })
    }

    fn first_line(&self, begin: &Begin) -> String {
        let clock = &self.clock;
        let from = match begin.step {
            0 => "before the trace".to_owned(),
            step => format!("{}, step {step}", clock.both(begin.at)),
        };
        let place = begin.place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
        let from = from + &place;
        let limit = begin.limit.map(|limit| format!("; its limit was {}", span(limit)));
        let limit = limit.unwrap_or_default();
        match &self.end {
            Some(end) if end.step == begin.step => {
                format!("{} at once: {from}", end.outcome)
            }
            Some(end) => {
                let waited = end.at.saturating_since(begin.at);
                let late = begin.limit.and_then(|limit| waited.checked_sub(limit));
                let late = late.filter(|late| *late > NOTICEABLE && end.outcome == "timed out");
                let late = late.map(|late| format!(", {} after that", span(late)));
                format!(
                    "{} after {}: from {from}, until {}, step {}{limit}{}",
                    end.outcome,
                    span(waited),
                    clock.both(end.at),
                    end.step,
                    late.unwrap_or_default()
                )
            }
            None => {
                let waited = span(self.last.saturating_since(begin.at));
                format!("still waits at the end of the trace, after {waited}: from {from}{limit}")
            }
        }
    }

    fn held(&self, begin: &Begin, at_most: usize, text: &mut String) {
        if begin.held.is_empty() {
            return;
        }
        let count = counted(begin.held.len() as u64, "connection", "connections");
        let _ = writeln!(text, "in use then    {count}; the last to come back first");
        let mut held = begin.held.clone();
        let returned = |number: u64| self.returned.get(&number).copied();
        held.sort_by_key(|(number, _, since)| {
            let back = returned(*number);
            (back.is_some(), std::cmp::Reverse(back), *since)
        });
        for (number, holder, since) in held.iter().take(at_most) {
            let before = span(begin.at.saturating_since(*since));
            let after = match returned(*number) {
                Some(at) => {
                    format!("checked in {} later", span(at.saturating_since(begin.at)))
                }
                None => format!(
                    "not checked in, {} later the trace ends",
                    span(self.last.saturating_since(begin.at))
                ),
            };
            let name = format!("c{number}");
            let _ = writeln!(text, "  {name:<6} by {holder} for {before} already, {after}");
        }
        let more = held.len().saturating_sub(at_most);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
    }

    fn events(&self, at_most: usize, text: &mut String) {
        let freed = counted(self.freed, "connection", "connections");
        let _ = writeln!(text, "meanwhile      {freed} became free or established");
        for line in self.events.lines(at_most) {
            let _ = writeln!(text, "  {line}");
        }
    }

    /// What changed in the topology meanwhile, or what the wait follows.
    fn topology(&self, begin: &Begin, at_most: usize, text: &mut String) {
        let Some(server) = &self.server else { return };
        let end = self.end.as_ref().map_or(self.last, |end| end.at);
        let changes: Vec<_> = server.between(begin.at, end).collect();
        for change in changes.iter().take(at_most) {
            let told = format!("{} at {}", change, self.clock.short(change.at));
            paragraph(text, "topology       ", &told);
        }
        if changes.is_empty() {
            if let Some(reason) = server.before_wait(begin.at, end) {
                let before = span(begin.at.saturating_since(reason.at));
                let told = format!("{}, {before} before it came", reason.text);
                paragraph(text, "topology       ", &told);
            }
        }
    }

    fn outcome(&self, text: &mut String) {
        let Some(end) = &self.end else {
            let _ = writeln!(text, "in the end     the trace ends");
            return;
        };
        let how = match &end.how {
            Some(how) => format!("{how}, and it {}", end.outcome),
            None => format!("it {}", end.outcome),
        };
        let ahead = match end.ahead {
            0 => "no request was".to_owned(),
            count => counted(count, "request was", "requests were"),
        };
        let way = match (self.own, end.counts.obstacle()) {
            (Some((number, since)), _) => format!(
                "; connection c{number} had been created for it {} before",
                span(end.at.saturating_since(since))
            ),
            (None, Obstacle::Queue) => String::new(),
            (None, obstacle) => format!("; until then {}", end.counts.tell(obstacle)),
        };
        paragraph(text, "in the end     ", &format!("{how}; {ahead} still ahead of it{way}"));
    }
}

/// An input that matters to requests that wait.
fn told(view: &View<'_>) -> Option<String> {
    let now = view.pool.now();
    let number = connection_of(&view.step.input);
    let known = number.and_then(|number| view.holders.connections.get(&number));
    let time = known.map(|it| span(now.saturating_since(it.since))).unwrap_or_default();
    if let Input::CheckedIn { id, health, .. } = &view.step.input {
        let holder = match known.map(|it| it.activity) {
            Some(Activity::InUse(holder)) => view.holders.name(holder),
            Some(_) | None => view.holders.name(None),
        };
        let errored = if matches!(health, Health::Healthy) { "" } else { " with an error" };
        Some(format!("{id} checked in by {holder} after {time}{errored}"))
    } else if let Input::EstablishSucceeded { id, .. } = &view.step.input {
        Some(format!("{id} established in {time}"))
    } else if let Input::EstablishFailed { id, cause, .. } = &view.step.input {
        Some(format!("{id} not established: {cause}"))
    } else if let Input::Clear { cause, .. } = &view.step.input {
        Some(format!("the pool was cleared: {cause}"))
    } else {
        None
    }
}

/// The first and the last of many.
#[derive(Clone, Debug)]
struct Ends<T> {
    first: Vec<T>,
    last: std::collections::VecDeque<T>,
    count: u64,
}

impl<T> Default for Ends<T> {
    fn default() -> Self {
        Self { first: Vec::new(), last: std::collections::VecDeque::new(), count: 0 }
    }
}

impl<T> Ends<T> {
    fn add(&mut self, item: T) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(item);
            return;
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(item);
    }
}

impl Ends<String> {
    /// At most twice so many lines, and one about those between.
    fn lines(&self, at_most: usize) -> Vec<String> {
        let half = at_most / 2;
        let all: Vec<&String> = self.first.iter().chain(&self.last).collect();
        let kept_all = self.count as usize == all.len();
        if kept_all && all.len() <= at_most {
            return all.into_iter().cloned().collect();
        }
        let (begin, end) = (half.min(all.len()), all.len().saturating_sub(half));
        let between = self.count - (begin + all.len() - end.max(begin)) as u64;
        let mut lines: Vec<String> = all[..begin].iter().map(|&line| line.clone()).collect();
        lines.push(format!("… {} more …", grouped(between)));
        lines.extend(all[end.max(begin)..].iter().map(|&line| line.clone()));
        lines
    }
}

/// How many lines of each end are kept.
const KEPT: usize = 500;
/// A timer that is later than this is worth a word.
const NOTICEABLE: Duration = Duration::from_millis(2);
