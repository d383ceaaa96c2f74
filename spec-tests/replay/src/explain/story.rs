//! The story of one wait: what was in the way when the request came, which connections became free and for
//! which requests, and how the wait ended.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Event, Health, Input, Instant, Snapshot, WaiterId};

use super::wait::{Counts, Obstacle};
use crate::clock::Clock;
use crate::filter::connection_of;
use crate::holders::{Activity, Request};
use crate::step_reader::View;
use crate::text::{counted, failure, grouped, paragraph, span};
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
    events: Vec<String>,
    freed: u64,
    /// When each connection that was in use at the beginning was checked in.
    returned: BTreeMap<u64, Instant>,
    end: Option<End>,
    last: Instant,
}

#[derive(Clone, Debug)]
struct Begin {
    request: Request,
    before: Snapshot,
    after: Counts,
    /// The requests before it.
    ahead: Vec<WaiterId>,
    /// The connections in use: number, holder, since when.
    held: Vec<(u64, String, Instant)>,
    /// Where in the program it asked.
    place: Option<Arc<str>>,
    /// The connection that was created for it at once.
    own: Option<u64>,
}

#[derive(Clone, Debug)]
struct End {
    at: Instant,
    step: u64,
    /// The counts before.
    counts: Counts,
    /// How many requests were still before it.
    ahead: u64,
    /// The connection that had been created for it, and when.
    own: Option<(u64, Instant)>,
    outcome: String,
    /// How it got its connection.
    how: Option<String>,
}

impl Story {
    /// The story of this request. With a server, it tells the changes of the topology during the wait.
    pub fn new(waiter: u64, clock: Clock, server: Option<ServerHistory>) -> Self {
        Self {
            server,
            waiter: WaiterId(waiter),
            clock,
            begin: None,
            events: Vec::new(),
            freed: 0,
            returned: BTreeMap::new(),
            end: None,
            last: Instant::ORIGIN,
        }
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
        if let Input::CheckedIn { id, .. } = &view.step.input
            && begin.held.iter().any(|(held, ..)| *held == id.number())
        {
            self.returned.entry(id.number()).or_insert(view.pool.now());
        }
        if self.end.is_none() {
            if view.step.number > begin.request.step {
                self.notice(view);
            }
            self.end = self.end(view);
        }
    }

    /// The story; `None` if the trace has no such request.
    pub fn tell(&self, at_most: usize) -> Option<String> {
        let begin = self.begin.as_ref()?;
        let mut text = String::new();
        paragraph(&mut text, &format!("{:<15}", self.waiter.to_string()), &self.first_line(begin));
        if self.end.as_ref().is_some_and(|end| end.step == begin.request.step) {
            let _ = writeln!(text, "the pool then  {}", begin.before);
            return Some(text);
        }
        let counts = begin.after;
        let obstacle = match begin.own {
            Some(number) => format!("connection c{number} was created for it"),
            None => format!("in the way was {}", counts.tell(counts.obstacle())),
        };
        let ahead = match begin.ahead[..] {
            [] => "no request was ahead of it".to_owned(),
            [one] => format!("1 request was ahead of it ({one})"),
            [first, .., last] => {
                let count = grouped(begin.ahead.len() as u64);
                format!("{count} requests were ahead of it ({first} to {last})")
            }
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
        let (holders, before) = (view.holders, view.before);
        let asked =
            matches!(&view.step.input, Input::CheckOutRequested { id, .. } if *id == self.waiter);
        let request = if asked {
            Request::of(view.step, before.waiting, view.pool)
        } else {
            holders.requests.get(&self.waiter).copied().filter(|it| it.step == 0)?
        };
        // Requests that own a connection have left the queue, and do not count.
        let waits = |id: &WaiterId| {
            before.waiting > 0 && (before.owners == 0 || holders.own(*id).is_none())
        };
        let ahead = holders.requests.range(..self.waiter).map(|(&id, _)| id).filter(waits);
        let held =
            holders.in_use().map(|(number, holder, it)| (number, holders.name(holder), it.since));
        let own = view.actions.iter().find_map(|action| {
            let Action::StartEstablish { id, owner, .. } = action else { return None };
            (*owner == Some(self.waiter)).then(|| id.number())
        });
        Some(Begin {
            request,
            before,
            after: Counts::of(&view.pool.snapshot(), view.pool.options()),
            ahead: ahead.collect(),
            held: held.collect(),
            place: view.step.place.clone().filter(|_| asked),
            own,
        })
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
        self.events.push(format!("{time}  {told}{given}"));
    }

    fn end(&self, view: &View<'_>) -> Option<End> {
        let outcome = view.actions.iter().find_map(|action| {
            let Action::Deliver { waiter, outcome } = action else { return None };
            (*waiter == self.waiter).then_some(outcome)
        })?;
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
        Some(End {
            at: view.pool.now(),
            step: view.step.number,
            counts: Counts::of(&view.before, view.pool.options()),
            ahead: view.holders.ahead(self.waiter),
            own: view.holders.own(self.waiter),
            outcome,
            how,
        })
    }

    fn first_line(&self, begin: &Begin) -> String {
        let (clock, Request { started, step, limit, .. }) = (&self.clock, begin.request);
        let from = match step {
            0 => "before the trace".to_owned(),
            step => format!("{}, step {step}", clock.both(started)),
        };
        let place = begin.place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
        let from = from + &place;
        let told = limit.map(|limit| format!("; its limit was {}", span(limit)));
        let told = told.unwrap_or_default();
        let Some(end) = &self.end else {
            let waited = span(self.last.saturating_since(started));
            return format!(
                "still waits at the end of the trace, after {waited}: from {from}{told}"
            );
        };
        let End { at, step: ended, outcome, .. } = end;
        if *ended == step {
            return format!("{outcome} at once: {from}");
        }
        let waited = at.saturating_since(started);
        let late = limit.and_then(|limit| waited.checked_sub(limit));
        let late = late.filter(|late| *late > NOTICEABLE && outcome == "timed out");
        let late = late.map(|late| format!(", {} after that", span(late))).unwrap_or_default();
        let (waited, until) = (span(waited), clock.both(*at));
        format!("{outcome} after {waited}: from {from}, until {until}, step {ended}{told}{late}")
    }

    fn held(&self, begin: &Begin, at_most: usize, text: &mut String) {
        if begin.held.is_empty() {
            return;
        }
        let count = counted(begin.held.len() as u64, "connection", "connections");
        let _ = writeln!(text, "in use then    {count}; the last to come back first");
        let started = begin.request.started;
        let returned = |number: u64| self.returned.get(&number).copied();
        let mut held: Vec<_> = begin.held.iter().collect();
        held.sort_by_key(|(number, _, since)| {
            let back = returned(*number);
            (back.is_some(), Reverse(back), *since)
        });
        for (number, holder, since) in held.iter().take(at_most) {
            let before = span(started.saturating_since(*since));
            let later = |at: Instant| span(at.saturating_since(started));
            let after = match returned(*number) {
                Some(at) => format!("checked in {} later", later(at)),
                None => format!("not checked in, {} later the trace ends", later(self.last)),
            };
            let name = format!("c{number}");
            let _ = writeln!(text, "  {name:<6} by {holder} for {before} already, {after}");
        }
        let more = held.len().saturating_sub(at_most);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
    }

    /// The first and the last of them.
    fn events(&self, at_most: usize, text: &mut String) {
        let freed = counted(self.freed, "connection", "connections");
        let _ = writeln!(text, "meanwhile      {freed} became free or established");
        let (all, half) = (self.events.len(), at_most / 2);
        let (begin, end) = if all > at_most { (half, all - half) } else { (all, all) };
        let between = (end > begin).then(|| format!("… {} more …", grouped((end - begin) as u64)));
        for line in self.events[..begin].iter().chain(&between).chain(&self.events[end..]) {
            let _ = writeln!(text, "  {line}");
        }
    }

    /// What changed in the topology meanwhile, or what the wait follows.
    fn topology(&self, begin: &Begin, at_most: usize, text: &mut String) {
        let Some(server) = &self.server else { return };
        let started = begin.request.started;
        let end = self.end.as_ref().map_or(self.last, |end| end.at);
        let changes: Vec<_> = server.between(started, end).collect();
        for change in changes.iter().take(at_most) {
            let told = format!("{} at {}", change, self.clock.short(change.at));
            paragraph(text, "topology       ", &told);
        }
        if changes.is_empty()
            && let Some(reason) = server.before_wait(started, end)
        {
            let before = span(started.saturating_since(reason.at));
            let told = format!("{}, {before} before it came", reason.text);
            paragraph(text, "topology       ", &told);
        }
    }

    fn outcome(&self, text: &mut String) {
        let Some(End { at, counts, ahead, own, outcome, how, .. }) = &self.end else {
            let _ = writeln!(text, "in the end     the trace ends");
            return;
        };
        let how = how.as_ref().map(|how| format!("{how}, and ")).unwrap_or_default();
        let ahead = match ahead {
            0 => "no request was".to_owned(),
            count => counted(*count, "request was", "requests were"),
        };
        let way = match (own, counts.obstacle()) {
            (Some((number, since)), _) => format!(
                "; connection c{number} had been created for it {} before",
                span(at.saturating_since(*since))
            ),
            (None, Obstacle::Queue) => String::new(),
            (None, obstacle) => format!("; until then {}", counts.tell(obstacle)),
        };
        let told = format!("{how}it {outcome}; {ahead} still ahead of it{way}");
        paragraph(text, "in the end     ", &told);
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

/// A timer that is later than this is worth a word.
const NOTICEABLE: Duration = Duration::from_millis(2);
