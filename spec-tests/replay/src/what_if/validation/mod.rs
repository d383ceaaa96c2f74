//! Whether `cenote predict` predicts what another setting does: runs are recorded with one setting and, with the
//! same callers and the same server, with another one, which is predicted from the first.

mod production;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cenote_core::pool::PoolOptions;

use self::production::{Arrivals, Lengths, Limits, Production};
use super::{Assumptions, Change, Fit, Loop, Outcome, ServerLimit, Setting, Workload};
use crate::random::SplitMix;

/// A run that is recorded twice, with two settings.
#[derive(Clone, Debug)]
struct Case {
    production: Production,
    options: PoolOptions,
    change: Change,
}

/// A prediction, and what really happened.
#[derive(Clone, Copy, Debug)]
struct Pair {
    truth: Measured,
    predicted: Measured,
    is_closed: bool,
    is_loop_found: bool,
    is_server_found: bool,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    timed_out: u64,
    p99: Duration,
}

/// What is different from the usual case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Usual,
    Short,
    Retries,
    Server,
    WrongLoop,
}

const RUNS: u64 = 1_000;

/// Cases in which a prediction is wrong more often, and their number of runs.
const OTHERS: [(&str, Kind); 4] = [
    ("a trace of 500 requests", Kind::Short),
    ("callers try again at once, twice", Kind::Retries),
    ("uses take longer, with more than half of the connections in use", Kind::Server),
    ("predicted with the other loop", Kind::WrongLoop),
];
const OTHER_RUNS: u64 = 200;

/// Requests of a trace.
const REQUESTS: u32 = 5_000;
const FEW_REQUESTS: u32 = 500;

/// Predicts 1,000 runs from their traces, and 200 of each kind that is harder: how many predictions are near what really
/// happened, as two tables in Markdown. The same seed gives the same tables.
pub fn compare(seed: u64) -> String {
    let pairs = compare_all(seed, RUNS, Kind::Usual);
    let (closed, open): (Vec<Pair>, Vec<Pair>) = pairs.iter().partition(|pair| pair.is_closed);
    let usual = [("come whatever happens", &open), ("come again", &closed), ("both", &pairs)];
    let usual = usual.map(|(name, pairs)| row(name, pairs)).concat();
    let others =
        OTHERS.map(|(name, kind)| row(name, &compare_all(seed, OTHER_RUNS, kind))).concat();
    format!("| callers {HEAD}{usual}\n| difference {HEAD}{others}")
}

const HEAD: &str = "| runs | loop recognized | time-outs near | p99 near | server blamed |\n|---|---|---|---|---|---|\n";

fn row(name: &str, pairs: &[Pair]) -> String {
    let share = |is: fn(&Pair) -> bool| {
        let those = pairs.iter().filter(|pair| is(pair)).count();
        format!("{:.1} %", 100.0 * those as f64 / pairs.len().max(1) as f64)
    };
    let cells = [
        name.to_owned(),
        pairs.len().to_string(),
        share(|pair| pair.is_loop_found),
        share(|pair| pair.time_out_error() <= 0.1),
        share(|pair| pair.p99_error() <= 0.2),
        share(|pair| pair.is_server_found),
    ];
    format!("| {} |\n", cells.join(" | "))
}

impl Case {
    fn draw(seed: u64, kind: Kind) -> Self {
        let requests = if kind == Kind::Short { FEW_REQUESTS } else { REQUESTS };
        let mut random = SplitMix(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x77);
        let size = random.between(3, 30) as u32;
        let used_for = Duration::from_micros(random.between(1_000, 20_000));
        let lengths = [Lengths::Even, Lengths::Slow, Lengths::Exponential];
        let lengths = lengths[random.below(3) as usize];
        let mean = match lengths {
            Lengths::Even | Lengths::Exponential => used_for,
            Lengths::Slow => used_for * 118 / 100,
        };
        // In hundredths of what the pool can do.
        let load = random.between(40, 115) as u32;
        let (arrivals, apart) = if random.flip() {
            let apart = mean * 100 / (size * load);
            let peak = random.between(10, 30) as u32;
            let duration = apart * requests;
            let from = duration * random.between(20, 70) as u32 / 100;
            let to = from + duration * random.between(3, 20) as u32 / 100;
            (Arrivals::Open { apart, peak: (from, to, peak) }, apart)
        } else {
            let callers = size * random.between(80, 400) as u32 / 100 + 1;
            let pause = (mean * callers * 100 / (size * load)).saturating_sub(mean);
            let pause = pause.max(mean / 4);
            let apart = (mean / size).max((mean + pause) / callers);
            (Arrivals::Closed { callers, pause }, apart)
        };
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
        let production = Production {
            seed,
            arrivals,
            lengths,
            used_for,
            limits,
            opening: Duration::from_micros(random.between(2_000, 60_000)),
            failed_opening: [0, 0, 20][random.below(3) as usize],
            duration: apart * requests,
            retries: if kind == Kind::Retries { 2 } else { 0 },
            server: (kind == Kind::Server).then_some(size.div_ceil(2)),
        };
        Self { production, options, change }
    }

    fn change(size: u32, options: &PoolOptions, random: &mut SplitMix) -> Change {
        let mut change = Change::default();
        let kinds = random.between(1, 2);
        for _ in 0..kinds {
            let (setting, value) = match random.below(4) {
                0 | 1 => {
                    let hundredths =
                        [50, 70, 85, 115, 130, 150, 200, 300][random.below(8) as usize];
                    (Setting::MaxPoolSize, (size * hundredths / 100).max(1))
                }
                2 => (Setting::MaxConnecting, [1, 4, 8, 16][random.below(4) as usize]),
                _ => match options.wait_queue_timeout {
                    Some(limit) => {
                        let hundredths = [25, 50, 200, 400][random.below(4) as usize];
                        let millis = (limit * hundredths / 100).as_millis() as u32;
                        (Setting::WaitQueueTimeout, millis.max(1))
                    }
                    None => (Setting::MinPoolSize, 1 + (size / 4)),
                },
            };
            change = change.with(setting, value);
        }
        if change.apply(options).validate().is_err() {
            Change::default().with(Setting::MaxPoolSize, size * 2)
        } else {
            change
        }
    }

    fn compare(&self, kind: Kind) -> Pair {
        let read = |options: &PoolOptions| {
            let trace = self.production.record(options);
            Workload::read(trace.as_slice()).expect("a trace").0
        };
        let trace = read(&self.options);
        let truth = read(&self.change.apply(&self.options));
        let fit = Fit::of(&trace);
        let is_closed = matches!(self.production.arrivals, Arrivals::Closed { .. });
        let is = if is_closed { Loop::Closed } else { Loop::Open };
        let by = match (kind, is) {
            (Kind::WrongLoop, Loop::Closed) => Loop::Open,
            (Kind::WrongLoop, Loop::Open) => Loop::Closed,
            (Kind::Usual | Kind::Short | Kind::Retries | Kind::Server, _) => fit.better,
        };
        let predicted = trace.predict(&self.change, &Assumptions::new(by, &fit));
        Pair {
            truth: Measured::of(truth.recorded()),
            predicted: Measured {
                timed_out: predicted.median(|outcome| outcome.timed_out),
                p99: predicted.median(|outcome| outcome.wait(990)),
            },
            is_closed,
            is_loop_found: fit.better == is,
            is_server_found: ServerLimit::of(&trace).is_some(),
        }
    }
}

impl Measured {
    fn of(outcome: &Outcome) -> Self {
        Self { timed_out: outcome.timed_out, p99: outcome.wait(990) }
    }
}

/// A difference of so many time-outs is none.
const FEW: u64 = 3;

impl Pair {
    /// As a part of what really happened.
    fn time_out_error(&self) -> f64 {
        let difference = self.truth.timed_out.abs_diff(self.predicted.timed_out);
        if difference <= FEW { 0.0 } else { part(difference as f64, self.truth.timed_out as f64) }
    }

    fn p99_error(&self) -> f64 {
        let difference = self.truth.p99.abs_diff(self.predicted.p99);
        part(difference.as_secs_f64(), self.truth.p99.as_secs_f64())
    }
}

fn part(difference: f64, whole: f64) -> f64 {
    if difference == 0.0 { 0.0 } else { difference / whole }
}

/// On all processors; the result does not depend on their number.
fn compare_all(seed: u64, runs: u64, kind: Kind) -> Vec<Pair> {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut pairs: Vec<(u64, Pair)> = thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= runs {
                    return done;
                }
                let case = Case::draw(seed.wrapping_mul(0x1_0000).wrapping_add(run), kind);
                done.push((run, case.compare(kind)));
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no run panics")).collect()
    });
    pairs.sort_unstable_by_key(|(run, _)| *run);
    pairs.into_iter().map(|(_, pair)| pair).collect()
}
