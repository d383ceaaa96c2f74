//! The callers and the server of a trace, before a pool with other options.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions};

use super::Assumptions;
use super::followers::{self, has_failed};
use super::run::{Ask, Clear, Due, Event, Opening, Use, World};
use super::server::in_use_at_begin;
use super::settings::Change;
use super::workload::{Fate, Request, Workload};
use crate::random::SplitMix;

/// The requests, uses and establishments of a trace. What the trace does not show is drawn from what it shows at about the
/// same time.
pub(crate) struct Callers<'a> {
    workload: &'a Workload,
    change: &'a Change,
    random: SplitMix,
    /// Each request, by the number of the one in the trace that it repeats.
    requests: Vec<Repeated>,
    first: Vec<u32>,
    loop_: Option<Chains>,
    /// Requests whose use ended, in order: nested ones, and others.
    used: [Vec<u32>; 2],
    /// Their times of use, ascending, without those that ended with a stall.
    uses: Vec<(Duration, u32)>,
    patience: Patience,
    is_opened: Vec<bool>,
    /// The server's limit, and how many connections were in use when each use of the trace began.
    server: Option<(u32, Vec<u32>)>,
    /// The part of the uses that leaks.
    leaks: f64,
    growth: f64,
    /// Requests that failed and may be tried again, in order; and how often.
    failed: Vec<u32>,
    most_tries: u32,
    /// The nested request of each use of the trace that has one, and of those that began and have not made it.
    inner: BTreeMap<u32, u32>,
    nested: BTreeMap<u32, u32>,
    /// Whether anything was drawn, so that another run would differ.
    pub(crate) has_drawn: bool,
}

/// A request that repeats one of the trace.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    of: u32,
    asked: Instant,
    /// In a closed loop, the next request of the same caller, and how long after the end of this one.
    next: Option<(u32, Duration)>,
    /// Whether its caller is ahead of the trace, and would not have come there.
    is_ahead: bool,
    /// How often it was tried before.
    tries: u32,
}

/// How long callers of a closed loop take until their next request.
struct Chains {
    /// After requests that were served, and after others; each with the number of the request, in order.
    pauses: [Vec<(u32, Duration)>; 2],
}

/// As many of the nearest are drawn from.
const NEAR: usize = 64;

/// Establishments repeat those of the trace in order, as long as they are not further away than this part of the trace.
const SAME_TIME: u32 = 20;

/// To draw one that is long enough.
const TRIES: usize = 16;

/// Of callers that are ahead of the trace.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// If the trace does not show how long it takes to establish a connection.
pub const ASSUMED_OPENING: Duration = Duration::from_millis(20);

impl<'a> Callers<'a> {
    /// The callers of a trace, or with a `load` above 1 more of them.
    pub(crate) fn new(
        workload: &'a Workload,
        change: &'a Change,
        assumptions: &Assumptions,
        seed: u64,
    ) -> Self {
        let Assumptions { callers, growth, leaks, load, server, .. } = *assumptions;
        let used = workload.uses().map(|(number, _)| number);
        let (nested, others) = used.partition(|number| workload.nested.contains_key(number));
        let is_whole = |(number, _): &(u32, _)| workload.stalls.cut(*number).is_none();
        let uses = workload.uses().filter(is_whole).map(|(number, lasts)| (lasts, number));
        let mut uses: Vec<_> = uses.collect();
        uses.sort_unstable();
        let repeat = |(of, request): (u32, &Request)| {
            let asked = request.asked;
            Repeated { of, asked, next: None, is_ahead: false, tries: 0 }
        };
        let mut first: Vec<_> =
            (workload.warm.held.len() as u32..workload.requests.len() as u32).collect();
        first.retain(|number| !workload.nested.contains_key(number));
        if callers.is_none() {
            let retries: BTreeSet<_> = workload.retries.values().map(|(next, _)| next).collect();
            first.retain(|number| !retries.contains(number));
        }
        let inner = workload.nested.iter().map(|(&inner, &(outer, _))| (outer, inner)).collect();
        let (tries, most_tries) = followers::tries(&workload.retries);
        let failed = (0..).zip(&workload.requests).filter(|(number, request)| {
            has_failed(request) && tries.get(number).is_none_or(|it| *it < most_tries)
        });
        let failed = failed.map(|(number, _)| number).collect();
        let mut world = Self {
            workload,
            change,
            random: SplitMix(seed),
            requests: (0..).zip(&workload.requests).map(repeat).collect(),
            first,
            loop_: None,
            used: [nested, others],
            uses,
            patience: Patience::of(workload),
            is_opened: vec![false; workload.openings.len()],
            server: server.map(|limit| (limit, in_use_at_begin(workload))),
            leaks: leaks * workload.leaks.map_or(0.0, |(_, rate)| rate),
            growth,
            failed,
            most_tries,
            inner,
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

    /// Makes each request the next one of a caller that was not waiting and held no connection. Which one it was the trace
    /// does not tell.
    fn chain(&mut self, callers: u64) {
        self.has_drawn = true;
        let mut ends: Vec<_> = (0..)
            .zip(&self.workload.requests)
            .filter(|(number, _)| !self.workload.nested.contains_key(number))
            .filter_map(|(number, request)| Some((request.ended()?, number)))
            .collect();
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let free = callers.saturating_sub(self.workload.warm.held.len() as u64);
        let mut thinking: Vec<Option<u32>> = vec![None; usize::try_from(free).unwrap_or(0)];
        let mut pauses = [Vec::new(), Vec::new()];
        let mut first = Vec::new();
        for &number in &self.first {
            let request = &self.workload.requests[number as usize];
            let stall = self.workload.stalls.at(request.asked);
            let before = stall.map_or(request.asked, |(begin, _)| begin);
            while let Some((_, ended)) = ends.next_if(|&(at, ended)| at <= before && ended < number)
            {
                thinking.push(Some(ended));
            }
            let place = self.random.below(thinking.len() as u64) as usize;
            let before = if thinking.is_empty() { None } else { thinking.swap_remove(place) };
            let Some(before) = before else {
                first.push(number);
                continue;
            };
            let ended = &self.workload.requests[before as usize];
            let since = ended.ended().unwrap_or(ended.asked);
            let pause = request.asked.saturating_since(since);
            self.requests[before as usize].next = Some((number, pause));
            if stall.is_none() {
                pauses[usize::from(!ended.was_served())].push((before, pause));
            }
        }
        for pauses in &mut pauses {
            pauses.sort_unstable();
        }
        self.first = first;
        self.loop_ = Some(Chains { pauses });
    }

    /// Adds this part of the callers again, a little later: of requests if callers do not come back.
    fn add_load(&mut self, part: f64) {
        self.has_drawn = true;
        let gap = self.workload.duration() / (self.workload.counted().len() as u32).max(1);
        let offset = self.random.part();
        let copies_before = |index: usize| (index as f64 * part + offset).floor() as u64;
        for index in 0..self.first.len() {
            for _ in copies_before(index)..copies_before(index + 1) {
                let shift = self.random.below(gap.as_nanos() as u64 * 8 + 1);
                let copy = self.copy_chain(self.first[index], Duration::from_nanos(shift));
                self.first.push(copy);
            }
        }
    }

    /// Another caller like the one that makes this request, and returns its first request.
    fn copy_chain(&mut self, first: u32, shift: Duration) -> u32 {
        let copy = self.requests.len() as u32;
        let mut next = Some((first, Duration::ZERO));
        while let Some((number, _)) = next {
            let original = self.requests[number as usize];
            let place = self.requests.len() as u32;
            let following = original.next.map(|(_, pause)| (place + 1, pause));
            let asked = original.asked + shift;
            self.requests.push(Repeated { asked, next: following, ..original });
            next = original.next;
        }
        copy
    }

    fn recorded(&self, request: u32) -> (u32, &'a Request) {
        let of = self.requests[request as usize].of;
        (of, &self.workload.requests[of as usize])
    }

    /// One of those that are nearest to a place in a list.
    fn near(&mut self, length: usize, place: usize) -> usize {
        self.has_drawn = true;
        let from = place.saturating_sub(NEAR / 2).min(length.saturating_sub(NEAR));
        let to = (from + NEAR).min(length);
        from + self.random.below((to - from) as u64) as usize
    }

    /// How long a caller takes after a request, by what became of it.
    fn pause(&mut self, request: u32, was_served: bool) -> Option<Duration> {
        let (of, recorded) = self.recorded(request);
        let Repeated { next, is_ahead, .. } = self.requests[request as usize];
        let known = next.map(|(_, pause)| pause);
        let same = known.filter(|_| recorded.was_served() == was_served);
        let stall = next.filter(|_| same.is_some()).and_then(|(next, _)| self.stall_before(next));
        if same.is_some() && stall.is_none() {
            return same;
        }
        let length = self.loop_.as_ref()?.pauses[usize::from(!was_served)].len();
        if length == 0 {
            return known;
        }
        // It was over some time during the stall; and a caller that made no other request until the end took longer.
        let until = match (stall, known) {
            (Some((begin, _)), _) => Some(begin),
            (None, None) if !is_ahead => Some(self.workload.end + Duration::from_nanos(1)),
            (None, _) => None,
        };
        let ended = until.zip(recorded.ended());
        let least = ended.map_or(Duration::ZERO, |(until, ended)| until.saturating_since(ended));
        for _ in 0..TRIES {
            let pauses = &self.loop_.as_ref()?.pauses[usize::from(!was_served)];
            let place = pauses.partition_point(|&(number, _)| number < of);
            let place = self.near(length, place);
            let drawn = self.loop_.as_ref()?.pauses[usize::from(!was_served)][place].1;
            if drawn >= least && stall.and(known).is_none_or(|most| drawn <= most) {
                return Some(drawn);
            }
        }
        Some(known.unwrap_or(least))
    }

    /// The stall with which a request of the trace came.
    fn stall_before(&self, request: u32) -> Option<(Instant, Instant)> {
        let (_, recorded) = self.recorded(request);
        self.workload.stalls.at(recorded.asked)
    }

    /// The next try of a request that failed: its own if it failed in the trace, too, or that of another one.
    fn retry(&mut self, request: u32, now: Instant) -> Option<(Instant, u32)> {
        let (mut failed, _) = self.recorded(request);
        let tries = self.requests[request as usize].tries + 1;
        if tries > self.most_tries {
            return None;
        }
        let place = self.failed.binary_search(&failed);
        if let (Err(place), false) = (place, self.workload.retries.is_empty()) {
            let place = self.near(self.failed.len(), place);
            failed = self.failed[place];
        }
        let &(of, after) = self.workload.retries.get(&failed)?;
        let at = self.workload.stalls.awake(now + after);
        let number = self.add(of, at);
        self.requests[number as usize].tries = tries;
        Some((at, number))
    }

    /// One more request that repeats one of the trace.
    fn add(&mut self, of: u32, asked: Instant) -> u32 {
        self.requests.push(Repeated { of, asked, next: None, is_ahead: false, tries: 0 });
        self.requests.len() as u32 - 1
    }

    /// A request of a caller that is ahead of the trace.
    fn repeat_another(&mut self, request: u32) -> u32 {
        let (of, _) = self.recorded(request);
        let least = self.workload.warm.held.len();
        let counted = self.workload.requests.len() - least;
        let place = self.near(counted, of as usize - least.min(of as usize));
        let of = (least + place) as u32;
        let of = self.workload.nested.get(&of).map_or(of, |&(outer, _)| outer);
        let number = self.requests.len() as u32;
        let asked = self.workload.requests[of as usize].asked;
        self.requests.push(Repeated { of, asked, next: None, is_ahead: true, tries: 0 });
        number
    }

    /// The request of the trace whose use this one repeats: itself, or one that is drawn. `None`: it leaks.
    fn like(&mut self, request: u32) -> Option<u32> {
        let (of, recorded) = self.recorded(request);
        match recorded.fate {
            Fate::Served(_) => Some(self.whole(of)),
            Fate::Held(so_far) if self.workload.leaks.is_some_and(|(least, _)| so_far >= least) => {
                None
            }
            Fate::Held(so_far) => self.longer(so_far, Duration::MAX),
            Fate::Cancelled | Fate::Failed | Fate::Waiting => {
                let leaks = self.leaks > 0.0 && self.random.part() < self.leaks;
                let kind = usize::from(!self.workload.nested.contains_key(&of));
                let used = &self.used[kind];
                if leaks || used.is_empty() {
                    return None;
                }
                let (length, place) = (used.len(), used.partition_point(|&it| it < of));
                let place = self.near(length, place);
                Some(self.whole(self.used[kind][place]))
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
        let from = self.uses.partition_point(|&(lasts, _)| lasts <= than);
        let to = self.uses.partition_point(|&(lasts, _)| lasts <= at_most);
        if from >= to {
            return None;
        }
        self.has_drawn = true;
        Some(self.uses[from + self.random.below((to - from) as u64) as usize].1)
    }
}

impl World for Callers<'_> {
    fn begin(&mut self, plan: &mut dyn FnMut(Instant, Due)) {
        for (event, (at, _)) in (0..).zip(&self.workload.events) {
            plan(*at, Due::Event(event));
        }
        for &request in &self.first {
            plan(self.requests[request as usize].asked, Due::Ask(request));
        }
    }

    fn request(&mut self, request: u32) -> Ask {
        let (_, recorded) = self.recorded(request);
        let patience = match recorded.fate {
            Fate::Cancelled => Some(recorded.wait),
            Fate::Served(_) | Fate::Held(_) | Fate::Failed | Fate::Waiting => {
                let is_drawn = !self.patience.cancelled.is_empty();
                self.has_drawn |= is_drawn;
                self.patience.beyond(recorded.wait, &mut self.random)
            }
        };
        Ask { limit: recorded.limit, patience, purpose: recorded.purpose }
    }

    fn serve(&mut self, request: u32, in_use: u32, now: Instant) -> Use {
        let (of, _) = self.recorded(request);
        let like = self.like(request);
        let fate = like.map(|like| (like, &self.workload.requests[like as usize].fate));
        let Some((like, Fate::Served(used))) = fate else {
            return Use { lasts: None, failure: None, clear: None };
        };
        let clear = used.clear.filter(|_| like == of);
        let mut used = Use { clear, ..used.clone() };
        let Some(lasts) = &mut used.lasts else { return used };
        if let Some(&inner) = self.inner.get(&like) {
            let asked = self.workload.requests[inner as usize].asked;
            *lasts = asked.saturating_since(self.workload.requests[like as usize].answered());
            self.nested.insert(request, inner);
        }
        if let Some((limit, recorded)) = &self.server {
            let (before, now) = (recorded[like as usize].max(*limit), in_use.max(*limit));
            *lasts = lasts.mul_f64((f64::from(now) / f64::from(before)).powf(self.growth));
        }
        *lasts = self.workload.stalls.awake(now + *lasts).saturating_since(now);
        used
    }

    fn nested(&mut self, request: u32) -> Option<u32> {
        let inner = self.nested.remove(&request)?;
        Some(self.add(inner, self.workload.requests[inner as usize].asked))
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
        let next = self.requests[request as usize].next.map(|(next, _)| next);
        Some(match next {
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

/// How long callers wait until they cancel. Those that were served did not show it: each would have waited for longer. (The
/// estimate of Kaplan and Meier; beyond the longest wait of the trace, at the rate since the first one that cancelled.)
struct Patience {
    /// The times after which callers cancelled, ascending, and the part of the callers that waits for longer.
    cancelled: Vec<(Duration, f64)>,
    /// The longest wait, and the time that callers wait on average until one cancels.
    rest: (Duration, Duration),
}

impl Patience {
    fn of(workload: &Workload) -> Self {
        let mut waits: Vec<_> = workload
            .counted()
            .iter()
            .map(|request| (request.wait, request.fate != Fate::Cancelled))
            .collect();
        waits.sort_unstable();
        let mut longer = 1.0;
        let mut cancelled = Vec::new();
        for (place, &(wait, is_censored)) in waits.iter().enumerate() {
            if !is_censored {
                let left = (waits.len() - place) as f64;
                longer *= 1.0 - 1.0 / left;
                cancelled.push((wait, longer));
            }
        }
        let longest = waits.last().map_or(Duration::ZERO, |&(wait, _)| wait);
        let first = cancelled.first().map_or(longest, |&(after, _)| after);
        let waited = waits.iter().map(|&(wait, _)| wait.saturating_sub(first).as_secs_f64());
        let mean = waited.sum::<f64>() / cancelled.len().max(1) as f64;
        Self { cancelled, rest: (longest, Duration::from_secs_f64(mean)) }
    }

    /// The patience of a caller that has waited for this long; `None` if no caller is known to cancel.
    fn beyond(&self, waited: Duration, random: &mut SplitMix) -> Option<Duration> {
        if self.cancelled.is_empty() {
            return None;
        }
        let from = self.cancelled.partition_point(|&(after, _)| after <= waited);
        let now = if from == 0 { 1.0 } else { self.cancelled[from - 1].1 };
        let rest = &self.cancelled[from..];
        let drawn = random.part() * now;
        let place = rest.partition_point(|&(_, longer)| longer > drawn);
        let known = rest.get(place).map(|&(after, _)| after);
        known.or_else(|| {
            let (longest, mean) = self.rest;
            let more = -(1.0 - random.part()).ln() * mean.as_secs_f64();
            Some(longest.max(waited) + Duration::from_secs_f64(more))
        })
    }
}
