//! Callers and a server that are drawn from a seed, and are the same whatever the options of the pool are.

use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions, PoolState, Purpose};
use cenote_core::trace::{JournalOptions, TraceInfo};

use crate::random::SplitMix;
use crate::record::RecordedRun;
use crate::what_if::run::{Ask, Clear, Due, Event, FailedOpening, Opening, Use, Warm, World, run};

/// How callers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrivals {
    /// Independently of each other, so long apart on average; from the first time to the second, this many times as often.
    Open { apart: Duration, peak: (Duration, Duration, u32) },
    /// Each comes again after a pause of this length on average.
    Closed { callers: u32, pause: Duration },
}

/// How long uses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
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

/// What the pool does not decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Production {
    pub(super) seed: u64,
    pub(super) arrivals: Arrivals,
    pub(super) lengths: Lengths,
    pub(super) used_for: Duration,
    pub(super) limits: Limits,
    pub(super) opening: Duration,
    /// 1 in this many establishments fails; 0: none.
    pub(super) failed_opening: u64,
    pub(super) duration: Duration,
    /// Callers come again at once if they were not served, this often.
    pub(super) retries: u32,
    /// Uses take longer in proportion if more than this number of connections are in use.
    pub(super) server: Option<u32>,
}

impl Production {
    /// The trace of a pool with these options.
    pub(super) fn record(&self, options: &PoolOptions) -> Vec<u8> {
        let pool = PoolState::new(Instant::ORIGIN, options.clone(), &mut |_| {});
        let pool = pool.expect("valid options");
        let info = TraceInfo::new("db.example.com:27017");
        let journal = JournalOptions::default();
        let mut recorded = RecordedRun::begin_with(info, pool, journal, Vec::new());
        let mut world = Running { production: *self, asked: Vec::new(), in_use: 0 };
        let end = Instant::ORIGIN + self.duration;
        run(&mut recorded, &mut world, &Warm::default(), Instant::ORIGIN, end);
        recorded.finish().expect("memory")
    }

    /// Random numbers of their own for each purpose and number, so that nothing depends on the order in which they are drawn.
    fn random(&self, purpose: Draw, number: u64) -> SplitMix {
        let seed = self.seed.wrapping_mul(31).wrapping_add(purpose as u64);
        let mut seeds = SplitMix(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        SplitMix(seeds.number())
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
    in_use: u32,
}

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
}

impl World for Running {
    fn begin(&mut self, plan: &mut dyn FnMut(Instant, Due)) {
        plan(Instant::ORIGIN, Due::Event(0));
        let end = self.production.duration;
        match self.production.arrivals {
            Arrivals::Open { apart, peak: (from, to, times) } => {
                let mut random = self.production.random(Draw::Arrivals, 0);
                let mut at = Duration::ZERO;
                for caller in 0.. {
                    let apart = if (from..to).contains(&at) { apart * 10 / times } else { apart };
                    at += exponential(apart, &mut random);
                    if at >= end {
                        break;
                    }
                    let request = self.add(caller, 0, 0);
                    plan(Instant::ORIGIN + at, Due::Ask(request));
                }
            }
            Arrivals::Closed { callers, pause } => {
                for caller in 0..callers {
                    let mut random = self.production.random(Draw::Arrivals, caller.into());
                    let request = self.add(caller, 0, 0);
                    let at = Duration::from_nanos(random.below(pause.as_nanos() as u64 * 2 + 1));
                    plan(Instant::ORIGIN + at, Due::Ask(request));
                }
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

    fn serve(&mut self, request: u32, _now: Instant) -> Use {
        let Production { lengths, used_for, server, .. } = self.production;
        let mut random = self.production.random(Draw::Use, self.key(request));
        let mut lasts = match lengths {
            Lengths::Even => even(used_for, 80, &mut random),
            Lengths::Slow if random.one_in(50) => even(used_for, 80, &mut random) * 10,
            Lengths::Slow => even(used_for, 80, &mut random),
            Lengths::Exponential => exponential(used_for, &mut random),
        };
        self.in_use += 1;
        if let Some(most) = server {
            lasts = lasts * self.in_use.max(most) / most;
        }
        Use { lasts: Some(lasts), failure: None, clear: None }
    }

    fn open(&mut self, number: u64, _now: Instant) -> Opening {
        let mut random = self.production.random(Draw::Opening, number);
        let lasts = even(self.production.opening, 80, &mut random);
        let failure = random.one_in(self.production.failed_opening).then(FailedOpening::default);
        Opening { lasts, service: None, failure, clear: None }
    }

    fn end(&mut self, request: u32, now: Instant, was_served: bool) -> Option<(Instant, u32)> {
        let (caller, number, tries) = self.asked[request as usize];
        if was_served {
            self.in_use -= 1;
        } else if tries < self.production.retries {
            return Some((now + Duration::from_millis(1), self.add(caller, number, tries + 1)));
        }
        let Arrivals::Closed { pause, .. } = self.production.arrivals else { return None };
        let mut random = self.production.random(Draw::Pause, self.key(request));
        let pause = exponential(pause, &mut random);
        Some((now + pause, self.add(caller, number + 1, 0)))
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
