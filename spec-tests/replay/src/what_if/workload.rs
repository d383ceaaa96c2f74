//! What a trace tells about callers and their server.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions};
use cenote_core::trace::{Cause, TraceError};

use super::followers::{self, Followers};
use super::outcome::Outcome;
use super::reader::WorkloadReader;
use super::request::{Fate, Limits, Request};
use super::stalls::Stalls;
use super::world::{Clear, Event, Opening, Warm};
use crate::clock::{Clock, UtcOffset};
use crate::explain::{Analysis, Findings};
use crate::step_reader::StepReader;

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
    /// Of the requests that have one.
    pub(crate) limits: Limits,
    /// By the number of the request, how its use failed, and the clear that came with that.
    pub(crate) failures: BTreeMap<u32, (Cause, Option<u32>)>,
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
        let held = self.requests.iter().filter(|request| request.fate == Fate::Held);
        let mut held: Vec<_> = held.map(Request::used).collect();
        held.sort_unstable_by_key(|&held| Reverse(held));
        let least = self.leaked.checked_sub(1).and_then(|last| held.get(last));
        self.leaks = least.map(|&least| (least, self.leaked as f64 / served as f64));
        self.stalls = Stalls::of(&self.requests, (self.start, self.end));
        self.retries = followers::retries(&self.requests, &self.stalls);
        self.tick = followers::tick(followers::ends(&self.requests));
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

    /// The numbers of the requests whose use ended.
    pub(crate) fn uses(&self) -> impl Iterator<Item = u32> {
        let ended = (0..).zip(&self.requests).filter(|(_, request)| request.fate == Fate::Served);
        ended.map(|(number, _)| number)
    }
}
