//! The callers and the server of a trace, before a pool with other options.

use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions};

use super::run::{Ask, Clear, Due, Event, Opening, Use, World};
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
    /// Requests whose use ended, in order.
    used: Vec<u32>,
    /// Their times of use, ascending.
    uses: Vec<Duration>,
    patience: Patience,
    is_opened: Vec<bool>,
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

/// Of callers that are ahead of the trace.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// If the trace does not show how long it takes to establish a connection.
pub const ASSUMED_OPENING: Duration = Duration::from_millis(20);

impl<'a> Callers<'a> {
    /// The callers of a trace, or with a `load` above 1 more of them.
    pub(crate) fn new(
        workload: &'a Workload,
        change: &'a Change,
        callers: Option<u64>,
        load: f64,
        seed: u64,
    ) -> Self {
        let used: Vec<_> = workload.uses().map(|(number, _)| number).collect();
        let mut uses: Vec<_> = workload.uses().map(|(_, lasts)| lasts).collect();
        uses.sort_unstable();
        let repeat = |(of, request): (u32, &Request)| {
            let asked = request.asked;
            Repeated { of, asked, next: None, is_ahead: false }
        };
        let mut world = Self {
            workload,
            change,
            random: SplitMix(seed),
            requests: (0..).zip(&workload.requests).map(repeat).collect(),
            first: (workload.warm.held.len() as u32..workload.requests.len() as u32).collect(),
            loop_: None,
            used,
            uses,
            patience: Patience::of(workload),
            is_opened: vec![false; workload.openings.len()],
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
            while let Some((_, ended)) =
                ends.next_if(|&(at, ended)| at <= request.asked && ended < number)
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
            pauses[usize::from(!ended.was_served())].push((before, pause));
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
        if known.is_some() && recorded.was_served() == was_served {
            return known;
        }
        let pauses = &self.loop_.as_ref()?.pauses[usize::from(!was_served)];
        if pauses.is_empty() {
            return known;
        }
        let (length, place) = (pauses.len(), pauses.partition_point(|&(number, _)| number < of));
        let place = self.near(length, place);
        let drawn = self.loop_.as_ref()?.pauses[usize::from(!was_served)][place].1;
        // A caller that made no other request until the end took at least that long.
        let least = match (known, recorded.ended()) {
            (None, Some(ended)) if !is_ahead => {
                self.workload.end.saturating_since(ended) + Duration::from_nanos(1)
            }
            _ => Duration::ZERO,
        };
        Some(drawn.max(least))
    }

    /// A request of a caller that is ahead of the trace.
    fn repeat_another(&mut self, request: u32) -> u32 {
        let (of, _) = self.recorded(request);
        let least = self.workload.warm.held.len();
        let counted = self.workload.requests.len() - least;
        let place = self.near(counted, of as usize - least.min(of as usize));
        let of = (least + place) as u32;
        let number = self.requests.len() as u32;
        let asked = self.workload.requests[of as usize].asked;
        self.requests.push(Repeated { of, asked, next: None, is_ahead: true });
        number
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

    fn serve(&mut self, request: u32, _now: Instant) -> Use {
        let (of, recorded) = self.recorded(request);
        let drawn = |lasts| Use { lasts, failure: None, clear: None };
        match &recorded.fate {
            Fate::Served(used) => used.clone(),
            Fate::Held(so_far) => {
                let longer = self.uses.partition_point(|use_| use_ <= so_far);
                let more = (self.uses.len() - longer) as u64;
                if more == 0 {
                    return drawn(None);
                }
                self.has_drawn = true;
                drawn(Some(self.uses[longer + self.random.below(more) as usize]))
            }
            Fate::Cancelled | Fate::Failed | Fate::Waiting => {
                if self.used.is_empty() {
                    return drawn(None);
                }
                let (length, place) = (self.used.len(), self.used.partition_point(|&it| it < of));
                let place = self.near(length, place);
                let near = self.used[place];
                match &self.workload.requests[near as usize].fate {
                    Fate::Served(used) => Use { clear: None, ..used.clone() },
                    Fate::Held(_) | Fate::Cancelled | Fate::Failed | Fate::Waiting => drawn(None),
                }
            }
        }
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
        self.loop_.as_ref()?;
        let pause = self.pause(request, was_served)?;
        let next = self.requests[request as usize].next.map(|(next, _)| next);
        Some(match next {
            Some(next) => (now + pause, next),
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
