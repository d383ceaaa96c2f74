//! The same from the events that a pool of any driver tells. They have no ids of requests, deadlines and places in the
//! program, and say nothing of what was not done: all that is left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use cenote_check::{Events, Kind, Line, LineError, Options, Unreadable};
use cenote_core::error::OneLine;
use cenote_core::pool::{Instant, WaiterId};

use super::analysis::{Analysis, Use};
use super::clears::Clear;
use super::summary::{End, Findings};
use super::wait::{Counts, Failure, Obstacle, Outcome, Wait};
use crate::clock::{Clock, UtcOffset};
use crate::holders::{Activity, Connection, Holders, Request};

/// What the events of each pool tell, and how many other pools there are. Of the pools of a stream, `at_most` this many are
/// explained: those with the most requests, in the order of their addresses. Keeps so many of the `slowest` waits; uses of
/// more than `longer_than` count as long.
///
/// # Errors
///
/// What cannot be read, with the number of its line: also an event without a time. A last line that is cut ends the stream.
pub fn explain_events(
    lines: impl BufRead,
    slowest: usize,
    longer_than: Option<Duration>,
    at_most: usize,
) -> Result<(Vec<Findings>, usize), Unreadable> {
    let (pools, others) = read_events(lines, slowest, at_most)?;
    let findings = pools.into_iter().map(|(address, pool)| pool.finish(&address, longer_than));
    Ok((findings.collect(), others))
}

/// How many pools of a stream a screen, or a page, has room for.
pub const POOLS: usize = 20;

/// With its address.
type AddressedPool = (Arc<str>, ToldPool);

/// The pools with the most requests as their events tell of them, by their addresses: one at least, and `at_most` this many.
/// And how many others there are.
pub(crate) fn read_events(
    lines: impl BufRead,
    slowest: usize,
    at_most: usize,
) -> Result<(Vec<AddressedPool>, usize), Unreadable> {
    let mut pools: BTreeMap<Arc<str>, ToldPool> = BTreeMap::new();
    let mut first = None;
    for event in Events::new(lines) {
        let (number, event) = event?;
        let wrong = |reason| Unreadable::Line { line: number, reason };
        let at = event.at.filter(|at| at.is_finite()).ok_or_else(|| wrong(LineError::NoTime))?;
        let since = at - *first.get_or_insert(at);
        if since > LONGEST {
            return Err(wrong(LineError::NotInSeconds(since)));
        }
        let at = Instant::from_nanos((since.max(0.0) * 1e9) as u64);
        let new = || ToldPool::new(at, slowest);
        let pool = pools.entry(Arc::clone(&event.address)).or_insert_with(new);
        pool.hear(at, number, &event).map_err(wrong)?;
    }
    if pools.is_empty() {
        return Err(Unreadable::Empty);
    }
    let others = pools.len().saturating_sub(at_most);
    let mut pools: Vec<_> = pools.into_iter().collect();
    pools.sort_by_key(|(_, pool)| Reverse(pool.requests.len()));
    pools.truncate(at_most);
    pools.sort_by(|(one, _), (other, _)| one.cmp(other));
    pools.iter_mut().for_each(|(_, pool)| pool.set_unended_apart());
    Ok((pools, others))
}

/// A pool as its events tell of it.
pub(crate) struct ToldPool {
    pub(crate) start: Instant,
    pub(crate) now: Instant,
    /// Whether the first of its events says that it was created.
    pub(crate) is_new: bool,
    /// The latest.
    options: Options,
    /// From when on which options were known.
    pub(crate) changes: Vec<(Instant, Options)>,
    /// In the order in which they asked: the first is `w1`.
    pub(crate) requests: Vec<ToldRequest>,
    /// Since when and for how long connections were being established, and whether they were.
    pub(crate) establishments: Vec<(Instant, Duration, bool)>,
    /// Connections that were there before the events began.
    pub(crate) older: BTreeSet<u64>,
    /// When it was first closed.
    pub(crate) closed: Option<Instant>,
    /// When it became ready.
    pub(crate) readied: Vec<Instant>,
    /// The counts after each event, and how many requests wait.
    pub(crate) counted: Vec<(Instant, Counts, usize)>,
    /// All that there were, in the order of their beginnings.
    pub(crate) lives: Vec<ToldLife>,
    /// Of those that are open, the place in that list.
    open: BTreeMap<u64, usize>,
    analysis: Analysis,
    holders: Holders,
    counts: Counts,
    /// The most connections so far.
    peak: u32,
    is_closed: bool,
    /// Those that wait, by when they asked.
    waiting: BTreeSet<(Instant, WaiterId)>,
    /// Of those that wait, the ones that found a connection idle.
    at_once: BTreeSet<WaiterId>,
    /// How many have no end in the events, although later ones were served.
    pub(crate) unended: u64,
    /// Connections whose check-in was told after the next check-out, which it preceded.
    early: Vec<u64>,
    /// Since when requests fail at once, if they do, and why.
    paused: Option<(Instant, Option<String>)>,
}

/// A connection, as far as events tell of it.
pub(crate) struct ToldLife {
    pub(crate) number: u64,
    pub(crate) created: Instant,
    pub(crate) ready: Option<Instant>,
    pub(crate) closed: Option<Instant>,
    /// Why it was closed, if the events say so.
    pub(crate) why: Option<String>,
}

/// A request, as far as events tell of it.
pub(crate) struct ToldRequest {
    pub(crate) asked: Instant,
    /// How long it waited, and how that ended; `None`: it waits at the end. If the events do not say, it was cancelled
    /// when a later one was served.
    pub(crate) ended: Option<(Duration, Outcome)>,
    /// How long it held its connection, if it was served and has given it back.
    pub(crate) held: Option<Duration>,
}

impl ToldPool {
    fn new(start: Instant, slowest: usize) -> Self {
        let counts = Counts {
            total: 0,
            in_use: 0,
            pending: 0,
            max: Some(DEFAULT_MAX),
            max_connecting: DEFAULT_MAX_CONNECTING,
            paces: false,
            drains: false,
        };
        Self {
            start,
            now: start,
            is_new: false,
            options: Options::default(),
            changes: Vec::new(),
            requests: Vec::new(),
            establishments: Vec::new(),
            older: BTreeSet::new(),
            closed: None,
            readied: Vec::new(),
            counted: Vec::new(),
            lives: Vec::new(),
            open: BTreeMap::new(),
            analysis: Analysis::new(slowest),
            holders: Holders::default(),
            counts,
            peak: 0,
            is_closed: false,
            waiting: BTreeSet::new(),
            at_once: BTreeSet::new(),
            unended: 0,
            early: Vec::new(),
            paused: None,
        }
    }

    /// Threads write their lines as they come to it: one may be a little older than the line before.
    fn hear(&mut self, at: Instant, number: u64, event: &Line) -> Result<(), LineError> {
        self.now = self.now.max(at);
        let connection = event.connection_id.unwrap_or_default();
        match event.kind {
            Kind::ConnectionPoolCreated => {
                if !self.counted.is_empty() && !self.is_closed {
                    return Err(LineError::SecondPool);
                }
                self.is_new |= self.counted.is_empty();
                // After one that was closed, of the same address.
                self.is_closed = false;
                self.forget_connections();
                self.options = Options { max_pool_size: Some(DEFAULT_MAX), ..Options::default() };
                self.take_options(event);
                self.paused = Some((at, None));
            }
            Kind::PoolOptionsChanged => self.take_options(event),
            Kind::ConnectionPoolReady => {
                self.paused = None;
                self.readied.push(at);
                if let Some(clear) = self.analysis.clears.all.last_mut() {
                    clear.ready.get_or_insert(at);
                }
            }
            Kind::ConnectionPoolCleared => self.cleared(at, number, event),
            Kind::ConnectionCreated => {
                // A pool opens none before it is ready, also where nothing tells of that.
                self.paused = self.paused.take().filter(|(_, cause)| cause.is_some());
                self.analysis.created.add(at);
                let creator = self.holders.requests.keys().next_back().copied();
                self.put(connection, Some(Connection::new(Activity::Pending, at, creator)));
            }
            Kind::ConnectionReady => self.established(at, connection, event.milliseconds),
            Kind::ConnectionClosed => {
                let pending = self.holders.connections.get(&connection);
                let pending = pending.filter(|it| it.activity == Activity::Pending);
                let failed = pending.map(|it| (it.since, at.saturating_since(it.since), false));
                self.establishments.extend(failed);
                if let Some(life) = self.open.get(&connection) {
                    let told = event.error.as_deref().or(event.reason.as_deref());
                    self.lives[*life].why = told.map(|told| OneLine::text(told).to_string());
                }
                self.put(connection, None);
                self.early.retain(|it| *it != connection);
                if let Some(clear) = self.analysis.clears.all.last_mut() {
                    clear.close(connection, at);
                }
            }
            Kind::ConnectionCheckOutStarted => self.asked(at, number),
            Kind::ConnectionCheckedOut => self.served(at, number, connection, event.milliseconds),
            Kind::ConnectionCheckOutFailed => self.failed(at, event),
            Kind::ConnectionCheckedIn => self.checked_in(at, connection),
            // The connections of the parent are not this process's.
            Kind::PoolResetAfterFork => self.forget_connections(),
            Kind::ConnectionPoolClosed => {
                self.is_closed = true;
                self.closed.get_or_insert(at);
            }
            Kind::ConnectionPendingResponseStarted
            | Kind::ConnectionPendingResponseSucceeded
            | Kind::ConnectionPendingResponseFailed => {}
        }
        self.counted.push((self.now, self.counts, self.holders.requests.len()));
        self.analysis.counted = Some((self.start, self.now));
        Ok(())
    }

    fn take_options(&mut self, event: &Line) {
        let (given, known) = (event.options.unwrap_or_default(), self.options);
        self.options = Options {
            max_pool_size: given.max_pool_size.or(known.max_pool_size),
            min_pool_size: given.min_pool_size.or(known.min_pool_size),
            max_connecting: given.max_connecting.or(known.max_connecting),
            wait_queue_timeout: given.wait_queue_timeout.or(known.wait_queue_timeout),
            max_idle_time: given.max_idle_time.or(known.max_idle_time),
        };
        self.changes.push((self.now, self.options));
        let connecting = self.options.max_connecting;
        self.counts.max_connecting = connecting.unwrap_or(DEFAULT_MAX_CONNECTING);
        self.see_limit();
    }

    /// Events that begin after the pool did do not say how many connections it may have: as many as they show.
    fn see_limit(&mut self) {
        self.peak = self.peak.max(self.counts.total);
        let max = self.options.max_pool_size.unwrap_or(self.peak);
        self.counts.max = Some(max).filter(|max| *max > 0);
    }

    fn forget_connections(&mut self) {
        for (_, life) in std::mem::take(&mut self.open) {
            self.lives[life].closed = Some(self.now);
        }
        self.holders = Holders::default();
        self.waiting.clear();
        self.early.clear();
        self.counts = Counts { total: 0, in_use: 0, pending: 0, ..self.counts };
    }

    /// A connection as it is now; `None`: there is none of this number.
    fn put(&mut self, number: u64, connection: Option<Connection>) {
        self.live(number, connection);
        let connections = &mut self.holders.connections;
        let before = match connection {
            Some(connection) => connections.insert(number, connection),
            None => connections.remove(&number),
        };
        let is = |it: Option<Connection>, is: fn(Activity) -> bool| {
            u32::from(it.is_some_and(|it| is(it.activity)))
        };
        let counted = |count: &mut u32, of: fn(Activity) -> bool| {
            *count = *count + is(connection, of) - is(before, of);
        };
        counted(&mut self.counts.total, |_| true);
        counted(&mut self.counts.in_use, |it| matches!(it, Activity::InUse(_)));
        counted(&mut self.counts.pending, |it| it == Activity::Pending);
        self.see_limit();
    }

    fn live(&mut self, number: u64, connection: Option<Connection>) {
        let Some(connection) = connection else {
            if let Some(life) = self.open.remove(&number) {
                self.lives[life].closed = Some(self.now);
            }
            return;
        };
        let life = *self.open.entry(number).or_insert_with(|| {
            // Of one that was there before, it is seen when it is used.
            let created = connection.since;
            self.lives.push(ToldLife { number, created, ready: None, closed: None, why: None });
            self.lives.len() - 1
        });
        if connection.activity != Activity::Pending {
            self.lives[life].ready.get_or_insert(connection.since);
        }
    }

    fn established(&mut self, at: Instant, number: u64, milliseconds: Option<f64>) {
        let known = self.holders.connections.get(&number);
        let since = milliseconds.map_or(known.map_or(at, |it| it.since), |it| before(at, it));
        let lasted = at.saturating_since(since);
        self.analysis.establishments.add((at, lasted));
        self.establishments.push((since, lasted, true));
        let creator = known.and_then(|it| it.creator);
        self.put(number, Some(Connection::new(Activity::Idle, at, creator)));
        if let Some(clear) = self.analysis.clears.all.last_mut() {
            clear.establish();
        }
    }

    fn asked(&mut self, at: Instant, step: u64) {
        self.requests.push(ToldRequest { asked: at, ended: None, held: None });
        let waiter = WaiterId(self.requests.len() as u64);
        let ahead = self.holders.requests.len();
        let Counts { total, in_use, pending, .. } = self.counts;
        let idle = (total - in_use - pending) as usize;
        // Any that asked before this moment would have one of them, if it still waited.
        if self.waiting.range(about(at)).take(idle).count() < idle {
            self.at_once.insert(waiter);
        }
        self.waiting.insert((at, waiter));
        let request = Request { started: at, step, ahead: Some(ahead as u64), limit: None };
        self.holders.requests.insert(waiter, request);
        self.analysis.arrivals.add(at);
    }

    fn served(&mut self, at: Instant, step: u64, number: u64, milliseconds: Option<f64>) {
        // Also where the events begin when the pool is in use.
        self.paused = None;
        let request = self.take_request(at, milliseconds);
        if let Some((waiter, request)) = request {
            let known = self.holders.connections.get(&number);
            let is_new = known.is_some_and(|it| it.creator.is_some() && it.since > request.started);
            self.end_wait(waiter, request, at, Outcome::Served(number), is_new);
        }
        if !self.is_new && !self.holders.connections.contains_key(&number) {
            self.older.insert(number);
        }
        // Another thread may tell of the check-in a moment later.
        if self.end_use(at, number) {
            self.early.push(number);
        }
        let holder = request.map(|(waiter, _)| waiter);
        let in_use = Connection::new(Activity::InUse(holder), at, None);
        self.put(number, Some(Connection { step, ..in_use }));
    }

    fn failed(&mut self, at: Instant, event: &Line) {
        let Some((waiter, request)) = self.take_request(at, event.milliseconds) else { return };
        let failure = match (event.reason.as_deref(), &self.paused) {
            (Some("timeout"), _) => Failure::TimedOut,
            (Some("poolClosed"), _) => Failure::Closed,
            (Some("connectionError"), None) => Failure::NotEstablished(why(event)),
            (Some("connectionError"), Some(_)) if !tells_of_pool(event) => {
                Failure::NotEstablished(why(event))
            }
            (Some("connectionError"), Some((since, cause))) => {
                let cause = event.error.as_ref().map(|_| why(event)).or(cause.clone());
                let is_later = request.started >= *since;
                if is_later { Failure::Paused(cause) } else { Failure::Cleared(cause) }
            }
            _ => Failure::Untold,
        };
        if let Some(clear) = self.analysis.clears.all.last_mut() {
            let waited = at.saturating_since(request.started);
            if matches!(failure, Failure::Paused(_)) {
                clear.refused += 1;
            } else if matches!(failure, Failure::Cleared(_)) {
                clear.cleared.add((waiter, waited));
            }
        }
        self.end_wait(waiter, request, at, Outcome::Failed(failure), false);
    }

    /// The request that an event tells of: the oldest that asked about when the event says. If there is none, the oldest of
    /// all, so that their number stays right.
    fn take_request(
        &mut self,
        at: Instant,
        milliseconds: Option<f64>,
    ) -> Option<(WaiterId, Request)> {
        let asked = milliseconds.map(|waited| before(at, waited));
        let told = asked.and_then(|asked| self.waiting.range(about(asked)).next());
        let found = *told.or_else(|| self.waiting.first())?;
        let started = if told.is_some() { found.0 } else { asked.unwrap_or(found.0) };
        self.waiting.remove(&found);
        let request = self.holders.requests.remove(&found.1)?;
        Some((found.1, Request { started, ..request }))
    }

    fn end_wait(
        &mut self,
        waiter: WaiterId,
        request: Request,
        at: Instant,
        outcome: Outcome,
        is_new: bool,
    ) {
        let waited = at.saturating_since(request.started);
        let found_one = self.at_once.remove(&waiter);
        let is_at_once = found_one && waited <= ROUNDED;
        if let Some(told) = self.told(waiter) {
            *told = ToldRequest {
                asked: request.started,
                ended: Some((waited, outcome.clone())),
                held: None,
            };
        }
        let mut counts = self.counts;
        // Until a moment ago, the connection that it got was in use.
        let was_in_use = !is_new && matches!(outcome, Outcome::Served(_));
        counts.in_use += u32::from(was_in_use && counts.in_use < counts.total);
        let obstacle = if is_new { Obstacle::OwnConnection } else { counts.obstacle() };
        let Request { started: asked, step: asked_step, ahead, limit } = request;
        let wait = |outcome| Wait {
            waiter,
            asked,
            asked_step,
            place: None,
            ended: at,
            ahead,
            limit,
            obstacle,
            counts,
            outcome,
        };
        self.analysis.add_wait(at, waited, (outcome, is_at_once), wait);
    }

    /// The pools of some drivers tell no end of a request whose caller gave up. It counts as waiting no more.
    fn set_unended_apart(&mut self) {
        let unended = self.overtaken();
        for (asked, waiter, at) in &unended {
            self.waiting.remove(&(*asked, *waiter));
            self.holders.requests.remove(waiter);
            if let Some(told) = self.told(*waiter) {
                let given_up = Outcome::Failed(Failure::Cancelled);
                told.ended = Some((at.saturating_since(*asked), given_up));
            }
        }
        let before = |at: Instant| unended.partition_point(|(asked, ..)| *asked <= at);
        for (at, _, waiting) in &mut self.counted {
            *waiting = waiting.saturating_sub(before(*at));
        }
        let most = self.counted.iter().map(|(.., waiting)| *waiting).max();
        self.analysis.waiting_max = most.unwrap_or_default() as u64;
        let count = |ahead: &mut Option<u64>, asked: Instant| {
            *ahead = ahead.map(|ahead| ahead.saturating_sub(before(asked) as u64));
        };
        self.analysis.each_wait(|wait| count(&mut wait.ahead, wait.asked));
        let waiting = self.holders.requests.values_mut();
        waiting.for_each(|request| count(&mut request.ahead, request.started));
        self.unended = unended.len() as u64;
    }

    /// The requests without an end, of which a later one was served: when each asked, and when the first later one was
    /// served.
    fn overtaken(&self) -> Vec<(Instant, WaiterId, Instant)> {
        let served = self.requests.iter().filter_map(|it| match &it.ended {
            Some((waited, Outcome::Served(_))) => Some((it.asked, it.asked + *waited)),
            Some((_, Outcome::Failed(_) | Outcome::Waiting)) | None => None,
        });
        let mut served: Vec<_> = served.collect();
        served.sort_unstable();
        // When the first was served that asked then, or later.
        let mut first = self.now;
        for (_, served) in served.iter_mut().rev() {
            first = first.min(*served);
            *served = first;
        }
        let overtaken = |(asked, waiter): (Instant, WaiterId)| {
            let later = served.partition_point(|(it, _)| *it <= asked + ROUNDED);
            served.get(later).map(|(_, at)| (asked, waiter, *at))
        };
        let mut overtaken: Vec<_> = self.waiting.iter().copied().map_while(overtaken).collect();
        // Later ones are served, too, before one whose connection is being established.
        overtaken.truncate(overtaken.len().saturating_sub(self.counts.pending as usize));
        overtaken
    }

    fn told(&mut self, waiter: WaiterId) -> Option<&mut ToldRequest> {
        self.requests.get_mut(usize::try_from(waiter.0.checked_sub(1)?).ok()?)
    }

    fn checked_in(&mut self, at: Instant, number: u64) {
        let early = self.early.iter().position(|it| *it == number);
        if let Some(place) = early {
            self.early.swap_remove(place);
        } else {
            self.end_use(at, number);
        }
    }

    /// Returns whether the connection was in use.
    fn end_use(&mut self, at: Instant, number: u64) -> bool {
        let known = self.holders.connections.get(&number);
        let Some(used) = known.and_then(|known| Use::of(number, known, &self.holders)) else {
            return false;
        };
        if let Some(request) = used.holder.and_then(|holder| self.told(holder)) {
            request.held = Some(at.saturating_since(used.since));
        }
        self.analysis.add_use(Use { until: Some((at, false)), ..used }, at);
        self.put(number, Some(Connection::new(Activity::Idle, at, None)));
        true
    }

    fn cleared(&mut self, at: Instant, step: u64, event: &Line) {
        let told = why(event);
        let number = self.analysis.clears.all.len() as u64 + 1;
        let last = self.holders.connections.keys().next_back().copied().unwrap_or_default();
        let mut clear = Clear::new(number, (at, step), told.clone(), self.counts, last);
        clear.interrupts = event.interrupts == Some(true);
        for (connection, holder, used) in self.holders.in_use().filter(|_| clear.interrupts) {
            clear.interrupted.add((connection, holder, at.saturating_since(used.since)));
        }
        clear.service = event.service_id.as_deref().map(|id| OneLine::name(id).to_string());
        if clear.service.is_none() {
            self.paused = Some((at, Some(told.clone())));
        }
        self.analysis.clears.all.push(clear);
    }

    /// The clears, of the whole pool or of a service: when, and why.
    pub(crate) fn causes(&self) -> impl Iterator<Item = (Instant, &str)> {
        self.analysis.clears.all.iter().map(|clear| (clear.at, &*clear.cause))
    }

    /// The clears of the whole pool: when, and when it was ready again.
    pub(crate) fn clears(&self) -> impl Iterator<Item = (Instant, bool, Option<Instant>)> {
        let all = self.analysis.clears.all.iter().filter(|clear| clear.service.is_none());
        all.map(|clear| (clear.at, clear.interrupts, clear.ready))
    }

    /// The waits, with what was in the way.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        let waiting = self.analysis.still_waiting(&self.holders, self.now, self.counts);
        self.analysis.ended().iter().cloned().chain(waiting).collect()
    }

    pub(crate) fn finish(self, address: &str, longer_than: Option<Duration>) -> Findings {
        let address = OneLine::name(address).to_string();
        let length = crate::text::span(self.now.saturating_since(self.start));
        let count = self.counted.len() as u64;
        let events = crate::text::counted(count, "event", "events");
        let max = match self.options.max_pool_size {
            Some(_) => "",
            None => {
                "; they do not say maxPoolSize, for which the most connections that they show are taken"
            }
        };
        let end = End {
            title: format!("{address}, as its events tell: {events}, {length}{max}"),
            address: Some(address),
            start: self.start,
            now: self.now,
            steps: count,
            counts: self.counts,
            holders: &self.holders,
            unended: self.unended,
            limits: (longer_than, None),
            is_told: true,
        };
        let clock = Clock::from(0, self.start, UtcOffset::default());
        Findings::of(self.analysis, end, clock, None)
    }
}

fn why(event: &Line) -> String {
    let told = event.error.as_deref().unwrap_or("the events do not say why");
    OneLine::text(told).to_string()
}

/// Whether a failed check-out blames the pool; of an error that it does not tell, that is assumed.
fn tells_of_pool(event: &Line) -> bool {
    let error = event.error.as_ref().map(|error| error.to_lowercase());
    error.is_none_or(|error| ["clear", "paused", "ready"].iter().any(|word| error.contains(word)))
}

fn before(at: Instant, milliseconds: f64) -> Instant {
    let nanos = (milliseconds.max(0.0) * 1e6) as u64;
    Instant::from_nanos(at.as_nanos().saturating_sub(nanos))
}

/// Those that may have asked at this time.
fn about(at: Instant) -> RangeInclusive<(Instant, WaiterId)> {
    let from = Instant::from_nanos(at.as_nanos().saturating_sub(ROUNDED.as_nanos() as u64));
    (from, WaiterId(0))..=(at + ROUNDED, WaiterId(u64::MAX))
}

/// Durations may be whole milliseconds, and events told a moment later.
const ROUNDED: Duration = Duration::from_micros(1_500);

/// Three years, in seconds.
const LONGEST: f64 = 1e8;

/// Of every driver, unless its options say otherwise.
const DEFAULT_MAX: u32 = 100;
const DEFAULT_MAX_CONNECTING: u32 = 2;
