//! The parameters of a world, drawn from its seed: no two worlds are alike, and each can be repeated.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions, ReuseOrder};

use super::caller_profile::CallerProfile;
use super::latency::Latency;
use cenote_replay::brief::Brief;
use cenote_replay::random::SplitMix;

/// The parameters of a world; `T` holds those of its transport. Each world leaves most faults out, because
/// faults hide each other.
#[derive(Clone, Debug)]
pub struct Plan<T> {
    /// The seed of all random numbers in this world.
    pub seed: u64,
    /// The number of inputs before all faults end.
    pub steps: u64,
    /// The pool's options at the start.
    pub options: PoolOptions,
    /// Options that may be set while the pool runs; none in most worlds.
    pub other_options: Vec<PoolOptions>,
    /// The number of callers, each of which has at most one connection at a time.
    pub callers: u32,
    /// The time between two check-outs of a caller.
    pub think: Latency,
    /// The time that a caller works with a connection, or between two commands.
    pub work: Latency,
    /// How callers behave.
    pub profile: CallerProfile,
    /// `connectTimeoutMS`.
    pub connect_timeout: Duration,
    /// `heartbeatFrequencyMS`.
    pub heartbeat: Duration,
    /// How long a trouble lasts, and the time between two troubles.
    pub trouble_time: Latency,
    /// Faults of the clock and of timers.
    pub time: TimeFaults,
    /// The embedder misuses the API once in this many work times (direct) or packet times (wire); 0: never.
    pub misuse_every: u64,
    /// The interval at which the services behind a load balancer change; `None`: never.
    pub services_move_every: Option<Duration>,
    /// The interval at which the process forks; `None`: never.
    pub fork_every: Option<Duration>,
    /// The interval at which the client is stopped for some seconds; `None`: never.
    pub pause_every: Option<Duration>,
    /// The pool is closed while operations are in flight, not after recovery.
    pub ends_abruptly: bool,
    /// The transport's own parameters.
    pub transport: T,
}

/// Faults of the clock and of timers. A number `n` means 1 in `n` inputs; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeFaults {
    /// The clock does not advance.
    pub stands_still: u64,
    /// The clock runs backwards.
    pub runs_back: u64,
    /// The clock jumps ahead, past everything that was scheduled.
    pub jumps: u64,
    /// How late timers fire.
    pub timer_lateness: Option<Latency>,
    /// A timer fires before anything is due.
    pub timer_early: u64,
    /// Timers fire only at multiples of this duration, for everything that is due by then.
    pub timer_tick: Option<Duration>,
}

pub(super) fn draw_callers(random: &mut SplitMix) -> u32 {
    let most = if random.one_in(8) { 200 } else { 12 };
    draw_u32(random, 1, most)
}

pub(super) fn draw_u32(random: &mut SplitMix, least: u64, most: u64) -> u32 {
    u32::try_from(random.between(least, most)).unwrap_or(u32::MAX)
}

pub(super) fn milliseconds(random: &mut SplitMix, least: u64, most: u64) -> Duration {
    Duration::from_millis(random.between(least, most))
}

/// A latency of up to `micros` microseconds on average.
pub(super) fn draw_latency(random: &mut SplitMix, micros: u64) -> Latency {
    let time = Duration::from_micros(random.between(micros / 20, micros));
    match random.below(4) {
        0 => Latency::Fixed(time),
        1 | 2 => Latency::Uniform(time),
        _ => Latency::LongTailed(time),
    }
}

pub(super) fn draw_options(random: &mut SplitMix, services: u8) -> PoolOptions {
    let mut options = PoolOptions::default();
    let max = match random.below(8) {
        0 => None,
        1 => Some(0),
        2 => Some(draw_u32(random, 20, 60)),
        _ => Some(draw_u32(random, 1, 6)),
    };
    options.max_pool_size = max;
    let most = u64::from(max.filter(|&max| max != 0).unwrap_or(8));
    options.min_pool_size = random.flip().then(|| draw_u32(random, 0, most));
    options.max_connecting = random.flip().then(|| draw_u32(random, 1, 6));
    options.max_idle_time = random.flip().then(|| milliseconds(random, 1, 200));
    options.wait_queue_timeout = random.flip().then(|| milliseconds(random, 0, 100));
    options.max_lifetime = random.one_in(4).then(|| milliseconds(random, 5, 500));
    options.jitter_seed = random.flip().then(|| random.number());
    options.leak_detection_threshold = random.one_in(4).then(|| milliseconds(random, 1, 100));
    options.maintenance = match random.below(6) {
        0 => Some(Maintenance::Never),
        1 | 2 => Some(Maintenance::PauseAfterFailure(milliseconds(random, 1, 100))),
        _ => None,
    };
    options.reuse_order = random.one_in(4).then_some(ReuseOrder::LeastRecentlyUsed);
    options.load_balanced = match services {
        0 => None,
        _ => Some(true),
    };
    options
}

/// With a generator of its own, so that worlds stay as they were.
pub(super) fn draw_overload_policies(seed: u64, options: &mut PoolOptions) {
    let random = &mut SplitMix(seed ^ 0x0ef7_10ad);
    options.max_wait_queue_size = random.one_in(4).then(|| draw_u32(random, 0, 8));
    if random.one_in(3) {
        options.codel_target = random.flip().then(|| milliseconds(random, 1, 20));
        options.codel_interval = Some(milliseconds(random, 1, 50));
    }
    options.overload_backoff = random.one_in(3).then(|| milliseconds(random, 1, 20));
    options.adaptive_connecting = random.one_in(3).then_some(true);
    options.predictive_min_pool_size = random.one_in(3).then_some(true);
}

impl TimeFaults {
    pub(super) fn is_faulty(&self) -> bool {
        let Self { stands_still, runs_back, jumps, timer_lateness, timer_early, timer_tick } = self;
        let is_late = timer_lateness.is_some() || timer_tick.is_some();
        is_late || [stands_still, runs_back, jumps, timer_early].into_iter().any(|it| *it != 0)
    }

    /// `later` is the generator of what was added after the first version.
    pub(super) fn draw(random: &mut SplitMix, later: &mut SplitMix) -> Self {
        let mut often =
            |least, most| if random.one_in(3) { random.between(least, most) } else { 0 };
        let (stands_still, runs_back) = (often(2, 50), often(10, 500));
        let (jumps, timer_early) = (often(500, 5_000), often(5, 100));
        let timer_lateness = random.one_in(3).then(|| draw_latency(random, 5_000));
        let timer_tick = later.one_in(6).then(|| milliseconds(later, 1, 20));
        Self { stands_still, runs_back, jumps, timer_lateness, timer_early, timer_tick }
    }
}

/// How often services change: in half of the worlds that have services.
pub(super) fn draw_moves(random: &mut SplitMix, services: u8, most: u64) -> Option<Duration> {
    let moves = random.flip();
    (services != 0 && moves).then(|| milliseconds(random, most / 10, most))
}

/// How often the client is stopped: in one world of twelve. Of a generator of its own, so that the other
/// parameters are as they were.
pub(super) fn draw_pauses(seed: u64, most: u64) -> Option<Duration> {
    let random = &mut SplitMix(seed ^ 0x009a_05e5);
    random.one_in(12).then(|| milliseconds(random, most / 10, most))
}

impl<T> Plan<T> {
    /// The lines about the pool and its callers.
    pub(super) fn write_beginning(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { callers, think, work, profile, .. } = self;
        writeln!(f, "  pool            {}", Brief(&self.options))?;
        for options in &self.other_options {
            writeln!(f, "  or              {}", Brief(options))?;
        }
        writeln!(f, "  callers         {callers}; think {think}; work {work}")?;
        writeln!(f, "  one in N        {profile:?}")
    }

    /// The end of the line about services.
    pub(super) fn write_moves(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.services_move_every {
            Some(every) => writeln!(f, ", which change every {every:?}"),
            None => writeln!(f),
        }
    }

    /// The lines about faults; `troubles` are the transport's, `unit` is what `misuse_every` counts.
    pub(super) fn write_faults(
        &self,
        f: &mut fmt::Formatter<'_>,
        troubles: &impl fmt::Debug,
        unit: &str,
    ) -> fmt::Result {
        writeln!(f, "  troubles        {troubles:?}, each {}", self.trouble_time)?;
        writeln!(f, "  time            {:?}", self.time)?;
        writeln!(f, "  misuse          every {} {unit} times (0: never)", self.misuse_every)?;
        writeln!(f, "  forks           {:?}", self.fork_every)?;
        writeln!(f, "  pauses          {:?}", self.pause_every)?;
        let ends = if self.ends_abruptly { "abruptly" } else { "after recovery" };
        write!(f, "  ends            {ends}")
    }
}
