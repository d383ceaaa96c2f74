//! Which requests follow each other: of the same caller, of more callers than those of the trace, and again after a failure.

use std::time::Duration;

use cenote_core::pool::Instant;

use super::callers::Callers;
use super::followers;

/// A request that repeats one of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    pub(super) of: u32,
    next: u32,
    /// How often it was tried before.
    pub(super) tries: u32,
    /// Whether its caller is ahead of the trace, and would not have come there.
    pub(super) is_ahead: bool,
}

/// To draw a pause that is long enough.
const TRIES: usize = 16;

/// No next request is known.
const NONE: u32 = u32::MAX;

impl Repeated {
    pub(super) const fn new(of: u32) -> Self {
        Self { of, next: NONE, tries: 0, is_ahead: false }
    }

    /// In a closed loop, the next request of the same caller.
    pub(super) fn next(self) -> Option<u32> {
        Some(self.next).filter(|&next| next != NONE)
    }
}

/// Requests that are made whatever happens to others, in the order of time.
#[derive(Default)]
pub(super) struct Arrivals {
    /// Those of the trace.
    first: Vec<u32>,
    /// Those of more callers.
    copies: Vec<(Instant, u32)>,
    /// How many of both were made.
    made: (usize, usize),
}

/// The requests of a closed loop after which the trace shows how long their callers took until the next one: those that were
/// served, and others.
pub(super) struct Chains {
    pub(super) known: [Vec<u32>; 2],
}

impl Arrivals {
    pub(super) fn new(first: Vec<u32>) -> Self {
        Self { first, ..Self::default() }
    }
}

impl Callers<'_> {
    /// Makes each request the next one of a caller that was not waiting and held no connection. Which one it was the trace
    /// does not tell.
    pub(super) fn chain(&mut self, callers: u64) {
        self.has_drawn = true;
        let workload = self.workload;
        let ends = followers::ends(&workload.requests);
        let mut ends = ends.filter(|(_, it)| !workload.nested.contains_key(it)).peekable();
        let free = callers.saturating_sub(workload.warm.held.len() as u64);
        let mut thinking: Vec<Option<u32>> = vec![None; usize::try_from(free).unwrap_or(0)];
        let mut known = [Vec::new(), Vec::new()];
        let mut first = Vec::new();
        for number in std::mem::take(&mut self.arrivals.first) {
            let asked = workload.requests[number as usize].asked;
            let stall = workload.stalls.at(asked);
            let before = stall.map_or(asked, |(begin, _)| begin);
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
            self.requests[before as usize].next = number;
            if stall.is_none() {
                let was_served = workload.requests[before as usize].was_served();
                known[usize::from(!was_served)].push(before);
            }
        }
        for known in &mut known {
            known.sort_unstable();
        }
        self.arrivals.first = first;
        self.loop_ = Some(Chains { known });
    }

    /// How long the caller of a request took until the next one.
    pub(super) fn pause_after(&self, request: u32) -> Option<Duration> {
        let next = self.requests[request as usize].next()?;
        let (_, ended) = self.recorded(request);
        let since = ended.ended().unwrap_or(ended.asked);
        Some(self.recorded(next).1.asked.saturating_since(since))
    }

    /// Adds this part of the callers again, a little later: of requests if callers do not come back.
    pub(super) fn add_load(&mut self, part: f64) {
        self.has_drawn = true;
        let gap = self.workload.duration() / (self.workload.counted().len() as u32).max(1);
        let offset = self.random.part();
        let copies_before = |index: usize| (index as f64 * part + offset).floor() as u64;
        for index in 0..self.arrivals.first.len() {
            for _ in copies_before(index)..copies_before(index + 1) {
                let shift = self.random.below(gap.as_nanos() as u64 * 8 + 1);
                let first = self.arrivals.first[index];
                let asked = self.recorded(first).1.asked + Duration::from_nanos(shift);
                let copy = self.copy_chain(first);
                self.arrivals.copies.push((asked, copy));
            }
        }
        self.arrivals.copies.sort_unstable();
    }

    /// Another caller like the one that makes this request, and returns its first request.
    fn copy_chain(&mut self, first: u32) -> u32 {
        let copy = self.requests.len() as u32;
        let mut next = Some(first);
        while let Some(number) = next {
            let original = self.requests[number as usize];
            next = original.next();
            let following = next.map_or(NONE, |_| self.requests.len() as u32 + 1);
            self.requests.push(Repeated { next: following, ..original });
        }
        copy
    }

    /// How long a caller takes after a request, by what became of it.
    pub(super) fn pause(&mut self, request: u32, was_served: bool) -> Option<Duration> {
        let (of, recorded) = self.recorded(request);
        let Repeated { is_ahead, .. } = self.requests[request as usize];
        let next = self.requests[request as usize].next();
        let known = self.pause_after(request);
        let same = known.filter(|_| recorded.was_served() == was_served);
        let stall = next.filter(|_| same.is_some()).and_then(|next| self.stall_before(next));
        if same.is_some() && stall.is_none() {
            return same;
        }
        let others = &self.loop_.as_ref()?.known[usize::from(!was_served)];
        let (length, place) = (others.len(), others.partition_point(|&number| number < of));
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
            let place = self.near(length, place);
            let other = self.loop_.as_ref()?.known[usize::from(!was_served)][place];
            let drawn = self.pause_after(other)?;
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
    pub(super) fn retry(&mut self, request: u32, now: Instant) -> Option<(Instant, u32)> {
        let (mut failed, _) = self.recorded(request);
        let tries = self.requests[request as usize].tries + 1;
        if tries > self.known.most_tries {
            return None;
        }
        let all = &self.known.failed;
        let place = all.binary_search(&failed);
        if let (Err(place), false) = (place, self.workload.retries.is_empty()) {
            failed = all[self.near(all.len(), place)];
        }
        let &(of, after) = self.workload.retries.get(&failed)?;
        let at = self.workload.stalls.awake(now + after);
        let number = self.add(of);
        self.requests[number as usize].tries = tries;
        Some((at, number))
    }

    /// One more request that repeats one of the trace.
    pub(super) fn add(&mut self, of: u32) -> u32 {
        self.requests.push(Repeated::new(of));
        self.requests.len() as u32 - 1
    }

    /// A request of a caller that is ahead of the trace.
    pub(super) fn repeat_another(&mut self, request: u32) -> u32 {
        let (of, _) = self.recorded(request);
        let least = self.workload.warm.held.len();
        let counted = self.workload.requests.len() - least;
        let place = self.near(counted, of as usize - least.min(of as usize));
        let of = (least + place) as u32;
        let of = self.workload.nested.get(&of).map_or(of, |&(outer, _)| outer);
        let number = self.add(of);
        self.requests[number as usize].is_ahead = true;
        number
    }

    /// The next request that is made whatever happens to others.
    pub(super) fn next_arrival(&mut self) -> Option<(Instant, u32)> {
        let Arrivals { first, copies, made } = &mut self.arrivals;
        let requests = &self.workload.requests;
        let own = first.get(made.0).map(|&it| (requests[it as usize].asked, it));
        let copy = copies.get(made.1).copied();
        if own.is_some_and(|(at, _)| copy.is_none_or(|(other, _)| at <= other)) {
            made.0 += 1;
            return own;
        }
        made.1 += 1;
        copy
    }
}
