//! What happens in a world, as its seed says: nothing else is left to chance.

use std::time::Duration;

use cenote_core::pool::PoolOptions;
use cenote_endpoint::{Ending, Fault};
use cenote_replay::random::SplitMix;

/// What tasks ask of the server: its reply names the connection that it is for.
pub(crate) const COMMAND: &str = "whatsmyuri";

/// The random numbers of a world.
#[derive(Clone, Debug)]
pub(crate) struct Rng(SplitMix);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    /// An independent generator for a part of the world.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.0.number())
    }

    /// From 0, less than `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// So many of a hundred times.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn milliseconds(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        self.0.pick(all).expect("a choice")
    }
}

/// What goes wrong with the net or with the server as a whole, and then is well again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// The server's process ends, with all that it had open, and is started again.
    Crash,
    /// What is sent is lost. There is no sending again in the simulated TCP: connections that had
    /// something under way are broken, and know nothing of it.
    Partition,
    /// The same in one direction.
    ToServer,
    FromServer,
    /// What is sent arrives when all is well again, as with a TCP that sends again.
    Hold,
    /// Everything takes its time.
    Slow(Duration),
    /// The client is stopped for `time`. What is sent is held; then its clock jumps, so that all of its timers
    /// are late, and `rest` later everything arrives.
    Pause {
        time: Duration,
        rest: Duration,
    },
}

/// What the server does on a sudden.
#[derive(Clone, Debug)]
pub(crate) enum Mischief {
    /// Ends all connections, or says nothing on them any more.
    Break(Ending),
    /// Ends those on which no command is under way.
    BreakIdle(Ending),
    /// Sends a reply that nothing asked for on those.
    Unasked,
    /// Does this at the next so many commands of that name.
    Fault { fault: Fault, command: &'static str, times: u64 },
    /// Takes so long for the next so many commands.
    Block { milliseconds: i32, times: i32 },
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) options: PoolOptions,
    pub(crate) tasks: u64,
    /// Until then things go wrong, and the tasks work.
    pub(crate) active: Duration,
    /// At most this long takes a message.
    pub(crate) latency: Duration,
    /// From when to when; no two at the same time.
    pub(crate) troubles: Vec<(Duration, Duration, Trouble)>,
    pub(crate) mischief: Vec<(Duration, Mischief)>,
    /// Whether the monitor sometimes clears the pool for no reason.
    pub(crate) monitor_errs: bool,
    /// For everything that is drawn while the world lives.
    pub(crate) rng: Rng,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let active = rng.milliseconds(2_000, 6_000);
        let latency = rng.milliseconds(2, 40);
        let mut plan = Self {
            seed,
            options: options(&mut rng, latency),
            tasks: 1 + rng.below(10),
            active,
            latency,
            troubles: Vec::new(),
            mischief: Vec::new(),
            monitor_errs: true,
            rng: rng.fork(),
        };
        if seed % 2 == 1 {
            plan.options = plan.options.with_experimental_pending_response(true);
        }
        let mut at = rng.milliseconds(0, 1_000);
        while at < active {
            if rng.chance(15) {
                let until = plan.pause(at, &mut rng);
                at = until + rng.milliseconds(1, 3_000);
                continue;
            }
            let until = active.min(at + rng.milliseconds(20, 1_500));
            let slow = Trouble::Slow(rng.milliseconds(50, 600));
            let all = [
                Trouble::Crash,
                Trouble::Partition,
                Trouble::ToServer,
                Trouble::FromServer,
                Trouble::Hold,
                slow,
            ];
            plan.troubles.push((at, until, rng.one_of(&all)));
            at = until + rng.milliseconds(1, 3_000);
        }
        let mut at = rng.milliseconds(0, 1_000);
        while at < active {
            plan.mischief.push((at, mischief(&mut rng)));
            at += rng.milliseconds(1, 3_000);
        }
        plan
    }
}

impl Plan {
    /// A world in which nothing happens but that the client is stopped. The network is so fast that an
    /// establishment that began before goes on in the time that the shell allows after a stop.
    pub(crate) fn only_pauses(seed: u64) -> Self {
        let mut plan = Self::new(seed);
        plan.latency = plan.latency.min(Duration::from_millis(10));
        (plan.troubles, plan.mischief) = (Vec::new(), Vec::new());
        plan.monitor_errs = false;
        let mut rng = plan.rng.fork();
        let mut at = rng.milliseconds(100, 500);
        while at < plan.active {
            let until = plan.pause(at, &mut rng);
            at = until + rng.milliseconds(100, 1_000);
        }
        plan
    }

    /// How much longer things may take where late replies are read.
    pub(crate) fn late_replies(&self) -> Duration {
        let keeps = self.options.experimental_pending_response == Some(true);
        if keeps { Duration::from_secs(30) } else { Duration::ZERO }
    }

    pub(crate) fn has_pauses(&self) -> bool {
        self.troubles.iter().any(|(_, _, trouble)| matches!(trouble, Trouble::Pause { .. }))
    }

    /// Plans a pause, and returns when it is over.
    fn pause(&mut self, at: Duration, rng: &mut Rng) -> Duration {
        let rest = rng.milliseconds(0, 30);
        let until = at + rng.milliseconds(0, 60) + rest;
        let time = rng.milliseconds(1_000, 4_000);
        self.troubles.push((at, until, Trouble::Pause { time, rest }));
        until
    }
}

fn options(rng: &mut Rng, latency: Duration) -> PoolOptions {
    let max = 1 + u32::try_from(rng.below(5)).expect("small");
    let min = u32::try_from(rng.below(u64::from(max) + 1)).expect("small");
    let mut options = PoolOptions::default()
        .with_max_pool_size(max)
        .with_min_pool_size(min)
        .with_max_connecting(1 + u32::try_from(rng.below(2)).expect("small"));
    if rng.chance(50) {
        // The minimum is opened one after the other, each with two ways there and two back: the
        // first must not be too old before the last is there.
        let filled = 4 * latency * (min + 1);
        options = options.with_max_idle_time(filled + rng.milliseconds(20, 300));
    }
    if rng.chance(60) {
        options = options.with_wait_queue_timeout(rng.milliseconds(5, 1_000));
    }
    options
}

fn mischief(rng: &mut Rng) -> Mischief {
    let ending = rng.one_of(&[Ending::Close, Ending::Fin, Ending::Reset, Ending::Stall]);
    if rng.chance(30) {
        let idle =
            if ending == Ending::Stall { Mischief::Unasked } else { Mischief::BreakIdle(ending) };
        return if rng.chance(50) { Mischief::Break(ending) } else { idle };
    }
    let times = 1 + rng.below(6);
    if rng.chance(30) {
        let milliseconds = i32::try_from(1 + rng.below(1_500)).expect("small");
        return Mischief::Block { milliseconds, times: i32::try_from(times).expect("small") };
    }
    let fault = rng.one_of(&[
        Fault::Close,
        Fault::Reset,
        Fault::HalfClose,
        Fault::Stall,
        Fault::Cut { bytes: 20, then: ending },
        Fault::Garbage { bytes: 64 },
        Fault::Drip { bytes: 9, every: Duration::from_millis(5) },
        Fault::Length { value: -1 },
        Fault::ResponseTo { off_by: 1 },
        Fault::Crossed,
        Fault::HostileTexts { fails: false },
        Fault::HostileTexts { fails: true },
    ]);
    Mischief::Fault { fault, command: rng.one_of(&["isMaster", COMMAND]), times }
}
