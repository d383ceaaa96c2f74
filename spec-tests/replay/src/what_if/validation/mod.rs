//! Whether `cenote predict` predicts what another setting does: runs are recorded with one setting and, with the same
//! callers and the same server, with another one, which is predicted from the first.

mod production;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cenote_core::pool::PoolOptions;

use self::production::{Closed, Lengths, Limits, Open, Production, Server, Shape};
use super::{Assumptions, Change, Fit, Outcome, Prediction, Setting, Workload};
use crate::random::SplitMix;

/// A load, as in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Random,
    Regular,
    Bursts,
    Cron,
    SlowWaves,
    FastWaves,
    Step,
    OpenStalls,
    Quota,
    OpenSlots,
    Shared,
    SlowOpenings,
    FailedOpenings,
    OpenRetries,
    WithoutThinking,
    Thinking,
    FixedThinking,
    FixedUses,
    ManyCallers,
    ClosedStalls,
    ClosedSlots,
    ClosedRetries,
    Both,
    Leak,
    OpenNested,
    ClosedNested,
}

const KINDS: [(Kind, &str); 26] = [
    (Kind::Random, "open: random"),
    (Kind::Regular, "open: regular"),
    (Kind::Bursts, "open: bursts"),
    (Kind::Cron, "open: half come at ten times"),
    (Kind::SlowWaves, "open: two waves"),
    (Kind::FastWaves, "open: forty waves"),
    (Kind::Step, "open: three times as many at the end"),
    (Kind::OpenStalls, "open: stands still ten times"),
    (Kind::Quota, "open: runs 70 of 100 ms"),
    (Kind::OpenSlots, "open: a server of 7 slots"),
    (Kind::Shared, "open: a server that slows down"),
    (Kind::SlowOpenings, "open: slow establishment"),
    (Kind::FailedOpenings, "open: failing establishment"),
    (Kind::OpenRetries, "open: two retries"),
    (Kind::WithoutThinking, "closed: no pauses"),
    (Kind::Thinking, "closed: random pauses"),
    (Kind::FixedThinking, "closed: equal pauses"),
    (Kind::FixedUses, "closed: equal uses"),
    (Kind::ManyCallers, "closed: 600 callers"),
    (Kind::ClosedStalls, "closed: stands still ten times"),
    (Kind::ClosedSlots, "closed: a server of 7 slots"),
    (Kind::ClosedRetries, "closed: two retries"),
    (Kind::Both, "half open, half closed"),
    (Kind::Leak, "open: one use in 500 leaks"),
    (Kind::OpenNested, "open: nested check-outs"),
    (Kind::ClosedNested, "closed: nested check-outs"),
];

impl Kind {
    fn is_closed(self) -> bool {
        use Kind::{
            ClosedNested, ClosedRetries, ClosedSlots, ClosedStalls, FixedThinking, FixedUses,
            ManyCallers, Thinking, WithoutThinking,
        };
        matches!(
            self,
            WithoutThinking
                | Thinking
                | FixedThinking
                | FixedUses
                | ManyCallers
                | ClosedStalls
                | ClosedSlots
                | ClosedRetries
                | ClosedNested
        )
    }
}

/// A run that is recorded twice, with two settings.
#[derive(Clone, Debug)]
struct Case {
    production: Production,
    options: PoolOptions,
    change: Change,
}

/// How good a prediction was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    is_right: bool,
    is_warned: bool,
}

/// Of each load.
const RUNS: u64 = 40;

/// Requests of a trace.
const REQUESTS: u32 = 5_000;

/// Predicts 40 runs of each load from their traces: how many predictions are right, and how many of the others had a warning,
/// as a table in Markdown. The same seed gives the same table.
pub fn compare(seed: u64) -> String {
    let verdicts = KINDS.map(|(kind, name)| (name, compare_all(seed, RUNS, kind)));
    let all = verdicts.iter().flat_map(|(_, verdicts)| verdicts.clone()).collect();
    let mut table = HEAD.to_owned();
    for (name, verdicts) in verdicts.into_iter().chain([("all", all)]) {
        let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|it| is(it)).count();
        let (right, runs) = (count(|it| it.is_right), verdicts.len());
        let warned = count(|it| !it.is_right && it.is_warned);
        let needless = count(|it| it.is_right && it.is_warned);
        let silent = runs - right - warned;
        let _ = writeln!(table, "| {name} | {right} | {needless} | {warned} | {silent} |");
    }
    table
}

const HEAD: &str = "\
| load | right | of these with a warning | wrong, with one | wrong, without |
|---|---|---|---|---|
";

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a load differs from the usual one in one thing"
)]
impl Case {
    fn draw(seed: u64, kind: Kind) -> Self {
        let mut random = SplitMix(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x77);
        let slots = matches!(kind, Kind::OpenSlots | Kind::ClosedSlots);
        let size = if slots { random.between(4, 14) } else { random.between(3, 30) } as u32;
        let used_for = Duration::from_micros(random.between(1_000, 20_000));
        let lengths = [Lengths::Even, Lengths::Slow, Lengths::Exponential];
        let drawn = lengths[random.below(3) as usize];
        let lengths = if kind == Kind::FixedUses { Lengths::Fixed } else { drawn };
        let mean = if lengths == Lengths::Slow { used_for * 118 / 100 } else { used_for };
        // In hundredths of what the pool, and its server, can do.
        let load = random.between(40, 115) as u32;
        let able = if slots { size.min(7) } else { size };
        let is_nested = matches!(kind, Kind::OpenNested | Kind::ClosedNested);
        // A caller holds the first connection for two uses, and the second one for one.
        let held = if is_nested { mean * 3 } else { mean };
        let (open, closed, apart) = arrivals(kind, (able, load), held, &mut random);
        let duration = apart * REQUESTS;
        let patience = mean * random.between(2, 25) as u32;
        let millis = Duration::from_millis((patience.as_millis() as u64).max(1));
        let mut options = PoolOptions::default().with_max_pool_size(size);
        let limits = match random.below(4) {
            0 => Limits::Option,
            1 => {
                options = options.with_wait_queue_timeout(millis);
                Limits::Option
            }
            2 => Limits::Deadline(patience),
            _ => Limits::Cancel(patience),
        };
        let change = Self::change(size, &options, &mut random);
        let opening = Duration::from_micros(random.between(2_000, 60_000));
        let is_retried = matches!(kind, Kind::OpenRetries | Kind::ClosedRetries);
        let production = Production {
            seed,
            open,
            closed,
            lengths,
            used_for,
            limits,
            opening: if kind == Kind::SlowOpenings { Duration::from_millis(300) } else { opening },
            failed_opening: if kind == Kind::FailedOpenings { 5 } else { 0 },
            duration,
            retries: if is_retried { 2 } else { 0 },
            server: match kind {
                Kind::Shared => Server::Shared(size.div_ceil(2)),
                _ if slots => Server::Slots(7),
                _ => Server::Unlimited,
            },
            stalls: match kind {
                Kind::OpenStalls | Kind::ClosedStalls => {
                    Some((duration / 11, Duration::from_millis(100).min(duration / 22)))
                }
                Kind::Quota => Some((Duration::from_millis(100), Duration::from_millis(30))),
                _ => None,
            },
            leaks: if kind == Kind::Leak { 500 } else { 0 },
            is_nested,
        };
        Self { production, options, change }
    }

    /// Two in three are upward.
    fn change(size: u32, options: &PoolOptions, random: &mut SplitMix) -> Change {
        let hundredths = [50, 70, 85, 115, 130, 150, 200, 300, 400][random.below(9) as usize];
        let other = (size * hundredths / 100).max(1);
        let other = if other == size { size + 1 } else { other };
        let mut change = Change::default().with(Setting::MaxPoolSize, other);
        if random.one_in(4) {
            let value = [1, 4, 8, 16][random.below(4) as usize];
            change = change.with(Setting::MaxConnecting, value);
        }
        debug_assert!(change.apply(options).validate().is_ok(), "{change}");
        change
    }

    fn compare(&self) -> Verdict {
        let read = |options: &PoolOptions| {
            let trace = self.production.record(options);
            Workload::read(trace.as_slice()).expect("a trace").0
        };
        let trace = read(&self.options);
        let truth = read(&self.change.apply(&self.options));
        let fit = Fit::of(&trace);
        let assumed = Assumptions::new(&trace, fit.better, &fit);
        let predicted = trace.foresee(&self.change, &assumed, Some(&fit));
        let is_warned = !predicted.doubts().is_empty();
        let truth = truth.recorded();
        Verdict { is_right: is_right(&predicted, truth), is_warned }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a load differs from the usual one in one thing"
)]
/// The callers, and how far apart their requests are on average.
fn arrivals(
    kind: Kind,
    (size, load): (u32, u32),
    mean: Duration,
    random: &mut SplitMix,
) -> (Option<Open>, Option<Closed>, Duration) {
    let apart = mean * 100 / (size * load);
    let duration = apart * REQUESTS;
    let shape = match kind {
        Kind::Regular => Shape::Regular,
        Kind::Bursts => Shape::Bursts(20),
        Kind::Cron => Shape::Cron(duration / 11),
        Kind::SlowWaves => Shape::Waves(duration / 2),
        Kind::FastWaves => Shape::Waves(duration / 40),
        Kind::Step => Shape::Step(duration / 2),
        _ => {
            let from = duration * random.between(20, 70) as u32 / 100;
            let to = from + duration * random.between(3, 20) as u32 / 100;
            Shape::Random { peak: (from, to, random.between(10, 30) as u32) }
        }
    };
    let is_half = kind == Kind::Both;
    let open = (!kind.is_closed())
        .then_some(Open { apart: if is_half { apart * 2 } else { apart }, shape });
    if !kind.is_closed() && !is_half {
        return (open, None, apart);
    }
    let callers = match kind {
        Kind::ManyCallers => 600,
        _ => size * random.between(120, 400) as u32 / 100 + 1,
    };
    let pause = match kind {
        Kind::WithoutThinking => Duration::from_micros(50),
        _ => (mean * callers * 100 / (size * load)).saturating_sub(mean).max(mean / 4),
    };
    let pause = if is_half { pause * 2 } else { pause };
    let closed = Closed { callers, pause, is_fixed: kind == Kind::FixedThinking };
    let apart = if is_half { apart } else { (mean / size).max((mean + pause) / callers) };
    (open, Some(closed), apart)
}

/// Time-outs within 10 % or 3, the 99th percentile of the waits within 20 %, served within 10 %.
fn is_right(predicted: &Prediction, truth: &Outcome) -> bool {
    let count = |of: fn(&Outcome) -> u64, few| {
        let of = |outcome: &Outcome| of(outcome) as f64;
        is_near(predicted, truth, of, (0.1, few))
    };
    count(|it| it.timed_out, 3.0)
        && count(|it| it.served, 0.0)
        && is_near(predicted, truth, |it| it.wait(990).as_secs_f64(), (0.2, 0.000_1))
}

/// A range is right if the truth lies in it, and its end is at most three times its beginning.
fn is_near(
    predicted: &Prediction,
    truth: &Outcome,
    of: impl Fn(&Outcome) -> f64,
    (part, few): (f64, f64),
) -> bool {
    let (median, (least, most)) = (predicted.median(&of), predicted.range(&of));
    let truth = of(truth);
    let is_near = (median - truth).abs() <= (part * truth).max(few);
    let is_narrow = most <= 3.0 * least || most <= few;
    is_near || (is_narrow && (least..=most).contains(&truth))
}

/// On all processors; the result does not depend on their number.
fn compare_all(seed: u64, runs: u64, kind: Kind) -> Vec<Verdict> {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut verdicts: Vec<(u64, Verdict)> = thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= runs {
                    return done;
                }
                let seed = seed.wrapping_mul(0x1_0000).wrapping_add(run);
                let seed = seed.wrapping_add((kind as u64) << 32);
                done.push((run, Case::draw(seed, kind).compare()));
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no run panics")).collect()
    });
    verdicts.sort_unstable_by_key(|(run, _)| *run);
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}
