//! The same from the events of any driver's pool.

use std::io::BufRead;
use std::time::Duration;

use cenote_check::Unreadable;
use cenote_core::pool::{Instant, PoolOptions, Purpose, WaiterId};
use cenote_core::trace::Cause;

use super::outcome::{Answer, Level, Tally};
use super::run::{Clear, Event, Opening, Use, Warm};
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
        let pools = read_events(lines, 0)?;
        let busiest = pools.into_iter().max_by_key(|(_, pool)| pool.requests.len());
        let (address, told) = busiest.ok_or(Unreadable::Empty)?;
        let recorded = recorded(&told);
        let requests = told.requests.iter().map(|it| request(it, told.now)).collect();
        // A pool that was in use before has connections, as many as are seen at once.
        let peak = told.counted.iter().map(|(_, counts)| counts.total).max().unwrap_or_default();
        let idle = if told.is_new { 0 } else { peak };
        let openings = told.establishments.iter().map(|&(since, lasts)| {
            (since, Opening { lasts, service: None, failure: None, clear: None })
        });
        let clears: Vec<_> = told.clears().collect();
        let mut events: Vec<_> =
            told.readied.iter().take(1).map(|&at| (at, Event::Ready)).collect();
        events.extend((0..).zip(&clears).map(|(number, &(at, ..))| (at, Event::Clear(number))));
        events.sort_by_key(|(at, _)| *at);
        let clears = clears.into_iter().map(|(at, interrupt, ready)| Clear {
            cause: Cause::default(),
            interrupt,
            service: None,
            ready_after: ready.map(|ready| ready.saturating_since(at)),
        });
        let source = Source { address: Some(address.to_string()), origin: 0 };
        let mut workload = Self {
            source,
            start: told.start,
            end: told.now,
            options: options(&told),
            warm: Warm { is_ready: !told.is_new, idle, ..Warm::default() },
            requests,
            openings: openings.collect(),
            events,
            clears: clears.collect(),
            recorded,
            leaked: 0,
            lost: false,
        };
        workload.openings.sort_by_key(|(since, _)| *since);
        workload.leaked = told.finish(&address, None).leaked().count();
        Ok(workload)
    }
}

fn options(told: &ToldPool) -> PoolOptions {
    let mut options = PoolOptions::default();
    options.max_pool_size = told.counted.last().map(|(_, counts)| counts.max.unwrap_or(0));
    options.max_connecting = told.options.max_connecting;
    options.min_pool_size = told.options.min_pool_size;
    let given = told.options.wait_queue_timeout.map(|limit| limit.max(0.0) / 1e3);
    let given = given.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
    options.wait_queue_timeout = given.or_else(|| {
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
        Some((wait, explain::Outcome::Failed(_) | explain::Outcome::Waiting)) => {
            (*wait, Fate::Failed)
        }
    };
    Request { asked: told.asked, limit: None, purpose: Purpose::default(), wait, fate }
}

fn recorded(told: &ToldPool) -> super::Outcome {
    let mut tally = Tally::new(told.start, Level { open: 0, in_use: 0, created: 0 });
    let mut answers: Vec<(Instant, WaiterId, Answer)> = Vec::new();
    for (number, request) in (1..).zip(&told.requests) {
        tally.asked(request.asked, WaiterId(number));
        let Some((waited, outcome)) = &request.ended else { continue };
        let answer = match outcome {
            explain::Outcome::Served(_) => Answer::Served,
            explain::Outcome::Failed(Failure::TimedOut) => Answer::TimedOut,
            explain::Outcome::Failed(_) | explain::Outcome::Waiting => Answer::Failed,
        };
        answers.push((request.asked + *waited, WaiterId(number), answer));
    }
    answers.into_iter().for_each(|(at, id, answer)| tally.answered(at, id, answer));
    let mut created = 0;
    let mut before = 0;
    for (at, counts) in &told.counted {
        created += u64::from(counts.total.saturating_sub(before));
        before = counts.total;
        tally.after(*at, Level { open: counts.total, in_use: counts.in_use, created });
    }
    tally.finish(told.now)
}
