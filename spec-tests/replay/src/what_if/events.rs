//! The same from the events of any driver's pool.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::Duration;

use cenote_check::{Options, Unreadable};
use cenote_core::pool::{Instant, PoolOptions, Purpose, WaiterId};
use cenote_core::trace::Cause;

use super::followers::Followers;
use super::outcome::{Answer, Level, Tally};
use super::request::{Fate, Limits, Request};
use super::stalls::Stalls;
use super::workload::{Source, Workload};
use super::world::{Clear, Event, FailedOpening, Opening, Warm};
use crate::explain::{self, Failure, ToldPool, ToldRequest, read_events};

impl Workload {
    /// Reads a stream of CMAP events, one JSON object per line; of several pools that with the most requests. How long
    /// requests may wait is known from `waitQueueTimeoutMS`, or else from those that timed out.
    ///
    /// # Errors
    ///
    /// What cannot be read, with the number of its line: also an event without a time.
    pub fn read_events(lines: impl BufRead) -> Result<Self, Unreadable> {
        let (mut pools, others) = read_events(lines, 0, 1)?;
        let (address, told) = pools.pop().ok_or(Unreadable::Empty)?;
        // What follows in another pool of this address is another story.
        let end = told.closed.unwrap_or(told.now);
        let shown = shown(&told);
        let first = told.changes.first().map(|(_, first)| *first);
        let workload = Self {
            source: Source { address: Some(address.to_string()), origin: 0, others },
            start: told.start,
            end,
            options: options(&shown, &first.unwrap_or_default()),
            warm: warm(&told),
            requests: requests(&told, end),
            limits: Limits::default(),
            failures: BTreeMap::new(),
            openings: openings(&told, end),
            events: events(&told, &shown, end),
            clears: clears(&told, end).map(|(_, clear)| clear).collect(),
            recorded: recorded(&told, end),
            unended: told.unended,
            lost: false,
            leaked: told.finish(&address, None).leaked().count(),
            leaks: None,
            stalls: Stalls::default(),
            retries: Followers::new(),
            nested: Followers::new(),
            tick: Duration::ZERO,
        };
        Ok(workload.examined())
    }
}

fn asked(told: &ToldPool, end: Instant) -> impl Iterator<Item = &ToldRequest> {
    told.requests.iter().take_while(move |request| request.asked <= end)
}

/// Drivers that do not tell when a pool is ready have pools that always are.
fn warm(told: &ToldPool) -> Warm {
    let is_ready = !told.is_new || told.readied.is_empty();
    Warm { is_ready, idle: told.older.len() as u32, ..Warm::default() }
}

/// In the order in which they began.
fn openings(told: &ToldPool, end: Instant) -> Vec<(Instant, Opening)> {
    let begun = told.establishments.iter().filter(|(since, ..)| *since <= end);
    let openings = begun.map(|&(since, lasts, is_good)| {
        let failure = (!is_good).then(FailedOpening::default);
        (since, Opening { lasts, service: None, failure, clear: None })
    });
    let mut openings: Vec<_> = openings.collect();
    openings.sort_by_key(|(since, _)| *since);
    openings
}

/// When the pool was ready first, was cleared, and had its options changed.
fn events(told: &ToldPool, shown: &PoolOptions, end: Instant) -> Vec<(Instant, Event)> {
    let readied = told.readied.iter().take(1).map(|&at| (at, Event::Ready));
    let cleared = (0..).zip(clears(told, end)).map(|(number, (at, _))| (at, Event::Clear(number)));
    let changes = told.changes.iter().skip(1).take_while(|(at, _)| *at <= end);
    let changed =
        changes.map(|(at, known)| (*at, Event::SetOptions(Box::new(options(shown, known)))));
    let mut events: Vec<_> = readied.chain(cleared).chain(changed).collect();
    events.sort_by_key(|(at, _)| *at);
    events
}

fn clears(told: &ToldPool, end: Instant) -> impl Iterator<Item = (Instant, Clear)> {
    told.clears().filter(move |(at, ..)| *at <= end).map(|(at, interrupt, ready)| {
        let ready_after = ready.map(|ready| ready.saturating_since(at));
        (at, Clear { cause: Cause::default(), interrupt, service: None, ready_after })
    })
}

/// The options as far as the pool shows them.
fn shown(told: &ToldPool) -> PoolOptions {
    let mut shown = PoolOptions::default();
    let last = told.counted.last();
    shown.max_pool_size = last.map(|(_, counts, _)| counts.max.unwrap_or(0));
    let mut ended = told.requests.iter().filter_map(|request| request.ended.as_ref());
    let is_late = |it: &explain::Outcome| *it == explain::Outcome::Failed(Failure::TimedOut);
    let late = ended.find(|(_, outcome)| is_late(outcome));
    shown.wait_queue_timeout = late.map(|(waited, _)| *waited);
    shown
}

/// Those that events say, or else those that they show.
fn options(shown: &PoolOptions, known: &Options) -> PoolOptions {
    let limit = |milliseconds: Option<f64>| {
        let seconds = milliseconds.map(|limit| limit.max(0.0) / 1e3);
        seconds.and_then(|limit| Duration::try_from_secs_f64(limit).ok())
    };
    let mut options = PoolOptions::default();
    options.max_pool_size = known.max_pool_size.or(shown.max_pool_size);
    options.max_connecting = known.max_connecting.filter(|it| *it > 0);
    options.min_pool_size = known.min_pool_size;
    options.max_idle_time = limit(known.max_idle_time);
    options.wait_queue_timeout = limit(known.wait_queue_timeout).or(shown.wait_queue_timeout);
    options
}

/// In the order in which they were made: threads write their lines as they come to it.
fn requests(told: &ToldPool, end: Instant) -> Vec<Request> {
    let mut requests: Vec<_> = asked(told, end).map(|it| request(it, end)).collect();
    requests.sort_by_key(|request| request.asked);
    requests
}

fn request(told: &ToldRequest, end: Instant) -> Request {
    let mut request = Request::new(told.asked, None, Purpose::default());
    match &told.ended {
        None => request.answer(end.saturating_since(told.asked), Fate::Waiting),
        Some((wait, explain::Outcome::Served(_))) => {
            request.answer(*wait, Fate::Held);
            match told.held {
                Some(held) => request.hold(held, Fate::Served),
                None => request.hold(end.saturating_since(told.asked + *wait), Fate::Held),
            }
        }
        Some((wait, explain::Outcome::Failed(Failure::Cancelled))) => {
            request.answer(*wait, Fate::Cancelled);
        }
        Some((wait, explain::Outcome::Failed(_) | explain::Outcome::Waiting)) => {
            request.answer(*wait, Fate::Failed);
        }
    }
    request
}

fn recorded(told: &ToldPool, end: Instant) -> super::Outcome {
    let mut tally = Tally::new(told.start, Level { open: 0, in_use: 0, created: 0 });
    let mut answers: Vec<(Instant, WaiterId, Answer)> = Vec::new();
    for (number, request) in (1..).zip(asked(told, end)) {
        tally.asked(request.asked, WaiterId(number));
        let Some((waited, outcome)) = &request.ended else { continue };
        let answer = match outcome {
            explain::Outcome::Served(_) => Answer::Served,
            explain::Outcome::Failed(Failure::TimedOut | Failure::Cancelled) => Answer::TimedOut,
            explain::Outcome::Failed(_) | explain::Outcome::Waiting => Answer::Failed,
        };
        answers.push((request.asked + *waited, WaiterId(number), answer));
    }
    answers.into_iter().for_each(|(at, id, answer)| tally.answered(at, id, answer));
    let mut created = 0;
    let mut before = 0;
    for (at, counts, _) in told.counted.iter().take_while(|(at, ..)| *at <= end) {
        created += u64::from(counts.total.saturating_sub(before));
        before = counts.total;
        tally.after(*at, Level { open: counts.total, in_use: counts.in_use, created });
    }
    tally.finish(end)
}
