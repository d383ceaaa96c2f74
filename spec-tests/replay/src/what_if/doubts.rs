//! Why a prediction may be wrong, as far as its trace shows.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use cenote_core::pool::Instant;

use super::workload::{Fate, Request};
use super::{Assumptions, Change, Fit, Loop, Outcome, Prediction, ServerLimit, Setting, Workload};
use crate::text::{counted, grouped};

/// Why a prediction may be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// So many connections look leaked. More will be.
    Leak(usize),
    /// The server is the limit: with more in use each takes longer.
    Server(ServerLimit),
    /// Nearly all of maxPoolSize was in use all the time: how the server takes to more or fewer is not known.
    Full,
    /// So many requests followed a failed one at once: they would not come if that were served.
    Retries(usize),
    /// So often nothing happened for a while, and then several uses ended at once: they took less time than it seems.
    Stalls(usize),
    /// So many requests have no end in the events, although later ones were served.
    Unended(u64),
}

impl Doubt {
    /// In a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Leak(_) => "leaks",
            Self::Server(_) => "server",
            Self::Full => "full",
            Self::Retries(_) => "retries",
            Self::Stalls(_) => "stalls",
            Self::Unended(_) => "no end",
        }
    }
}

impl Display for Doubt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Leak(leaked) => write!(
                f,
                "{} leaked (cenote explain --leaks lists them): if so, more will be, which is not predicted, and no size \
                 cures that",
                counted(leaked as u64, "connection looks", "connections look")
            ),
            Self::Server(limit) => write!(
                f,
                "finishes no more than {} uses a second, from {} on: with more in use each takes longer, \
                 which is not predicted",
                grouped(limit.per_second.round() as u64),
                counted(limit.connections.into(), "connection in use", "connections in use")
            ),
            Self::Full => f.write_str(
                "all connections were in use nearly all the time: how the server takes to more, or fewer, is \
                 not seen; record with a larger pool",
            ),
            Self::Retries(retries) => write!(
                f,
                "{} came at once after one that failed, as if it were tried again; predicted they come \
                 whether it fails or not",
                counted(retries as u64, "request", "requests")
            ),
            Self::Stalls(stalls) => write!(
                f,
                "{} nothing happened for a while, and then several uses ended at once: if the program stood \
                 still, they took less time than it seems",
                counted(stalls as u64, "time", "times")
            ),
            Self::Unended(unended) => write!(
                f,
                "{} no end in the events: taken to have given up when a later one was served",
                counted(unended, "check-out has", "check-outs have")
            ),
        }
    }
}

/// With less evidence of a closed loop, if there is some, either loop may be true.
const UNSURE: f64 = 20.0;

/// Of maxPoolSize, on average.
const FULL: f64 = 0.9;

impl Workload {
    /// Why its predictions may be wrong.
    pub fn doubts(&self, fit: &Fit) -> Vec<Doubt> {
        let leaked = Some(self.leaked()).filter(|leaked| *leaked > 0);
        let size = Setting::MaxPoolSize.of(self.options()) as f64;
        let is_full = size > 0.0 && self.recorded().mean_in_use > FULL * size;
        let retries = Some(self.retries()).filter(|it| *it > 0 && fit.better == Loop::Open);
        let stalls =
            Some(self.stalls()).filter(|it| *it >= STALLS.max(self.requests.len() / STALLS_PER));
        let doubts = [
            leaked.map(Doubt::Leak),
            ServerLimit::of(self).map(Doubt::Server),
            is_full.then_some(Doubt::Full),
            retries.map(Doubt::Retries),
            stalls.map(Doubt::Stalls),
            Some(self.unended).filter(|it| *it > 0).map(Doubt::Unended),
        ];
        doubts.into_iter().flatten().collect()
    }

    /// Whether the trace does not show if callers come again, and a prediction depends on it: that of the other loop is then
    /// another one.
    pub fn depends_on_loop(
        &self,
        change: &Change,
        fit: &Fit,
        prediction: &Prediction,
        seed: u64,
    ) -> bool {
        let is_known = !(0.0..UNSURE).contains(&fit.evidence);
        let other = || Assumptions { seed, ..Assumptions::new(fit.better.other(), fit) };
        !is_known && differ(prediction, &self.predict(change, &other()))
    }

    /// How many requests came so soon after another one had failed that it cannot be chance; 0 if those may.
    fn retries(&self) -> usize {
        let mut asked: Vec<_> = self.counted().iter().map(|request| request.asked).collect();
        asked.sort_unstable();
        let failed = self
            .counted()
            .iter()
            .filter(|request| matches!(request.fate, Fate::Failed | Fate::Cancelled));
        let failed: Vec<_> = failed.filter_map(Request::ended).collect();
        let between = |from: u64, to: u64| {
            let place = |nanos| asked.partition_point(|asked| asked.as_nanos() <= nanos);
            place(to) - place(from)
        };
        // Twice those soon after a failure, and those of two such times beside it.
        let soon = AT_ONCE.as_nanos() as u64;
        let (mut seen, mut chance) = (0, 0);
        for at in failed.iter().map(|at| at.as_nanos()) {
            seen += 2 * between(at.saturating_sub(1), at + soon);
            chance += between(at.saturating_sub(5 * soon), at.saturating_sub(4 * soon));
            chance += between(at + 4 * soon, at + 5 * soon);
        }
        let more = seen.saturating_sub(chance) / 2;
        let is_chance = (more as f64) < 3.0 * (chance as f64).sqrt() + failed.len() as f64 / 10.0;
        // Each is counted for each that failed just before it.
        if is_chance { 0 } else { more.min(failed.len()) }
    }

    /// How often nothing happened for long while connections were in use, and then half of their uses ended at once, although
    /// they had not begun together.
    fn stalls(&self) -> usize {
        // How many uses begin at a time, and when those began that end then.
        let mut changes: BTreeMap<Instant, (usize, Vec<Instant>)> = BTreeMap::new();
        for request in &self.requests {
            changes.entry(request.asked).or_default();
            if let (true, Some(ended)) = (request.was_served(), request.ended()) {
                changes.entry(request.answered()).or_default().0 += 1;
                changes.entry(ended).or_default().1.push(request.answered());
            }
        }
        let requests = (self.requests.len() as u32).max(1);
        let silence = (self.duration() / requests * SILENCE).max(LEAST_SILENCE);
        let (mut in_use, mut last, mut stalls) = (0, self.start, 0);
        let mut woken: Option<Awakening> = None;
        for (at, (begin, ended)) in changes {
            if in_use >= 2 && at.saturating_since(last) >= silence {
                woken = Some(Awakening { at, least: 2.max(in_use / 2), ended: Vec::new() });
            }
            in_use = in_use + begin - ended.len();
            last = at;
            let Some(awakening) = &mut woken else { continue };
            awakening.ended.extend(ended);
            if at.saturating_since(awakening.at) > AT_ONCE {
                woken = None;
            } else if awakening.ended.len() >= awakening.least {
                stalls += usize::from(!awakening.began_together());
                woken = None;
            }
        }
        stalls
    }
}

/// After a silence.
struct Awakening {
    at: Instant,
    /// How many uses have to end.
    least: usize,
    /// When those began that have.
    ended: Vec<Instant>,
}

impl Awakening {
    fn began_together(&self) -> bool {
        let (first, last) = (self.ended.iter().min(), self.ended.iter().max());
        first.zip(last).is_none_or(|(first, last)| last.saturating_since(*first) <= AT_ONCE)
    }
}

/// Soon after something else, whatever threads do.
const AT_ONCE: Duration = Duration::from_millis(2);
/// As long as so many requests take on average.
const SILENCE: u32 = 8;
const LEAST_SILENCE: Duration = Duration::from_millis(5);
/// Fewer are chance; and fewer than one for so many requests.
const STALLS: usize = 3;
const STALLS_PER: usize = 1000;

/// Whether they are not the same answer.
fn differ(one: &Prediction, other: &Prediction) -> bool {
    let count = |of: fn(&Outcome) -> u64| one.median(of).abs_diff(other.median(of)) as f64;
    let timed_out = |outcome: &Outcome| outcome.timed_out;
    let served = |outcome: &Outcome| outcome.served;
    let p99 = |it: &Prediction| it.median(|outcome| outcome.wait(990)).as_secs_f64();
    count(timed_out) > (0.2 * one.median(timed_out) as f64).max(6.0)
        || count(served) > 0.1 * one.median(served) as f64
        || (p99(one) - p99(other)).abs() > 0.4 * p99(one)
}
