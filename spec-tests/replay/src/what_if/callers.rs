//! The callers and the server of a trace, before a pool with other options.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions};

use super::Assumptions;
use super::chains::{Arrivals, Chains, Repeated};
use super::known::Known;
use super::request::{Fate, Request};
use super::settings::Change;
use super::workload::Workload;
use super::world::{Ask, Clear, Due, Event, Opening, Use, World};
use crate::random::SplitMix;

/// The requests, uses and establishments of a trace. What the trace does not show is drawn from what it shows at about the
/// same time.
pub(crate) struct Callers<'a> {
    pub(super) workload: &'a Workload,
    pub(super) known: &'a Known<'a>,
    change: &'a Change,
    pub(super) random: SplitMix,
    /// Those of the trace, and more that repeat them.
    pub(super) requests: Vec<Repeated>,
    pub(super) arrivals: Arrivals,
    pub(super) loop_: Option<Chains>,
    is_opened: Vec<bool>,
    /// Up to how many connections in use the server is as fast.
    server: Option<u32>,
    /// The part of the uses that leaks.
    leaks: f64,
    growth: f64,
    /// The nested requests of uses that began and have not made them.
    nested: BTreeMap<u32, u32>,
    /// Whether anything was drawn, so that another run would differ.
    pub(crate) has_drawn: bool,
}

/// As many of the nearest are drawn from.
const NEAR: usize = 64;

/// Establishments repeat those of the trace in order, as long as they are not further away than this part of the trace.
const SAME_TIME: u32 = 20;

/// Of callers that are ahead of the trace.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// If the trace does not show how long it takes to establish a connection.
pub const ASSUMED_OPENING: Duration = Duration::from_millis(20);

impl<'a> Callers<'a> {
    /// The callers of a trace, or with a `load` above 1 more of them.
    pub(crate) fn new(
        known: &'a Known<'a>,
        change: &'a Change,
        assumptions: &Assumptions,
        seed: u64,
    ) -> Self {
        let Assumptions { callers, growth, leaks, load, server, .. } = *assumptions;
        let workload = known.workload;
        let retries: BTreeSet<_> = workload.retries.values().map(|(next, _)| next).collect();
        let mut first: Vec<_> =
            (workload.warm.held.len() as u32..workload.requests.len() as u32).collect();
        first.retain(|number| {
            let is_retry = callers.is_none() && retries.contains(number);
            !is_retry && !workload.nested.contains_key(number)
        });
        let mut world = Self {
            workload,
            known,
            change,
            random: SplitMix(seed),
            requests: (0..workload.requests.len() as u32).map(Repeated::new).collect(),
            arrivals: Arrivals::new(first),
            loop_: None,
            is_opened: vec![false; workload.openings.len()],
            server,
            leaks: leaks * workload.leaks.map_or(0.0, |(_, rate)| rate),
            growth,
            nested: BTreeMap::new(),
            has_drawn: false,
        };
        if let Some(callers) = callers {
            world.chain(callers);
        }
        if load > 1.0 {
            world.add_load(load - 1.0);
        }
        world
    }

    pub(super) fn recorded(&self, request: u32) -> (u32, &'a Request) {
        let of = self.requests[request as usize].of;
        (of, &self.workload.requests[of as usize])
    }

    /// One of those that are nearest to a place in a list.
    pub(super) fn near(&mut self, length: usize, place: usize) -> usize {
        self.has_drawn = true;
        let from = place.saturating_sub(NEAR / 2).min(length.saturating_sub(NEAR));
        let to = (from + NEAR).min(length);
        from + self.random.below((to - from) as u64) as usize
    }

    /// The request of the trace whose use this one repeats: itself, or one that is drawn. `None`: it leaks.
    fn like(&mut self, request: u32) -> Option<u32> {
        let (of, recorded) = self.recorded(request);
        match recorded.fate {
            Fate::Served => Some(self.whole(of)),
            Fate::Held => {
                let so_far = recorded.used();
                let is_leaked = self.workload.leaks.is_some_and(|(least, _)| so_far >= least);
                if is_leaked { None } else { self.longer(so_far, Duration::MAX) }
            }
            Fate::Cancelled | Fate::Failed | Fate::Waiting => {
                let leaks = self.leaks > 0.0 && self.random.part() < self.leaks;
                let kind = usize::from(!self.workload.nested.contains_key(&of));
                let used = &self.known.used[kind];
                if leaks || used.is_empty() {
                    return None;
                }
                let (length, place) = (used.len(), used.partition_point(|&it| it < of));
                let place = self.near(length, place);
                Some(self.whole(used[place]))
            }
        }
    }

    /// Itself; for one that ended with a stall one of those that ended as long after they had begun as some time in the stall.
    fn whole(&mut self, request: u32) -> u32 {
        let Some(so_far) = self.workload.stalls.cut(request) else { return request };
        let recorded = &self.workload.requests[request as usize];
        let ended = recorded.ended().unwrap_or(recorded.asked);
        let at_most = ended.saturating_since(recorded.answered());
        self.longer(so_far, at_most).unwrap_or(request)
    }

    /// One of the uses that lasted for longer than one time, and at most for the other.
    fn longer(&mut self, than: Duration, at_most: Duration) -> Option<u32> {
        let uses = &self.known.by_length;
        let up_to = |most| uses.partition_point(|&it| self.used(it) <= most);
        let (from, to) = (up_to(than), up_to(at_most));
        if from >= to {
            return None;
        }
        self.has_drawn = true;
        Some(uses[from + self.random.below((to - from) as u64) as usize])
    }

    fn used(&self, request: u32) -> Duration {
        self.workload.requests[request as usize].used()
    }
}

impl World for Callers<'_> {
    fn begin(&mut self, plan: &mut dyn FnMut(Instant, Due)) {
        for (event, (at, _)) in (0..).zip(&self.workload.events) {
            plan(*at, Due::Event(event));
        }
    }

    fn arrival(&mut self) -> Option<(Instant, u32)> {
        self.next_arrival()
    }

    fn request(&mut self, request: u32) -> Ask {
        let (_, recorded) = self.recorded(request);
        let patience = match recorded.fate {
            Fate::Cancelled => Some(recorded.wait()),
            Fate::Served | Fate::Held | Fate::Failed | Fate::Waiting => {
                self.has_drawn |= !self.known.patience.is_unknown();
                self.known.patience.beyond(recorded.wait(), &mut self.random)
            }
        };
        let limit = self.workload.limits.of(recorded);
        Ask { limit, patience, purpose: recorded.purpose }
    }

    fn serve(&mut self, request: u32, in_use: u32, now: Instant) -> Use {
        let (of, _) = self.recorded(request);
        let Some(like) = self.like(request) else { return Use::default() };
        let (failure, clear) = self.workload.failures.get(&like).cloned().unzip();
        let clear = clear.flatten().filter(|_| like == of);
        let mut lasts = self.used(like);
        if let Some(&inner) = self.known.inner.get(&like) {
            let asked = self.workload.requests[inner as usize].asked;
            lasts = asked.saturating_since(self.workload.requests[like as usize].answered());
            self.nested.insert(request, inner);
        }
        if let Some(limit) = self.server {
            let before = self.known.in_use[like as usize].max(limit);
            let growth = f64::from(in_use.max(limit)) / f64::from(before);
            lasts = lasts.mul_f64(growth.powf(self.growth));
        }
        let lasts = Some(self.workload.stalls.awake(now + lasts).saturating_since(now));
        Use { lasts, failure, clear }
    }

    fn nested(&mut self, request: u32) -> Option<u32> {
        let inner = self.nested.remove(&request)?;
        Some(self.add(inner))
    }

    fn open(&mut self, _number: u64, now: Instant) -> Opening {
        let openings = &self.workload.openings;
        if openings.is_empty() {
            return Opening { lasts: ASSUMED_OPENING, service: None, failure: None, clear: None };
        }
        let window = self.workload.duration() / SAME_TIME;
        let from = openings.partition_point(|(at, _)| *at + window < now);
        let mut same_time =
            (from..openings.len()).take_while(|&place| openings[place].0 <= now + window);
        if let Some(place) = same_time.find(|&place| !self.is_opened[place]) {
            self.is_opened[place] = true;
            return openings[place].1.clone();
        }
        let (length, place) = (openings.len(), openings.partition_point(|(at, _)| *at < now));
        let place = self.near(length, place);
        self.workload.openings[place].1.clone()
    }

    fn end(&mut self, request: u32, now: Instant, was_served: bool) -> Option<(Instant, u32)> {
        let (of, _) = self.recorded(request);
        if self.workload.nested.contains_key(&of) {
            return None;
        }
        if self.loop_.is_none() {
            return if was_served { None } else { self.retry(request, now) };
        }
        let pause = self.pause(request, was_served)?;
        Some(match self.requests[request as usize].next() {
            Some(next) => (self.workload.stalls.awake(now + pause), next),
            // One that fails at once and comes at once would do so for ever.
            None => (now + pause.max(LEAST_PAUSE), self.repeat_another(request)),
        })
    }

    fn event(&mut self, event: u32) -> Event {
        match &self.workload.events[event as usize].1 {
            Event::SetOptions(options) => {
                let options: PoolOptions = self.change.apply(options);
                Event::SetOptions(Box::new(options))
            }
            event @ (Event::Ready
            | Event::Clear(_)
            | Event::Retire
            | Event::Release
            | Event::PeerCloses(_)) => event.clone(),
        }
    }

    fn clear(&self, clear: u32) -> Clear {
        self.workload.clears[clear as usize].clone()
    }
}
