//! Conditions: `waiting>100`, `event=ConnectionCheckOutFailed`, `step=40`, `at=1.5`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use cenote_core::pool::{Action, Input, Instant, Snapshot, Status};
use cenote_core::trace::Traced;
use cenote_core::trace::topology::ActionRecord;

use super::clock::{Clock, NoClock, TimePoint};
use super::filter::{Names, name_of, similar};
use super::step_reader::View;
use super::topology;

/// A condition on a step and its result.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A count of the pool, compared with a number.
    Count(Count, Comparison, u64),
    /// The state of the pool.
    Status(Status),
    /// The input, an event or an action has this name.
    Named(Names, String),
    /// The number of the step, compared with a number.
    Step(Comparison, u64),
    /// The time of the step: `=` is the first step at or after it. A wall-clock time has to be
    /// [resolved](Condition::resolve) first, or it never comes.
    At(Comparison, TimePoint),
}

/// A count of the pool: its place in `COUNTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(usize);

type Counter = fn(&Snapshot) -> u64;

const COUNTS: [(&str, Counter); 7] = [
    ("total", |pool| pool.total.into()),
    ("idle", |pool| pool.available.into()),
    ("in-use", |pool| pool.in_use.into()),
    ("pending", |pool| pool.pending.into()),
    ("waiting", |pool| pool.waiting),
    ("generation", |pool| pool.generation),
    ("created", |pool| pool.connections_created),
];

/// A comparison of two numbers: its place in `COMPARISONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison(usize);

type Holds = fn(Ordering) -> bool;

/// Longer signs come first, because `>=` would otherwise be parsed as `>`.
const COMPARISONS: [(&str, Holds); 6] = [
    (">=", Ordering::is_ge),
    ("<=", Ordering::is_le),
    ("!=", Ordering::is_ne),
    (EQUAL, Ordering::is_eq),
    (">", Ordering::is_gt),
    ("<", Ordering::is_lt),
];

const EQUAL: &str = "=";

/// A step and its result.
#[derive(Clone, Copy, Debug)]
pub struct StepResult<'a> {
    /// The number of the step, compared with a number.
    pub step: u64,
    /// The time.
    pub at: Instant,
    /// The input.
    pub input: &'a Input<Traced>,
    /// The actions.
    pub actions: &'a [Action<Traced>],
    /// The counts afterwards.
    pub snapshot: Snapshot,
}

impl Condition {
    /// Whether the condition holds.
    pub fn holds(&self, result: &StepResult<'_>) -> bool {
        match self {
            Self::Count(Count(place), comparison, number) => {
                comparison.holds(COUNTS[*place].1(&result.snapshot), *number)
            }
            Self::Status(status) => result.snapshot.status == *status,
            Self::Named(Names::Inputs, name) => result.input.name() == name.as_str(),
            Self::Named(Names::Events | Names::Actions, name) => {
                result.actions.iter().any(|action| name_of(action) == name.as_str())
            }
            Self::Step(comparison, number) => comparison.holds(result.step, *number),
            Self::At(comparison, time) => comparison.holds_at(result.at, *time),
        }
    }

    /// Whether the condition holds for a step of a pool.
    pub fn holds_for(&self, view: &View<'_>) -> bool {
        self.holds(&StepResult {
            step: view.step.number,
            at: view.pool.now(),
            input: &view.step.input,
            actions: view.actions,
            snapshot: view.pool.snapshot(),
        })
    }

    /// Whether the condition holds for a step of a topology; `None` if it is one of pools.
    pub fn holds_for_topology(&self, view: &topology::View<'_>) -> Option<bool> {
        let named =
            |name: &str| view.actions.iter().any(|action| ActionRecord::of(action).name == name);
        Some(match self {
            Self::Count(..) | Self::Status(_) => return None,
            Self::Named(Names::Inputs, name) => view.step.input.name() == name.as_str(),
            Self::Named(Names::Events | Names::Actions, name) => named(name),
            Self::Step(comparison, number) => comparison.holds(view.step.number, *number),
            Self::At(comparison, time) => comparison.holds_at(view.step.at, *time),
        })
    }

    /// With a wall-clock time as the time of the trace.
    ///
    /// # Errors
    ///
    /// If the trace has no wall-clock time, and the condition has one.
    pub fn resolve(self, clock: &Clock) -> Result<Self, NoClock> {
        if let Self::At(comparison, time) = self {
            return Ok(Self::At(comparison, TimePoint::Seconds(clock.resolve(time)?)));
        }
        Ok(self)
    }
}

impl Comparison {
    const fn sign(self) -> &'static str {
        COMPARISONS[self.0].0
    }

    /// `=` is the first time at or after it. A wall-clock time never comes.
    fn holds_at(self, at: Instant, time: TimePoint) -> bool {
        match time {
            TimePoint::Seconds(nanos) if self.sign() == EQUAL => at.as_nanos() >= nanos,
            TimePoint::Seconds(nanos) => self.holds(at.as_nanos(), nanos),
            TimePoint::OfDay(_) | TimePoint::Date(_) => false,
        }
    }

    fn holds(self, left: u64, right: u64) -> bool {
        COMPARISONS[self.0].1(left.cmp(&right))
    }
}

/// In the syntax that is parsed.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(Count(place), comparison, number) => {
                write!(f, "{}{}{number}", COUNTS[*place].0, comparison.sign())
            }
            Self::Status(status) => write!(f, "status={status}"),
            Self::Named(names, name) => write!(f, "{}={name}", names.word()),
            Self::Step(comparison, number) => write!(f, "step{}{number}", comparison.sign()),
            Self::At(comparison, time) => write!(f, "at{}{time}", comparison.sign()),
        }
    }
}

/// A text that is not a valid condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCondition(String);

impl fmt::Display for InvalidCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a condition: write waiting>100, total, idle, in-use, pending, generation or \
             created the same way, status=paused, event=ConnectionCheckOutFailed, input=Clear, \
             action=ReportLeak, step=40, at=1.5 (seconds) or at=03:07:12",
            self.0
        )?;
        let Some((word, name)) = self.0.split_once('=') else { return Ok(()) };
        let Some(names) = Names::of_word(word) else { return Ok(()) };
        similar(name, names.known()).map_or(Ok(()), |name| write!(f, "; did you mean {name}?"))
    }
}

impl std::error::Error for InvalidCondition {}

impl FromStr for Condition {
    type Err = InvalidCondition;

    fn from_str(text: &str) -> Result<Self, InvalidCondition> {
        parse(text).ok_or_else(|| InvalidCondition(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Condition> {
    let (at, place, sign) = COMPARISONS
        .iter()
        .enumerate()
        .filter_map(|(place, (sign, _))| Some((text.find(sign)?, place, *sign)))
        .min_by_key(|&(at, _, sign)| (at, std::cmp::Reverse(sign.len())))?;
    let (key, value) = (text[..at].trim(), text[at + sign.len()..].trim());
    let comparison = Comparison(place);
    if let Some(names) = Names::of_word(key) {
        let is_known = sign == EQUAL && names.known().any(|known| known == value);
        return is_known.then(|| Condition::Named(names, value.to_owned()));
    }
    match key {
        "step" => Some(Condition::Step(comparison, value.parse().ok()?)),
        "at" => Some(Condition::At(comparison, value.parse().ok()?)),
        "status" if sign == EQUAL => [Status::Paused, Status::Ready, Status::Closed]
            .into_iter()
            .find(|status| status.to_string() == value)
            .map(Condition::Status),
        _ => {
            let count = COUNTS.iter().position(|(name, _)| *name == key)?;
            Some(Condition::Count(Count(count), comparison, value.parse().ok()?))
        }
    }
}

/// The names of inputs.
pub const INPUTS: [&str; 19] = [
    "CheckOutRequested",
    "CheckOutCancelled",
    "CheckedIn",
    "Repurposed",
    "Handshaken",
    "EstablishSucceeded",
    "EstablishFailed",
    "IdleClosedByPeer",
    "DrainSucceeded",
    "DrainFailed",
    "DrainProgress",
    "RetireConnections",
    "ReleaseIdle",
    "Ready",
    "Close",
    "Timer",
    "ResetAfterFork",
    "Clear",
    "SetOptions",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed() {
        for (text, written) in [
            ("waiting>100", "waiting>100"),
            ("in-use >= 3", "in-use>=3"),
            ("status=paused", "status=paused"),
            ("event=ConnectionClosed", "event=ConnectionClosed"),
            ("input= Clear", "input=Clear"),
            ("action=ReportLeak", "action=ReportLeak"),
            ("step!=40", "step!=40"),
        ] {
            let condition: Condition = text.parse().expect(text);
            assert_eq!(condition.to_string(), written);
            assert_eq!(written.parse(), Ok(condition));
        }
        for (text, time) in [("at=1.5s", "1.5"), ("at=03:07", "03:07:00")] {
            let time = time.parse().expect("a time");
            let condition: Condition = text.parse().expect(text);
            assert_eq!(condition, Condition::At(Comparison(3), time));
            assert_eq!(condition.to_string().parse(), Ok(condition));
        }
        for text in ["", "waiting", "waiting>x", "event=Nothing", "status>ready", "at=-1", "x=1"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }
}
