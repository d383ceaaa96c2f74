//! What a trace tells about callers and their server.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use cenote_core::pool::{
    Action, CheckOutError, ConnId, ConnectionState, Health, Input, Instant, PoolOptions, PoolState,
    Purpose, ServiceId, Status, WaiterId,
};
use cenote_core::trace::{TraceError, Traced};

use super::followers::{self, Followers};
use super::outcome::{Outcome, Tally};
use super::run::{Clear, Event, FailedOpening, Opening, Use, Warm};
use super::stalls::Stalls;
use crate::clock::{Clock, UtcOffset};
use crate::explain::{Analysis, Findings};
use crate::holders::Activity;
use crate::step_reader::{StepReader, View};

/// The requests of a trace with their uses, its establishments, and what else happened to the pool.
#[derive(Clone, Debug)]
pub struct Workload {
    pub(super) source: Source,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) options: PoolOptions,
    pub(crate) warm: Warm,
    /// In the order in which they were made; first those that hold a connection at the start.
    pub(crate) requests: Vec<Request>,
    /// In the order in which they began.
    pub(crate) openings: Vec<(Instant, Opening)>,
    pub(crate) events: Vec<(Instant, Event)>,
    pub(crate) clears: Vec<Clear>,
    pub(super) recorded: Outcome,
    /// How many connections look leaked at the end.
    pub(super) leaked: usize,
    /// Of how many requests the events do not tell the end, although later ones were served.
    pub(super) unended: u64,
    /// Those that have been held for this long, if any; and the part of the uses that leaked.
    pub(super) leaks: Option<(Duration, f64)>,
    pub(super) stalls: Stalls,
    pub(super) retries: Followers,
    /// Of requests that were made during a use and ended with it, the request of that use.
    pub(super) nested: Followers,
    /// What passes at least between two ends.
    pub(super) tick: Duration,
    pub(super) lost: bool,
}

/// Where a workload is from.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// The address of the pool's server, if it is known.
    pub(super) address: Option<String>,
    /// Milliseconds since 1970 at [`Instant::ORIGIN`]; 0 if that is unknown.
    pub(super) origin: i64,
    /// How many other pools the events tell of.
    pub(super) others: usize,
}

/// A request of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) asked: Instant,
    /// The caller's deadline.
    pub(crate) limit: Option<Duration>,
    pub(crate) purpose: Purpose,
    /// How long it waited for its outcome; at least, if it has none.
    pub(crate) wait: Duration,
    pub(crate) fate: Fate,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It was served, and its connection was checked in.
    Served(Use),
    /// It was served, and held its connection at the end, for this long so far.
    Held(Duration),
    /// Its caller cancelled.
    Cancelled,
    /// It failed otherwise.
    Failed,
    /// It was waiting at the end.
    Waiting,
}

impl Request {
    /// When it was served or failed; the end of the trace if neither happened.
    pub(crate) fn answered(&self) -> Instant {
        self.asked + self.wait
    }

    /// When its caller could make the next one; `None` if that was not before the end.
    pub(crate) fn ended(&self) -> Option<Instant> {
        match &self.fate {
            Fate::Served(used) => used.lasts.map(|lasts| self.answered() + lasts),
            Fate::Cancelled | Fate::Failed => Some(self.answered()),
            Fate::Held(_) | Fate::Waiting => None,
        }
    }

    /// How long it had held its connection at the end, if it held one then.
    fn held(&self) -> Option<Duration> {
        match self.fate {
            Fate::Held(so_far) => Some(so_far),
            Fate::Served(_) | Fate::Cancelled | Fate::Failed | Fate::Waiting => None,
        }
    }

    pub(crate) fn was_served(&self) -> bool {
        matches!(self.fate, Fate::Served(_) | Fate::Held(_))
    }
}

impl Workload {
    /// Reads a trace, from its last gap on if it has gaps. Also returns the error that ends it early, if there is one.
    ///
    /// # Errors
    ///
    /// If the beginning of the trace is invalid.
    pub fn read(source: impl Read) -> Result<(Self, Option<TraceError>), TraceError> {
        let mut steps = StepReader::new(source)?;
        let header = steps.header();
        let (start, is_new) = (header.start, header.is_new);
        let source = Source { address: header.address.clone(), origin: header.origin, others: 0 };
        let mut reader = WorkloadReader::new(source, steps.pool(), start, is_new);
        let clock = Clock::new(steps.header(), UtcOffset::default());
        let mut analysis = Analysis::new(0);
        let each = steps.each(|view| {
            analysis.add(view, true);
            reader.add(view)
        });
        let findings = Findings::new(analysis, &steps, clock, None, None);
        let leaked = findings.leaked().count();
        Ok((Self { leaked, ..reader.finish() }.examined(), each.err()))
    }

    /// With the leaks and the stalls that it shows.
    pub(super) fn examined(mut self) -> Self {
        let served = self.requests.iter().filter(|request| request.was_served()).count();
        let mut held: Vec<_> = self.requests.iter().filter_map(Request::held).collect();
        held.sort_unstable_by_key(|&held| Reverse(held));
        let least = self.leaked.checked_sub(1).and_then(|last| held.get(last));
        self.leaks = least.map(|&least| (least, self.leaked as f64 / served as f64));
        self.stalls = Stalls::of(&self.requests, (self.start, self.end));
        self.retries = followers::retries(&self.requests, &self.stalls);
        self.tick = followers::tick(self.requests.iter().filter_map(Request::ended));
        if self.tick <= followers::SLOWEST {
            self.nested = followers::nested(&self.requests, &self.stalls);
        }
        self
    }

    /// The address of the pool's server, if it is known.
    pub fn address(&self) -> Option<&str> {
        self.source.address.as_deref()
    }

    /// How many other pools its events tell of, which have fewer requests.
    pub const fn others(&self) -> usize {
        self.source.others
    }

    /// The options of the pool when the trace begins.
    pub const fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// What became of the requests in the trace.
    pub const fn recorded(&self) -> &Outcome {
        &self.recorded
    }

    /// How many connections look leaked when the trace ends.
    pub const fn leaked(&self) -> usize {
        self.leaked
    }

    /// The time from the beginning to the end.
    pub fn duration(&self) -> Duration {
        self.end.saturating_since(self.start)
    }

    /// Whether the trace has gaps, and only what follows the last one counts.
    pub const fn has_gaps(&self) -> bool {
        self.lost
    }

    /// Whether the trace shows how long it takes to establish a connection.
    pub fn has_openings(&self) -> bool {
        !self.openings.is_empty()
    }

    /// The requests that count: those that did not hold a connection when the trace began.
    pub(crate) fn counted(&self) -> &[Request] {
        &self.requests[self.warm.held.len()..]
    }

    /// The uses that ended, with their requests' numbers.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (u32, Duration)> {
        let numbered = (0..).zip(&self.requests);
        numbered.filter_map(|(number, request)| match &request.fate {
            Fate::Served(used) => Some((number, used.lasts?)),
            Fate::Held(_) | Fate::Cancelled | Fate::Failed | Fate::Waiting => None,
        })
    }

    /// The part with the most requests of that length, as if the trace began and ended there; everything if the trace is
    /// not longer.
    pub fn busiest(&self, length: Duration) -> Self {
        if self.duration() <= length {
            return self.clone();
        }
        let asked: Vec<_> = self.counted().iter().map(|request| request.asked).collect();
        let within = |&from: &Instant| {
            let (first, last) = (from, from + length);
            asked.partition_point(|&at| at < last) - asked.partition_point(|&at| at < first)
        };
        let latest = Instant::from_nanos(self.end.as_nanos() - length.as_nanos() as u64);
        let begins = asked.iter().copied().take_while(|&at| at <= latest);
        let mut busiest = self.start;
        for from in begins {
            if within(&from) > within(&busiest) {
                busiest = from;
            }
        }
        self.part(busiest, busiest + length)
    }

    /// As if the trace began and ended then. The pool is warm, as far as it was when the part begins.
    fn part(&self, start: Instant, end: Instant) -> Self {
        let mut held = Vec::new();
        let mut rest = Vec::new();
        for request in &self.requests {
            if request.asked >= end || request.ended().is_some_and(|at| at <= start) {
                continue;
            }
            let mut request = request.clone();
            if request.asked < start {
                let is_held = request.was_served() && request.answered() <= start;
                request.begin_at(start);
                if is_held { held.push(request) } else { rest.push(request) }
            } else {
                rest.push(request);
            }
        }
        let opened = self.openings.iter().filter(|(at, _)| *at < start).count() as u32;
        let before = self.warm.held.len() as u32 + self.warm.idle + opened;
        let most = self.options.max_pool_size.unwrap_or(PoolOptions::DEFAULT_MAX_POOL_SIZE);
        let before = if most == 0 { before } else { before.min(most) };
        let warm = Warm {
            is_ready: true,
            idle: before.saturating_sub(held.len() as u32),
            held: (0..held.len() as u32).collect(),
        };
        held.append(&mut rest);
        Self {
            start,
            end,
            warm,
            requests: held,
            openings: self.openings.clone(),
            events: self
                .events
                .iter()
                .filter(|(at, _)| (start..end).contains(at))
                .cloned()
                .collect(),
            ..self.clone()
        }
        .examined()
    }
}

impl Request {
    /// What is left of it at a time during its wait or its use.
    fn begin_at(&mut self, start: Instant) {
        let passed = start.saturating_since(self.asked);
        self.limit = self.limit.map(|limit| limit.saturating_sub(passed));
        let used_before = passed.saturating_sub(self.wait);
        match &mut self.fate {
            Fate::Served(used) => {
                used.lasts = used.lasts.map(|lasts| lasts.saturating_sub(used_before));
            }
            Fate::Held(so_far) => *so_far = so_far.saturating_sub(used_before),
            Fate::Cancelled | Fate::Failed | Fate::Waiting => {}
        }
        self.wait = self.wait.saturating_sub(passed);
        self.asked = start;
    }
}

/// Reads a workload, step by step.
struct WorkloadReader {
    workload: Workload,
    tally: Tally,
    /// Requests without an outcome.
    waiting: BTreeMap<WaiterId, u32>,
    in_use: BTreeMap<ConnId, u32>,
    /// Of connections that are being established.
    services: BTreeMap<ConnId, ServiceId>,
    /// The number of the clear that the input before was.
    just_cleared: Option<u32>,
    /// Clears after which the pool has not been ready, and their times.
    not_ready_since: Vec<(u32, Instant)>,
    has_ended: bool,
}

impl WorkloadReader {
    fn new(source: Source, pool: &PoolState<Traced>, start: Instant, is_new: bool) -> Self {
        let workload = Workload {
            source,
            start,
            end: start,
            options: pool.options().clone(),
            warm: Warm::default(),
            requests: Vec::new(),
            openings: Vec::new(),
            events: Vec::new(),
            clears: Vec::new(),
            recorded: Outcome::default(),
            leaked: 0,
            unended: 0,
            leaks: None,
            stalls: Stalls::default(),
            retries: Followers::new(),
            nested: Followers::new(),
            tick: Duration::ZERO,
            lost: false,
        };
        let mut reader = Self {
            workload,
            tally: Tally::new(start, pool.snapshot().into()),
            waiting: BTreeMap::new(),
            in_use: BTreeMap::new(),
            services: BTreeMap::new(),
            just_cleared: None,
            not_ready_since: Vec::new(),
            has_ended: false,
        };
        if !is_new {
            reader.begin_within(pool);
        }
        reader
    }

    /// The state of a pool that has been in use.
    fn begin_within(&mut self, pool: &PoolState<Traced>) {
        let start = self.workload.start;
        for connection in pool.connections() {
            match connection.state {
                ConnectionState::InUse { purpose, .. } => {
                    let number = self.add_request(start, None, purpose);
                    self.workload.requests[number as usize].fate = Fate::Held(Duration::ZERO);
                    self.workload.warm.held.push(number);
                    self.in_use.insert(connection.id, number);
                }
                ConnectionState::Pending { .. } => {
                    self.services.extend(connection.service.map(|id| (connection.id, id)));
                }
                ConnectionState::Available
                | ConnectionState::PendingResponse { .. }
                | ConnectionState::Draining { .. } => self.workload.warm.idle += 1,
            }
        }
        for waiter in pool.waiters() {
            let limit = waiter.deadline.map(|deadline| deadline.saturating_since(start));
            let number = self.add_request(start, limit, waiter.purpose);
            self.waiting.insert(waiter.id, number);
            self.tally.asked(start, waiter.id);
        }
        self.workload.warm.is_ready = pool.snapshot().status == Status::Ready;
    }

    fn add_request(&mut self, asked: Instant, limit: Option<Duration>, purpose: Purpose) -> u32 {
        let number = self.workload.requests.len() as u32;
        let (wait, fate) = (Duration::ZERO, Fate::Waiting);
        self.workload.requests.push(Request { asked, limit, purpose, wait, fate });
        number
    }

    fn add(&mut self, view: &View<'_>) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        let now = view.pool.now();
        if view.step.lost_before.is_some() {
            // The state after a gap includes this step.
            *self = Self::new(self.workload.source.clone(), view.pool, now, false);
            self.workload.lost = true;
            return Continue(());
        }
        if view.step.refused {
            return Continue(());
        }
        self.workload.end = now;
        self.tally.input(now, &view.step.input);
        self.input(now, view);
        self.tally.after(now, view.pool.snapshot().into());
        for action in view.actions {
            self.tally.action(now, action);
            self.action(now, action);
        }
        if self.has_ended { Break(()) } else { Continue(()) }
    }

    fn input(&mut self, now: Instant, view: &View<'_>) {
        let cleared = self.just_cleared.take();
        match &view.step.input {
            Input::CheckOutRequested { id, deadline, purpose, .. } => {
                let limit = deadline.map(|deadline| deadline.saturating_since(now));
                let number = self.add_request(now, limit, *purpose);
                self.waiting.insert(*id, number);
            }
            Input::CheckedIn { id, health, .. } => self.checked_in(now, *id, health, cleared),
            Input::Handshaken { id, service, .. } => {
                self.services.extend(service.map(|service| (*id, service)));
            }
            Input::EstablishSucceeded { id, .. } => self.opened(view, *id, None, None),
            Input::EstablishFailed { id, cause, overloaded } => {
                let failure = FailedOpening { cause: cause.clone(), overloaded: *overloaded };
                self.opened(view, *id, Some(failure), cleared);
            }
            Input::IdleClosedByPeer { cause, .. } => {
                self.event(now, Event::PeerCloses(cause.clone()));
            }
            Input::RetireConnections => self.event(now, Event::Retire),
            Input::ReleaseIdle => self.event(now, Event::Release),
            Input::SetOptions { options } => self.event(now, Event::SetOptions(options.clone())),
            Input::Ready => self.ready(now),
            Input::Clear { cause, interrupt, service } => {
                let (cause, interrupt, service) = (cause.clone(), *interrupt, *service);
                let number = self.workload.clears.len() as u32;
                let clear = Clear { cause, interrupt, service, ready_after: None };
                self.workload.clears.push(clear);
                self.event(now, Event::Clear(number));
                self.just_cleared = Some(number);
                self.not_ready_since.push((number, now));
            }
            Input::Close | Input::ResetAfterFork => self.has_ended = true,
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::DrainSucceeded { .. }
            | Input::DrainFailed { .. }
            | Input::DrainProgress { .. }
            | Input::Timer => {}
        }
    }

    fn event(&mut self, now: Instant, event: Event) {
        self.workload.events.push((now, event));
    }

    /// Each clear brings its own Ready with it.
    fn ready(&mut self, now: Instant) {
        if self.not_ready_since.is_empty() {
            return self.event(now, Event::Ready);
        }
        for (number, since) in self.not_ready_since.drain(..) {
            let clear = &mut self.workload.clears[number as usize];
            clear.ready_after = Some(now.saturating_since(since));
        }
    }

    fn checked_in(
        &mut self,
        now: Instant,
        id: ConnId,
        health: &Health<cenote_core::trace::Cause>,
        cleared: Option<u32>,
    ) {
        let Some(number) = self.in_use.remove(&id) else { return };
        let failure = match health {
            Health::Healthy => None,
            Health::Errored(cause) | Health::PendingResponse { cause, .. } => Some(cause.clone()),
        };
        let clear = self.belongs(cleared.filter(|_| failure.is_some()));
        let request = &mut self.workload.requests[number as usize];
        let lasts = Some(now.saturating_since(request.answered()));
        request.fate = Fate::Served(Use { lasts, failure, clear });
    }

    fn opened(
        &mut self,
        view: &View<'_>,
        id: ConnId,
        failure: Option<FailedOpening>,
        cleared: Option<u32>,
    ) {
        let known = view.holders.connections.get(&id.number());
        let Some(pending) = known.filter(|it| it.activity == Activity::Pending) else { return };
        let (clear, since) = (self.belongs(cleared), pending.since);
        let (lasts, service) = (view.pool.now().saturating_since(since), self.services.remove(&id));
        self.workload.openings.push((since, Opening { lasts, service, failure, clear }));
    }

    /// The clear that came before a failure happens whenever that failure happens, and not at its time.
    fn belongs(&mut self, cleared: Option<u32>) -> Option<u32> {
        let number = cleared?;
        let last = self.workload.events.pop();
        debug_assert!(matches!(last, Some((_, Event::Clear(last))) if last == number));
        Some(number)
    }

    fn action(&mut self, now: Instant, action: &Action<Traced>) {
        let Action::Deliver { waiter, outcome } = action else { return };
        let Some(number) = self.waiting.remove(waiter) else { return };
        let request = &mut self.workload.requests[number as usize];
        request.wait = now.saturating_since(request.asked);
        request.fate = match outcome {
            Ok((id, ())) => {
                self.in_use.insert(*id, number);
                Fate::Held(Duration::ZERO)
            }
            Err(CheckOutError::Cancelled) => Fate::Cancelled,
            Err(_) => Fate::Failed,
        };
    }

    fn finish(self) -> Workload {
        let Self { mut workload, tally, in_use, waiting, .. } = self;
        for number in in_use.into_values() {
            let request = &mut workload.requests[number as usize];
            request.fate = Fate::Held(workload.end.saturating_since(request.answered()));
        }
        for number in waiting.into_values() {
            let request = &mut workload.requests[number as usize];
            request.wait = workload.end.saturating_since(request.asked);
        }
        workload.openings.sort_by_key(|(since, _)| *since);
        workload.recorded = tally.finish(workload.end);
        workload
    }
}
