//! The smallest pool that keeps a goal.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::fit::{Fit, Loop};
use super::outcome::Outcome;
use super::server::ServerLimit;
use super::settings::{Change, Setting};
use super::workload::Workload;
use super::{Assumptions, Prediction};
use crate::text::span;

/// What a pool is to keep: `p99 wait < 5 ms`, `max wait < 1 s` or `time-outs < 1 %`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// At least this part of the requests, in thousandths, is served within this time.
    Wait {
        /// 1000 is every request.
        thousandths: usize,
        /// The longest wait.
        within: Duration,
    },
    /// Fewer requests than this part time out.
    TimeOuts {
        /// From 0 to 1.
        below: f64,
    },
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let examples = "`p99 wait < 5 ms`, `max wait < 1 s` or `time-outs < 1 %`";
        parse(text).ok_or_else(|| format!("`{text}` is no goal: write {examples}"))
    }
}

fn parse(text: &str) -> Option<Goal> {
    let (what, limit) = text.split_once('<')?;
    let words: Vec<_> = what.split_whitespace().collect();
    let limit = limit.trim();
    match words[..] {
        ["time-outs"] => {
            let part = number(limit.strip_suffix('%')?)? / 100.0;
            (part > 0.0 && part <= 1.0).then_some(Goal::TimeOuts { below: part })
        }
        [part, "wait"] => {
            Some(Goal::Wait { thousandths: thousandths(part)?, within: time(limit)? })
        }
        _ => None,
    }
}

/// `p99`, `p99.9` or `max`.
fn thousandths(text: &str) -> Option<usize> {
    if text == "max" {
        return Some(1000);
    }
    let thousandths = number(text.strip_prefix('p')?)? * 10.0;
    let is_whole = (thousandths - thousandths.round()).abs() < 1e-6;
    (is_whole && (1.0..=1000.0).contains(&thousandths)).then_some(thousandths.round() as usize)
}

/// A time above zero, and at most a day.
fn time(text: &str) -> Option<Duration> {
    let place = text.find(|character: char| character.is_ascii_alphabetic() || character == 'µ')?;
    let (value, unit) = text.split_at(place);
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    let seconds = number(value)? * seconds;
    let time = Duration::from_secs_f64(if seconds <= 86_400.0 { seconds } else { 0.0 });
    (time > Duration::ZERO).then_some(time)
}

/// Digits with at most one point; nothing else that Rust reads as a number.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_plain)
}

impl Goal {
    /// Whether an outcome keeps it.
    pub fn is_kept(self, outcome: &Outcome) -> bool {
        match self {
            Self::Wait { thousandths, within } => {
                outcome.served_within(thousandths).is_some_and(|wait| wait < within)
            }
            Self::TimeOuts { below } => outcome.time_out_share() < below,
        }
    }

    /// Whether more than half of the draws keep it.
    fn is_likely(self, prediction: &Prediction) -> bool {
        let kept = prediction.outcomes().iter().filter(|outcome| self.is_kept(outcome)).count();
        kept * 2 > prediction.outcomes().len()
    }
}

/// As it is written.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait { thousandths: 1000, within } => write!(f, "max wait < {}", span(*within)),
            Self::Wait { thousandths, within } => {
                write!(f, "p{} wait < {}", *thousandths as f64 / 10.0, span(*within))
            }
            Self::TimeOuts { below } => write!(f, "time-outs < {} %", below * 100.0),
        }
    }
}

/// The callers that a pool is advised for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situation {
    /// The minute with the most requests, instead of the whole trace.
    pub is_busiest_minute: bool,
    /// How many times as many callers.
    pub load: f64,
}

impl Situation {
    /// The trace, and its busiest minute with as many callers, a fifth more, and half as many more.
    pub const ALL: [Self; 4] = [
        Self { is_busiest_minute: false, load: 1.0 },
        Self { is_busiest_minute: true, load: 1.0 },
        Self { is_busiest_minute: true, load: 1.2 },
        Self { is_busiest_minute: true, load: 1.5 },
    ];
}

/// `busiest minute × 1.2`
impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_busiest_minute { "busiest minute" } else { "the trace" })?;
        if self.load > 1.0 { write!(f, " × {}", self.load) } else { Ok(()) }
    }
}

/// What a situation needs.
#[derive(Clone, Debug)]
pub enum Need {
    /// These options keep the goal, at this price.
    Pool {
        /// `maxPoolSize`, `maxConnecting` and `minPoolSize`.
        change: Change,
        /// What would have happened.
        prediction: Prediction,
    },
    /// The goal needs more connections in use than the server serves at once.
    Server(ServerLimit),
    /// Not even a pool without a limit keeps the goal, as when the establishment of a connection takes longer.
    NoPool {
        /// What would have happened with a pool that has no limit.
        prediction: Prediction,
    },
}

/// What pools keep a goal.
#[derive(Clone, Debug)]
pub struct Advice {
    /// For each of [`Situation::ALL`].
    pub needs: Vec<(Situation, Need)>,
    /// The server's limit, if the trace shows one.
    pub server: Option<ServerLimit>,
}

const MINUTE: Duration = Duration::from_secs(60);

/// How often what the trace does not show is drawn; fewer times than for a prediction, because dozens of pools are tried.
const DRAWS: u64 = 3;

/// So many are established at once at most.
const CONNECTING_MAX: u32 = 64;

impl Workload {
    /// The smallest pools that keep a goal, in each of [`Situation::ALL`]: first the smallest `maxPoolSize`; then the
    /// `maxConnecting` of the trace, or the smallest that is enough; then the smallest `minPoolSize`.
    pub fn advise(&self, goal: Goal, by: Loop, seed: u64) -> Advice {
        let server = ServerLimit::of(self);
        let minute = self.busiest(MINUTE);
        let need = |situation: Situation| {
            let workload = if situation.is_busiest_minute { &minute } else { self };
            let callers = Assumptions::new(workload, by, &Fit::of(workload));
            let assumptions = Assumptions { load: situation.load, draws: DRAWS, seed, ..callers };
            let need = Search { workload, goal, assumptions }.need();
            match (need, server) {
                (Need::Pool { change, .. }, Some(limit)) if size(&change) > limit.connections => {
                    (situation, Need::Server(limit))
                }
                (need, _) => (situation, need),
            }
        };
        Advice { needs: Situation::ALL.map(need).into(), server }
    }
}

fn size(change: &Change) -> u32 {
    change.value(Setting::MaxPoolSize).unwrap_or(0)
}

struct Search<'a> {
    workload: &'a Workload,
    goal: Goal,
    assumptions: Assumptions,
}

impl Search<'_> {
    fn need(&self) -> Need {
        let unlimited = self.predict(&sized(0, CONNECTING_MAX, 0));
        let most = unlimited.range(|outcome| outcome.peak).1.max(1);
        // With all of them established from the beginning.
        let best = sized(most, CONNECTING_MAX, most);
        if !self.keeps(&best) {
            return Need::NoPool { prediction: unlimited };
        }
        let size = smallest(1, most, |size| self.keeps(&sized(size, CONNECTING_MAX, size)));
        let recorded = Setting::MaxConnecting.of(self.workload.options());
        let recorded = u32::try_from(recorded).unwrap_or(CONNECTING_MAX).min(CONNECTING_MAX);
        let doubled = |connecting: &u32| Some(connecting * 2).filter(|&it| it <= CONNECTING_MAX);
        let connecting = |least: u32| {
            let mut all = std::iter::successors(Some(recorded), doubled);
            all.find(|&connecting| self.keeps(&sized(size, connecting, least)))
        };
        let change = match connecting(0) {
            Some(connecting) => sized(size, connecting, 0),
            None => {
                let connecting = connecting(size).unwrap_or(CONNECTING_MAX);
                let enough = |least| self.keeps(&sized(size, connecting, least));
                sized(size, connecting, smallest(1, size, enough))
            }
        };
        let prediction = self.predict(&change);
        Need::Pool { change, prediction }
    }

    fn keeps(&self, change: &Change) -> bool {
        self.goal.is_likely(&self.predict(change))
    }

    fn predict(&self, change: &Change) -> Prediction {
        self.workload.predict(change, &self.assumptions)
    }
}

fn sized(size: u32, connecting: u32, least: u32) -> Change {
    Change::default()
        .with(Setting::MaxPoolSize, size)
        .with(Setting::MaxConnecting, connecting)
        .with(Setting::MinPoolSize, least)
}

/// The smallest number that is enough, if the largest is, and every number above one that is.
fn smallest(least: u32, most: u32, is_enough: impl Fn(u32) -> bool) -> u32 {
    let (mut least, mut most) = (least, most);
    while least < most {
        let middle = least + (most - least) / 2;
        if is_enough(middle) { most = middle } else { least = middle + 1 }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_and_written() {
        for (text, written) in [
            ("p99 wait < 5 ms", "p99 wait < 5 ms"),
            ("p99.9 wait<1.5s", "p99.9 wait < 1.5 s"),
            (" max  wait < 250 µs", "max wait < 250 µs"),
            ("p50 wait < 250us", "p50 wait < 250 µs"),
            ("time-outs < 1 %", "time-outs < 1 %"),
            ("time-outs < 0.5%", "time-outs < 0.5 %"),
        ] {
            let goal: Goal = text.parse().expect(text);
            assert_eq!(goal.to_string(), written);
            assert_eq!(written.parse(), Ok(goal));
        }
    }

    #[test]
    fn other_texts_are_no_goals() {
        let waits = ["", " < ", " < 5", " < 5 h", " < -5 ms", " < 0 ms", " < 1e3 ms", " < inf s"];
        let waits = waits.iter().chain(&[" < 86401 s", " > 1 s", " < 1.2.3 ms"]);
        let waits = waits.map(|limit| format!("p99 wait{limit}"));
        let parts = ["p0 ", "p101 ", "p99.99 ", ""].map(|part| format!("{part}wait < 1 s"));
        let others = ["", "p99", "time-outs < 0 %", "time-outs < 101 %", "time-outs < 1"];
        for text in waits.chain(parts).chain(others.map(str::to_owned)) {
            let text = &text;
            let error = text.parse::<Goal>().expect_err(text);
            let expected = format!("`{text}` is no goal: write `p99 wait < 5 ms`");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn the_smallest_is_found() {
        for enough in 1..=20 {
            assert_eq!(smallest(1, 20, |number| number >= enough), enough);
        }
    }
}
