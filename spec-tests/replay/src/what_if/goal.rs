//! What a pool is to keep.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::outcome::{Answer, Outcome};
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

    /// Whether a request that ended so speaks against it.
    fn is_missed(self, answer: Answer, wait: Duration) -> bool {
        match self {
            Self::Wait { within, .. } => answer != Answer::Served || wait >= within,
            Self::TimeOuts { .. } => answer == Answer::TimedOut,
        }
    }
}

/// When a goal is lost, so that the rest of a run makes no difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    goal: Goal,
    /// The most requests that speak against it.
    most: f64,
}

impl Stop {
    /// As there are never more than `others` other requests. `None` for a goal that says nothing of those that fail
    /// otherwise: these come back, and can be any number.
    pub(super) fn new(goal: Goal, others: u64) -> Option<Self> {
        let Goal::Wait { thousandths, .. } = goal else { return None };
        let part = 1.0 - thousandths as f64 / 1000.0;
        Some(Self { goal, most: others as f64 * part / (1.0 - part) })
    }
}

/// What a run has missed of a goal.
#[derive(Debug, Default)]
pub(super) struct Missed {
    stop: Option<Stop>,
    requests: u64,
}

impl Missed {
    pub(super) fn new(stop: Option<Stop>) -> Self {
        Self { stop, requests: 0 }
    }

    pub(super) fn count(&mut self, answer: Answer, wait: Duration) {
        self.requests += u64::from(self.stop.is_some_and(|it| it.goal.is_missed(answer, wait)));
    }

    pub(super) fn is_lost(&self) -> bool {
        self.stop.is_some_and(|stop| self.requests as f64 > stop.most)
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
}
