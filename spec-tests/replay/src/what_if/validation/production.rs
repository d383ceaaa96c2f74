//! Callers and a server that are drawn from a seed, and are the same whatever the options of the pool are.

use std::collections::BTreeSet;
use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions, PoolState, Purpose};
use cenote_core::trace::{JournalOptions, TraceInfo};

use crate::random::SplitMix;
use crate::record::RecordedRun;
use crate::what_if::run::run;
use crate::what_if::world::{Ask, Clear, Due, Event, FailedOpening, Opening, Use, Warm, World};

/// Callers that come whatever happens to others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// On average.
    pub(super) apart: Duration,
    pub(super) shape: Shape,
}

/// When they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Independently of each other; from the first time to the second, in tenths, this often.
    Random {
        peak: (Duration, Duration, u32),
    },
    Regular,
    /// This many at once.
    Bursts(u32),
    /// Half of them this long apart, all of each time at once.
    Cron(Duration),
    /// More and fewer, in waves of this length.
    Waves(Duration),
    /// From this time on three times as often.
    Step(Duration),
}

/// Callers that come again some time after their last request ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) callers: u32,
    /// On average.
    pub(super) pause: Duration,
    pub(super) is_fixed: bool,
}

/// How long uses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    Fixed,
    /// From 20 % to 180 % of the mean.
    Even,
    /// 1 in 50 takes ten times as long.
    Slow,
    /// An exponential distribution.
    Exponential,
}

/// How long callers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limits {
    /// As long as the pool's option says, if it is set.
    Option,
    /// Up to a deadline, which the trace has.
    Deadline(Duration),
    /// Until they cancel; the trace does not show how long those would have waited that were served.
    Cancel(Duration),
}

/// What limits the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    Unlimited,
    /// Uses take longer in proportion if more than this number of connections are in use.
    Shared(u32),
    /// It serves this many at once, and the others in turn.
    Slots(u32),
}

/// What the pool does not decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Production {
    pub(super) seed: u64,
    pub(super) open: Option<Open>,
    pub(super) closed: Option<Closed>,
    pub(super) lengths: Lengths,
    pub(super) used_for: Duration,
    pub(super) limits: Limits,
    pub(super) opening: Duration,
    /// 1 in this many establishments fails; 0: none.
    pub(super) failed_opening: u64,
    pub(super) duration: Duration,
    /// Callers come again at once if they were not served, this often.
    pub(super) retries: u32,
    pub(super) server: Server,
    /// The program stands still, this often and for this long.
    pub(super) stalls: Option<(Duration, Duration)>,
    /// 1 in this many uses does not end; 0: none.
    pub(super) leaks: u64,
    /// Callers ask for a second connection before they check in the first.
    pub(super) is_nested: bool,
}

impl Production {
    /// The trace of a pool with these options.
    pub(super) fn record(&self, options: &PoolOptions) -> Vec<u8> {
        let pool = PoolState::new(Instant::ORIGIN, options.clone(), &mut |_| {});
        let pool = pool.expect("valid options");
        let info = TraceInfo::new("db.example.com:27017");
        let journal = JournalOptions::default();
        let mut recorded = RecordedRun::begin_with(info, pool, journal, Vec::new());
        let slots = if let Server::Slots(slots) = self.server { slots } else { 0 };
        let slots = vec![Instant::ORIGIN; slots as usize];
        let mut world =
            Running { production: *self, asked: Vec::new(), has_nested: BTreeSet::new(), slots };
        let end = Instant::ORIGIN + self.duration;
        run(&mut recorded, &mut world, &Warm::default(), (Instant::ORIGIN, end), None);
        recorded.finish().expect("memory")
    }

    /// Random numbers of their own for each purpose and number, so that nothing depends on the order in which they are drawn.
    fn random(&self, purpose: Draw, number: u64) -> SplitMix {
        let seed = self.seed.wrapping_mul(31).wrapping_add(purpose as u64);
        let mut seeds = SplitMix(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        SplitMix(seeds.number())
    }

    /// What would happen then, and happens later if the program stands still.
    fn awake(&self, at: Instant) -> Instant {
        let Some((apart, lasts)) = self.stalls else { return at };
        let since = Duration::from_nanos(at.as_nanos() % apart.as_nanos() as u64);
        if since < lasts && at.as_nanos() >= apart.as_nanos() as u64 {
            at + (lasts - since)
        } else {
            at
        }
    }

    /// When open callers come, since the start.
    fn arrivals(&self, open: Open) -> Vec<Duration> {
        let (mut random, mut all) = (self.random(Draw::Arrivals, 0), Vec::new());
        let Open { apart, shape } = open;
        if let Shape::Cron(times) = shape {
            let each = (times.as_nanos() / apart.as_nanos() / 2) as usize;
            let count = (self.duration.as_nanos() / times.as_nanos()) as u32;
            let at_once = (1..=count).flat_map(|time| vec![times * time; each]);
            all.extend(at_once);
        }
        let mut at = Duration::ZERO;
        loop {
            at += match shape {
                Shape::Random { peak: (from, to, tenths) } if (from..to).contains(&at) => {
                    exponential(apart * 10 / tenths, &mut random)
                }
                Shape::Random { .. } => exponential(apart, &mut random),
                Shape::Regular => apart,
                Shape::Bursts(size) => exponential(apart * size, &mut random),
                Shape::Cron(_) => exponential(apart * 2, &mut random),
                // From 40 % to 160 %, up and down.
                Shape::Waves(length) => {
                    let place =
                        (at.as_nanos() % length.as_nanos()) as f64 / length.as_nanos() as f64;
                    let height = 1.0 - (2.0 * place - 1.0).abs();
                    exponential(apart * 100 / (40 + (height * 120.0) as u32), &mut random)
                }
                Shape::Step(from) if at < from => exponential(apart * 2, &mut random),
                Shape::Step(_) => exponential(apart * 2 / 3, &mut random),
            };
            if at >= self.duration {
                break;
            }
            let count = if let Shape::Bursts(size) = shape { size } else { 1 };
            all.extend((0..count).map(|_| at));
        }
        all.sort_unstable();
        all
    }
}

/// What random numbers are for.
#[derive(Clone, Copy)]
enum Draw {
    Arrivals = 1,
    Use = 2,
    Pause = 3,
    Limit = 4,
    Opening = 5,
}

/// Production with its callers.
struct Running {
    production: Production,
    /// The requests: the caller of each, which request of the caller it is, and how often it was tried before.
    asked: Vec<(u32, u32, u32)>,
    has_nested: BTreeSet<u32>,
    /// From when on each of the server's is free.
    slots: Vec<Instant>,
}

/// Nested requests have numbers from it on.
const NESTED: u32 = 1 << 20;

/// Callers of the closed loop have numbers below it.
const OPEN: u32 = 1 << 16;

impl Running {
    /// A number for the draws of a request: the same whatever happened before, and in another try.
    fn key(&self, request: u32) -> u64 {
        let (caller, number, _) = self.asked[request as usize];
        u64::from(caller) << 32 | u64::from(number)
    }

    fn add(&mut self, caller: u32, number: u32, tries: u32) -> u32 {
        self.asked.push((caller, number, tries));
        self.asked.len() as u32 - 1
    }

    /// With what the server adds to it.
    fn served(&mut self, lasts: Duration, in_use: u32, now: Instant) -> Duration {
        match self.production.server {
            Server::Unlimited => lasts,
            Server::Shared(most) => lasts * in_use.max(most) / most,
            Server::Slots(_) => {
                let next = self.slots.iter_mut().min().expect("a slot");
                *next = (*next).max(now) + lasts;
                next.saturating_since(now)
            }
        }
    }
}

impl World for Running {
    fn begin(&mut self, plan: &mut dyn FnMut(Instant, Due)) {
        plan(Instant::ORIGIN, Due::Event(0));
        let production = self.production;
        let arrivals = production.open.map(|open| production.arrivals(open)).unwrap_or_default();
        for (caller, at) in (OPEN..).zip(arrivals) {
            let request = self.add(caller, 0, 0);
            plan(production.awake(Instant::ORIGIN + at), Due::Ask(request));
        }
        if let Some(Closed { callers, pause, .. }) = production.closed {
            for caller in 0..callers {
                let mut random = production.random(Draw::Arrivals, caller.into());
                let request = self.add(caller, 0, 0);
                let at = Duration::from_nanos(random.below(pause.as_nanos() as u64 * 2 + 1));
                plan(production.awake(Instant::ORIGIN + at), Due::Ask(request));
            }
        }
    }

    fn request(&mut self, request: u32) -> Ask {
        let mut random = self.production.random(Draw::Limit, self.key(request));
        let mut varied = |limit| even(limit, 50, &mut random);
        let (limit, patience) = match self.production.limits {
            Limits::Option => (None, None),
            Limits::Deadline(limit) => (Some(varied(limit)), None),
            Limits::Cancel(limit) => (None, Some(varied(limit))),
        };
        Ask { limit, patience, purpose: Purpose::Other }
    }

    fn serve(&mut self, request: u32, in_use: u32, now: Instant) -> Use {
        let Production { lengths, used_for, leaks, .. } = self.production;
        let mut random = self.production.random(Draw::Use, self.key(request));
        let lasts = match lengths {
            Lengths::Fixed => used_for,
            Lengths::Even => even(used_for, 80, &mut random),
            Lengths::Slow if random.one_in(50) => even(used_for, 80, &mut random) * 10,
            Lengths::Slow => even(used_for, 80, &mut random),
            Lengths::Exponential => exponential(used_for, &mut random),
        };
        let ends = now + self.served(lasts, in_use, now);
        let ends = self.production.awake(ends);
        let lasts = (!random.one_in(leaks)).then(|| ends.saturating_since(now));
        Use { lasts, failure: None, clear: None }
    }

    fn nested(&mut self, request: u32) -> Option<u32> {
        let (caller, number, _) = self.asked[request as usize];
        let is_first = number < NESTED && self.has_nested.insert(request);
        (self.production.is_nested && is_first).then(|| self.add(caller, number + NESTED, 0))
    }

    fn open(&mut self, number: u64, _now: Instant) -> Opening {
        let mut random = self.production.random(Draw::Opening, number);
        let lasts = even(self.production.opening, 80, &mut random);
        let failure = random.one_in(self.production.failed_opening).then(FailedOpening::default);
        Opening { lasts, service: None, failure, clear: None }
    }

    fn end(&mut self, request: u32, now: Instant, was_served: bool) -> Option<(Instant, u32)> {
        let (caller, number, tries) = self.asked[request as usize];
        if !was_served && tries < self.production.retries {
            return Some((now + Duration::from_millis(1), self.add(caller, number, tries + 1)));
        }
        let comes_again = caller < OPEN && number < NESTED;
        let Closed { pause, is_fixed, .. } = self.production.closed.filter(|_| comes_again)?;
        let mut random = self.production.random(Draw::Pause, self.key(request));
        let pause = if is_fixed { pause } else { exponential(pause, &mut random) };
        Some((self.production.awake(now + pause), self.add(caller, number + 1, 0)))
    }

    fn event(&mut self, _event: u32) -> Event {
        Event::Ready
    }

    fn clear(&self, _clear: u32) -> Clear {
        unreachable!("nothing clears the pool")
    }
}

/// The mean, and up to this part of it in hundredths more or less.
fn even(mean: Duration, spread: u64, random: &mut SplitMix) -> Duration {
    let thousandths = random.between(1000 - spread * 10, 1000 + spread * 10);
    mean * thousandths as u32 / 1000
}

/// An exponential distribution in steps of a fiftieth of the mean, without logarithms, whose results are not exactly the
/// same on all platforms.
fn exponential(mean: Duration, random: &mut SplitMix) -> Duration {
    let mut steps = 1;
    while !random.one_in(50) {
        steps += 1;
    }
    // Within the step.
    mean * steps / 50 - mean / 50 * random.below(1000) as u32 / 1000
}
