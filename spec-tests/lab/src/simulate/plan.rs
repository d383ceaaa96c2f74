//! The parameters of a world, drawn from its seed: no two worlds are alike, and each can be repeated.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::{Maintenance, OptionValue, PoolOptions, ReuseOrder};

use super::caller_profile::CallerProfile;
use super::latency::Latency;
use super::trouble::Trouble;
use super::wire::Conversations;
use cenote_replay::random::SplitMix;

/// The parameters of a world. Each world leaves most faults out, because faults hide each other.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all random numbers in this world.
    pub seed: u64,
    /// The number of inputs before all faults end.
    pub steps: u64,
    /// What connects the pool with its server.
    pub transport: Transport,
    /// The pool's options at the start.
    pub options: PoolOptions,
    /// Options that may be set while the pool runs; none in most worlds.
    pub other_options: Vec<PoolOptions>,
    /// The number of callers, each of which has at most one connection at a time.
    pub callers: u32,
    /// The time between two check-outs of a caller.
    pub think: Latency,
    /// The time that a caller works with a connection.
    pub work: Latency,
    /// How callers behave.
    pub profile: CallerProfile,
    /// How long establishing a connection takes.
    pub open: Latency,
    /// `connectTimeoutMS`, and `socketTimeoutMS`.
    pub connect_timeout: Duration,
    /// `heartbeatFrequencyMS`.
    pub heartbeat: Duration,
    /// The number of services behind the load balancer; 0 without a load balancer.
    pub services: u8,
    /// The troubles that the server gets into.
    pub troubles: Vec<Trouble>,
    /// How long a trouble lasts, and the time between two troubles.
    pub trouble_time: Latency,
    /// Faults of the clock and of timers.
    pub time: TimeFaults,
    /// 1 in this many uses ends exactly when the pool's timer is due; 0: not on purpose.
    pub coincides: u64,
    /// The interval at which credentials change, so that connections retire, or idle connections are released, in turn;
    /// `None`: never.
    pub retire_every: Option<Duration>,
    /// The embedder misuses the API once in this many work times; 0: never.
    pub misuse_every: u64,
    /// The interval at which the services behind a load balancer change; `None`: never.
    pub services_move_every: Option<Duration>,
    /// The interval at which the process forks; `None`: never.
    pub fork_every: Option<Duration>,
    /// The interval at which the client is stopped for some seconds; `None`: never.
    pub pause_every: Option<Duration>,
    /// The pool is closed while operations are in flight, not after recovery.
    pub ends_abruptly: bool,
}

/// What connects the pool with its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Nothing: a connection is established, or breaks, when a timer says so.
    Direct,
    /// Real conversations over virtual sockets.
    Wire(Conversations),
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

impl Plan {
    /// The world of a seed, without a network.
    pub fn new(seed: u64, steps: u64) -> Self {
        let random = &mut SplitMix(seed);
        // A second generator, so that parameters that were added later leave the others as they were.
        let later = &mut SplitMix(seed ^ 0x1a7e5);
        let services = if random.one_in(4) { random.between(1, 4) } else { 0 };
        let services = u8::try_from(services).unwrap_or(u8::MAX);
        let options = draw_options(random, services);
        let changes = if random.one_in(4) { 3 } else { 0 };
        let troubles = Trouble::ALL.into_iter().filter(|_| random.one_in(3)).collect();
        let other_options = (0..changes).map(|_| draw_options(random, services));
        let other_options: Vec<_> = other_options.collect();
        let most_callers = if random.one_in(8) { 200 } else { 12 };
        let callers = draw_u32(random, 1, most_callers);
        let (think, work) = (draw_latency(random, 20_000), draw_latency(random, 5_000));
        let open = draw_latency(random, 10_000);
        // A generator of its own, for the same reason.
        let late = &mut SplitMix(seed ^ 0x01a7_e4e9_11e5);
        let keeps_late_replies = late.one_in(3).then_some(true);
        let retire_every = late.one_in(6).then(|| milliseconds(late, 5, 200));
        let keep = |mut options: PoolOptions| {
            options.experimental_pending_response = keeps_late_replies;
            options
        };
        // Other options leave the connections that they find without a use.
        let other_options =
            other_options.into_iter().map(|it| if late.flip() { keep(it) } else { it }).collect();
        let mut options = keep(options);
        let report = &mut SplitMix(seed ^ 0x0a15_73e4);
        options.unanswered_threshold = report.one_in(4).then(|| milliseconds(report, 1, 50));
        draw_policies(seed, &mut options);
        let pauses = &mut SplitMix(seed ^ 0x009a_05e5);
        Self {
            seed,
            steps,
            transport: Transport::Direct,
            options,
            other_options,
            callers,
            think,
            work,
            open,
            services,
            troubles,
            connect_timeout: milliseconds(random, 5, 200),
            heartbeat: milliseconds(random, 2, 100),
            profile: CallerProfile::draw(random, !later.one_in(4)),
            trouble_time: Latency::Uniform(milliseconds(random, 1, 200)),
            time: TimeFaults::draw(random, later),
            coincides: if later.one_in(3) { later.between(1, 8) } else { 0 },
            retire_every,
            misuse_every: if random.one_in(4) { random.between(5, 200) } else { 0 },
            services_move_every: draw_moves(later, services),
            fork_every: random.one_in(8).then(|| milliseconds(random, 10, 200)),
            pause_every: pauses.one_in(12).then(|| milliseconds(pauses, 50, 500)),
            ends_abruptly: random.one_in(4),
        }
    }

    /// The same world with real conversations.
    pub fn on_wire(self) -> Self {
        Self { transport: Transport::Wire(Conversations::new(self.seed)), ..self }
    }
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

fn draw_options(random: &mut SplitMix, services: u8) -> PoolOptions {
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

/// Every option from `max_wait_queue_size` on, by its kind alone: one that is new is drawn without a line here.
fn draw_policies(seed: u64, options: &mut PoolOptions) {
    let random = &mut SplitMix(seed ^ 0x0ef7_10ad);
    for (_, option) in options.each().skip_while(|(spec, _)| spec.name != "max_wait_queue_size") {
        let is_set = random.one_in(3);
        match option {
            OptionValue::Count(count) => *count = is_set.then(|| draw_u32(random, 0, 8)),
            OptionValue::Number(number) => *number = is_set.then(|| random.number()),
            OptionValue::Time(time) => *time = is_set.then(|| milliseconds(random, 1, 30)),
            OptionValue::Flag(flag) => *flag = is_set.then_some(true),
            other @ (OptionValue::Maintenance(_) | OptionValue::ReuseOrder(_)) => {
                unreachable!("{other:?} is drawn with those before")
            }
        }
    }
}

/// How often services change: in half of the worlds that have services.
fn draw_moves(random: &mut SplitMix, services: u8) -> Option<Duration> {
    let moves = random.flip();
    (services != 0 && moves).then(|| milliseconds(random, 20, 200))
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

/// Every parameter, one per line, without passwords.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_wire = if self.transport == Transport::Direct { "" } else { "on the wire, " };
        writeln!(f, "seed {}, {on_wire}{} inputs, then the end", self.seed, self.steps)?;
        writeln!(f, "  pool            {}", self.options)?;
        for options in &self.other_options {
            writeln!(f, "  or              {}", options)?;
        }
        let Self { callers, think, work, services, .. } = self;
        writeln!(f, "  callers         {callers}; think {think}; work {work}")?;
        writeln!(f, "  one in N        {:?}", self.profile)?;
        writeln!(f, "  establishing    {}, at most {:?}", self.open, self.connect_timeout)?;
        if let Transport::Wire(conversations) = self.transport {
            writeln!(f, "  conversations   {conversations}")?;
        }
        write!(f, "  heartbeat       {:?}, {services} services", self.heartbeat)?;
        match self.services_move_every {
            Some(every) => writeln!(f, ", which change every {every:?}")?,
            None => writeln!(f)?,
        }
        writeln!(f, "  coincidences    one in {} (0: none)", self.coincides)?;
        writeln!(f, "  connections     retired or released every {:?}", self.retire_every)?;
        writeln!(f, "  troubles        {:?}, each {}", self.troubles, self.trouble_time)?;
        writeln!(f, "  time            {:?}", self.time)?;
        writeln!(f, "  misuse          every {} work times (0: never)", self.misuse_every)?;
        writeln!(f, "  forks           {:?}", self.fork_every)?;
        writeln!(f, "  pauses          {:?}", self.pause_every)?;
        let ends = if self.ends_abruptly { "abruptly" } else { "after recovery" };
        write!(f, "  ends            {ends}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cenote_core::pool::OptionSpec;

    use super::Plan;

    #[test]
    fn each_option_is_drawn() {
        let mut drawn = BTreeSet::new();
        for seed in 0..100 {
            let mut options = Plan::new(seed, 1).options;
            drawn.extend(options.each().filter(|(_, it)| it.is_set()).map(|(spec, _)| spec.name));
        }
        assert_eq!(drawn.len(), OptionSpec::TABLE.len(), "{drawn:?}");
    }
}
