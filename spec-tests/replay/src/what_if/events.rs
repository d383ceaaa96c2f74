//! The same from the events of any driver's pool.

use std::io::BufRead;
use std::time::Duration;

use cenote_check::{Options, Unreadable};
use cenote_core::pool::{Instant, PoolOptions, Purpose, WaiterId};
use cenote_core::trace::Cause;

use super::outcome::{Answer, Level, Tally};
use super::run::{Clear, Event, FailedOpening, Opening, Use, Warm};
use super::workload::{Fate, Request, Source, Workload};
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
        let asked = told.requests.iter().take_while(|request| request.asked <= end);
        let requests = asked.map(|it| request(it, end)).collect();
        let openings = told.establishments.iter().map(|&(since, lasts, is_good)| {
            let failure = (!is_good).then(FailedOpening::default);
            (since, Opening { lasts, service: None, failure, clear: None })
        });
        // Drivers that do not tell when a pool is ready have pools that always are.
        let is_ready = !told.is_new || told.readied.is_empty();
        let warm = Warm { is_ready, idle: told.older.len() as u32, ..Warm::default() };
        let mut changes = told.changes.iter();
        let first = changes.next().map(|(_, first)| *first);
        let options = options(&told, &first.unwrap_or_default());
        let clears: Vec<_> = told.clears().collect();
        let mut events: Vec<_> =
            told.readied.iter().take(1).map(|&at| (at, Event::Ready)).collect();
        events.extend((0..).zip(&clears).map(|(number, &(at, ..))| (at, Event::Clear(number))));
        events.extend(changes.map(|(at, changed)| {
            (*at, Event::SetOptions(Box::new(self::options(&told, changed))))
        }));
        events.sort_by_key(|(at, _)| *at);
        let clears = clears.into_iter().map(|(at, interrupt, ready)| Clear {
            cause: Cause::default(),
            interrupt,
            service: None,
            ready_after: ready.map(|ready| ready.saturating_since(at)),
        });
        let source = Source { address: Some(address.to_string()), origin: 0, others };
        let mut workload = Self {
            source,
            start: told.start,
            end,
            options,
            warm,
            requests,
            openings: openings.collect(),
            events,
            clears: clears.collect(),
            recorded: recorded(&told, end),
            leaked: 0,
            unended: told.unended,
            lost: false,
        };
        workload.openings.sort_by_key(|(since, _)| *since);
        workload.leaked = told.finish(&address, None).leaked().count();
        Ok(workload)
    }
}

fn options(told: &ToldPool, known: &Options) -> PoolOptions {
    let limit = |milliseconds: Option<f64>| {
        let seconds = milliseconds.map(|limit| limit.max(0.0) / 1e3);
        seconds.and_then(|limit| Duration::try_from_secs_f64(limit).ok())
    };
    let mut options = PoolOptions::default();
    // What no event says is what it shows.
    let shown = told.counted.last().map(|(_, counts, _)| counts.max.unwrap_or(0));
    options.max_pool_size = known.max_pool_size.or(shown);
    options.max_connecting = known.max_connecting.filter(|it| *it > 0);
    options.min_pool_size = known.min_pool_size;
    options.max_idle_time = limit(known.max_idle_time);
    options.wait_queue_timeout = limit(known.wait_queue_timeout).or_else(|| {
        let mut ended = told.requests.iter().filter_map(|request| request.ended.as_ref());
        let is_late = |it: &explain::Outcome| *it == explain::Outcome::Failed(Failure::TimedOut);
        ended.find(|(_, outcome)| is_late(outcome)).map(|(waited, _)| *waited)
    });
    options
}

fn request(told: &ToldRequest, end: Instant) -> Request {
    let (wait, fate) = match &told.ended {
        None => (end.saturating_since(told.asked), Fate::Waiting),
        Some((wait, explain::Outcome::Served(_))) => {
            let used = Use { lasts: told.held, failure: None, clear: None };
            let so_far = end.saturating_since(told.asked + *wait);
            (*wait, told.held.map_or(Fate::Held(so_far), |_| Fate::Served(used)))
        }
        Some((wait, explain::Outcome::Failed(Failure::Cancelled))) => (*wait, Fate::Cancelled),
        Some((wait, explain::Outcome::Failed(_) | explain::Outcome::Waiting)) => {
            (*wait, Fate::Failed)
        }
    };
    Request { asked: told.asked, limit: None, purpose: Purpose::default(), wait, fate }
}

fn recorded(told: &ToldPool, end: Instant) -> super::Outcome {
    let mut tally = Tally::new(told.start, Level { open: 0, in_use: 0, created: 0 });
    let mut answers: Vec<(Instant, WaiterId, Answer)> = Vec::new();
    let asked = told.requests.iter().take_while(|request| request.asked <= end);
    for (number, request) in (1..).zip(asked) {
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
