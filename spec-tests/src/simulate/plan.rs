//! What a world is like: drawn from its seed, so that no two are alike and each can be had again.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions, ReuseOrder};

use super::chance::{Chance, Latency};
use super::habits::Habits;
use crate::lockstep::Brief;

/// Every parameter of a world. Most of what can go wrong is left out of each one, because faults hide
/// each other.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where all of it comes from.
    pub seed: u64,
    /// How many inputs there are before everything gets well again.
    pub steps: u64,
    /// Of the pool.
    pub options: PoolOptions,
    /// What may be set while it runs; none in most worlds.
    pub other_options: Vec<PoolOptions>,
    /// How many there are who use the pool, each with one connection at a time.
    pub callers: u32,
    /// What a caller does between two check-outs.
    pub think: Latency,
    /// How long a caller has a connection.
    pub work: Latency,
    /// How long opening a connection takes.
    pub open: Latency,
    /// `connectTimeoutMS`.
    pub connect_timeout: Duration,
    /// How often the monitor looks at the server.
    pub heartbeat: Duration,
    /// Services behind a load balancer; 0 if there is none.
    pub services: u8,
    /// What callers are like.
    pub habits: Habits,
    /// What happens to the server.
    pub troubles: Vec<Trouble>,
    /// How long a trouble lasts, and how long it is quiet between two.
    pub trouble_time: Latency,
    /// What is wrong with time.
    pub time: TimeFaults,
    /// One of so many uses ends exactly when something is due in the pool; 0: none on purpose.
    pub coincides: u64,
    /// Whoever embeds the pool makes a mistake each time that so many pieces of work may take; 0: none.
    pub misuse_every: u64,
    /// How often services go and others come; `None`: never.
    pub services_move_every: Option<Duration>,
    /// How often the process forks; `None`: never.
    pub fork_every: Option<Duration>,
    /// The pool is closed while everything is in flight, and not when all is calm.
    pub ends_abruptly: bool,
}

/// What can happen to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Refuses every new connection.
    Refuses,
    /// Answers nobody, on whatever connection.
    Stalls,
    /// Everything takes ten times as long.
    IsSlow,
    /// Resets all connections, and each new one before hello is answered.
    Resets,
    /// Is gone and comes back: old connections look alive and are not.
    Vanishes,
    /// Answers hello with something else.
    TalksNonsense,
    /// Lets nobody log in.
    RefusesLogins,
    /// Says that it is overloaded: an error whose labels tell not to clear.
    IsOverloaded,
    /// Closes connections that are idle.
    ClosesIdle,
    /// Says in every reply that it is not the primary any more.
    StepsDown,
}

impl Trouble {
    const ALL: [Self; 10] = [
        Self::Refuses,
        Self::Stalls,
        Self::IsSlow,
        Self::Resets,
        Self::Vanishes,
        Self::TalksNonsense,
        Self::RefusesLogins,
        Self::IsOverloaded,
        Self::ClosesIdle,
        Self::StepsDown,
    ];
}

/// One in so many inputs; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeFaults {
    /// The clock shows what it showed before.
    pub stands_still: u64,
    /// The clock shows less.
    pub runs_back: u64,
    /// The clock leaps ahead, past everything that was planned.
    pub jumps: u64,
    /// How much the timer is late.
    pub timer_lateness: Option<Latency>,
    /// The timer fires for nothing.
    pub timer_early: u64,
    /// The timer fires at multiples of this only, for everything that is due by then.
    pub timer_tick: Option<Duration>,
}

impl Plan {
    /// The world of a seed.
    pub fn new(seed: u64, steps: u64) -> Self {
        let chance = &mut Chance::new(seed);
        // Worlds are what they were before there was this to be drawn.
        let later = &mut Chance::new(seed ^ 0x1a7e5);
        let services = if chance.one_in(4) { draw_u8(chance, 1, 4) } else { 0 };
        let options = draw_options(chance, services);
        let changes = if chance.one_in(4) { 3 } else { 0 };
        let troubles = Trouble::ALL.into_iter().filter(|_| chance.one_in(3)).collect();
        Self {
            seed,
            steps,
            other_options: (0..changes).map(|_| draw_options(chance, services)).collect(),
            options,
            callers: draw_callers(chance),
            think: draw_latency(chance, 20_000),
            work: draw_latency(chance, 5_000),
            open: draw_latency(chance, 10_000),
            connect_timeout: milliseconds(chance, 5, 200),
            heartbeat: milliseconds(chance, 2, 100),
            services,
            habits: Habits::draw(chance, !later.one_in(4)),
            troubles,
            trouble_time: Latency::Even(milliseconds(chance, 1, 200)),
            time: draw_time_faults(chance).with_tick(later),
            coincides: if later.one_in(3) { later.between(1, 8) } else { 0 },
            misuse_every: if chance.one_in(4) { chance.between(5, 200) } else { 0 },
            services_move_every: draw_moves(later, services, 200),
            fork_every: chance.one_in(8).then(|| milliseconds(chance, 10, 200)),
            ends_abruptly: chance.one_in(4),
        }
    }
}

pub(super) fn draw_callers(chance: &mut Chance) -> u32 {
    let most = if chance.one_in(8) { 200 } else { 12 };
    u32::try_from(chance.between(1, most)).unwrap_or(u32::MAX)
}

pub(super) fn draw_u8(chance: &mut Chance, least: u64, most: u64) -> u8 {
    u8::try_from(chance.between(least, most)).unwrap_or(u8::MAX)
}

pub(super) fn draw_u32(chance: &mut Chance, least: u64, most: u64) -> u32 {
    u32::try_from(chance.between(least, most)).unwrap_or(u32::MAX)
}

pub(super) fn milliseconds(chance: &mut Chance, least: u64, most: u64) -> Duration {
    Duration::from_millis(chance.between(least, most))
}

/// On the scale of so many microseconds.
pub(super) fn draw_latency(chance: &mut Chance, micros: u64) -> Latency {
    let time = Duration::from_micros(chance.between(micros / 20, micros));
    match chance.below(4) {
        0 => Latency::Fixed(time),
        1 | 2 => Latency::Even(time),
        _ => Latency::Tailed(time),
    }
}

pub(super) fn draw_options(chance: &mut Chance, services: u8) -> PoolOptions {
    let mut options = PoolOptions::default();
    let max = match chance.below(8) {
        0 => None,
        1 => Some(0),
        2 => Some(draw_u32(chance, 20, 60)),
        _ => Some(draw_u32(chance, 1, 6)),
    };
    options.max_pool_size = max;
    let most = u64::from(max.filter(|&max| max != 0).unwrap_or(8));
    options.min_pool_size = chance.flip().then(|| draw_u32(chance, 0, most));
    options.max_connecting = chance.flip().then(|| draw_u32(chance, 1, 6));
    options.max_idle_time = chance.flip().then(|| milliseconds(chance, 1, 200));
    options.wait_queue_timeout = chance.flip().then(|| milliseconds(chance, 0, 100));
    options.max_lifetime = chance.one_in(4).then(|| milliseconds(chance, 5, 500));
    options.jitter_seed = chance.flip().then(|| chance.number());
    options.leak_detection_threshold = chance.one_in(4).then(|| milliseconds(chance, 1, 100));
    options.maintenance = match chance.below(6) {
        0 => Some(Maintenance::Never),
        1 | 2 => Some(Maintenance::PauseAfterFailure(milliseconds(chance, 1, 100))),
        _ => None,
    };
    options.reuse_order = chance.one_in(4).then_some(ReuseOrder::LeastRecentlyUsed);
    options.load_balanced = match services {
        0 => None,
        _ => Some(true),
    };
    options
}

pub(super) fn draw_time_faults(chance: &mut Chance) -> TimeFaults {
    let mut often = |least, most| if chance.one_in(3) { chance.between(least, most) } else { 0 };
    let (stands_still, runs_back) = (often(2, 50), often(10, 500));
    let (jumps, timer_early) = (often(500, 5_000), often(5, 100));
    let timer_lateness = chance.one_in(3).then(|| draw_latency(chance, 5_000));
    TimeFaults { stands_still, runs_back, jumps, timer_lateness, timer_early, timer_tick: None }
}

impl TimeFaults {
    /// A timer with ticks, in some worlds.
    pub(super) fn with_tick(self, chance: &mut Chance) -> Self {
        let timer_tick = chance.one_in(6).then(|| milliseconds(chance, 1, 20));
        Self { timer_tick, ..self }
    }
}

/// How often services go and others come, in half of the worlds that have any.
pub(super) fn draw_moves(chance: &mut Chance, services: u8, most: u64) -> Option<Duration> {
    let moves = chance.flip();
    (services != 0 && moves).then(|| milliseconds(chance, most / 10, most))
}

/// Everything, a line each.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {} inputs, then the end", self.seed, self.steps)?;
        writeln!(f, "  pool            {}", Brief(&self.options))?;
        for options in &self.other_options {
            writeln!(f, "  or              {}", Brief(options))?;
        }
        let Self { callers, think, work, open, habits, .. } = self;
        writeln!(f, "  callers         {callers}; think {think}; work {work}")?;
        writeln!(f, "  one in so many  {habits:?}")?;
        writeln!(f, "  opening         {open}, at most {:?}", self.connect_timeout)?;
        write!(f, "  heartbeat       {:?}, {} services", self.heartbeat, self.services)?;
        match self.services_move_every {
            Some(every) => writeln!(f, ", which come and go every {every:?}")?,
            None => writeln!(f)?,
        }
        writeln!(f, "  troubles        {:?}, each {}", self.troubles, self.trouble_time)?;
        writeln!(f, "  time            {:?}", self.time)?;
        writeln!(f, "  coincidences    one in {}", self.coincides)?;
        writeln!(f, "  misuse          every {} times the work (0: never)", self.misuse_every)?;
        writeln!(f, "  forks           {:?}", self.fork_every)?;
        write!(
            f,
            "  ends            {}",
            if self.ends_abruptly { "abruptly" } else { "once all is well" }
        )
    }
}
