//! The parameters of a world without a network.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::trouble::Trouble;
use crate::simulate::caller_profile::CallerProfile;
use crate::simulate::latency::Latency;
use crate::simulate::plan::{
    self, TimeFaults, draw_callers, draw_latency, draw_moves, draw_options, draw_overload_policies,
    draw_pauses, milliseconds,
};
use cenote_replay::random::SplitMix;

/// The parameters of a world without a network.
pub type Plan = plan::Plan<Parameters>;

/// What is particular to a world without a network.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// How long establishing a connection takes.
    pub open: Latency,
    /// The number of services behind the load balancer; 0 without a load balancer.
    pub services: u8,
    /// The troubles that the server gets into.
    pub troubles: Vec<Trouble>,
    /// 1 in this many uses ends exactly when the pool's timer is due; 0: not on purpose.
    pub coincides: u64,
    /// The interval at which credentials change, so that connections retire, or idle connections are released, in turn;
    /// `None`: never.
    pub retire_every: Option<Duration>,
}

impl Plan {
    /// The world of a seed.
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
        let callers = draw_callers(random);
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
        draw_overload_policies(seed, &mut options);
        Self {
            seed,
            steps,
            options,
            other_options,
            callers,
            think,
            work,
            connect_timeout: milliseconds(random, 5, 200),
            heartbeat: milliseconds(random, 2, 100),
            profile: CallerProfile::draw(random, !later.one_in(4)),
            trouble_time: Latency::Uniform(milliseconds(random, 1, 200)),
            time: TimeFaults::draw(random, later),
            transport: Parameters {
                open,
                services,
                troubles,
                coincides: if later.one_in(3) { later.between(1, 8) } else { 0 },
                retire_every,
            },
            misuse_every: if random.one_in(4) { random.between(5, 200) } else { 0 },
            services_move_every: draw_moves(later, services, 200),
            fork_every: random.one_in(8).then(|| milliseconds(random, 10, 200)),
            pause_every: draw_pauses(seed, 500),
            ends_abruptly: random.one_in(4),
        }
    }
}

/// Every parameter, one per line.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { open, services, troubles, coincides, retire_every } = &self.transport;
        writeln!(f, "seed {}, {} inputs, then the end", self.seed, self.steps)?;
        self.write_beginning(f)?;
        writeln!(f, "  establishing    {open}, at most {:?}", self.connect_timeout)?;
        write!(f, "  heartbeat       {:?}, {services} services", self.heartbeat)?;
        self.write_moves(f)?;
        writeln!(f, "  coincidences    one in {coincides} (0: none)")?;
        writeln!(f, "  connections     retired or released every {retire_every:?}")?;
        self.write_faults(f, troubles, "work")
    }
}
