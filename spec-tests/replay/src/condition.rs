//! Conditions: `waiting>100`, `event=ConnectionCheckOutFailed`, `step=40`, `at=1.5`.

use std::fmt;
use std::str::FromStr;

use cenote_core::pool::{Action, Input, Instant, Snapshot, Status};
use cenote_core::trace::Traced;
use cenote_core::trace::topology::ActionRecord;

use super::clock::{Clock, NoClock, TimePoint};
use super::filter::{Names, name_of, similar};
use super::topology;

/// A condition on a step and its result.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A count of the pool, compared with a number.
    Count(Count, Comparison, u64),
    /// The state of the pool.
    Status(Status),
    /// An event of this name is emitted.
    Event(String),
    /// The input has this name.
    Input(String),
    /// An action of this name, other than an event.
    Action(String),
    /// The number of the step, compared with a number.
    Step(Comparison, u64),
    /// The time of the step: `=` is the first step at or after it. A wall-clock time has to be
    /// [resolved](Condition::resolve) first, or it never comes.
    At(Comparison, TimePoint),
}

/// A count of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Pending, available and in use together.
    Total,
    /// Available connections.
    Idle,
    /// Connections in use.
    InUse,
    /// Connections being established.
    Pending,
    /// Requests in the wait queue.
    Waiting,
    /// The generation of the pool.
    Generation,
    /// Connections ever created.
    Created,
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
}

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
    pub snapshot: &'a Snapshot,
}

impl Condition {
    /// Whether the condition holds.
    pub fn holds(&self, result: &StepResult<'_>) -> bool {
        match self {
            Self::Count(count, comparison, number) => {
                comparison.holds(count.of(result.snapshot), *number)
            }
            Self::Status(status) => result.snapshot.status == *status,
            Self::Event(name) => result.actions.iter().any(
                |action| matches!(action, Action::EmitEvent(event) if event.name() == name.as_str()),
            ),
            Self::Input(name) => result.input.name() == name.as_str(),
            Self::Action(name) => result.actions.iter().any(|action| name_of(action) == name.as_str()),
            Self::Step(comparison, number) => comparison.holds(result.step, *number),
            Self::At(comparison, time) => comparison.holds_at(result.at, *time),
        }
    }

    /// Whether the condition holds for a step of a topology; `None` if it is one of pools.
    pub fn holds_for_topology(&self, view: &topology::View<'_>) -> Option<bool> {
        let named =
            |name: &str| view.actions.iter().any(|action| ActionRecord::of(action).name == name);
        Some(match self {
            Self::Count(..) | Self::Status(_) => return None,
            Self::Event(name) | Self::Action(name) => named(name),
            Self::Input(name) => view.step.input.name() == name.as_str(),
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

impl Count {
    const ALL: [Self; 7] = [
        Self::Total,
        Self::Idle,
        Self::InUse,
        Self::Pending,
        Self::Waiting,
        Self::Generation,
        Self::Created,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Idle => "idle",
            Self::InUse => "in-use",
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Generation => "generation",
            Self::Created => "created",
        }
    }

    fn of(self, snapshot: &Snapshot) -> u64 {
        match self {
            Self::Total => snapshot.total.into(),
            Self::Idle => snapshot.available.into(),
            Self::InUse => snapshot.in_use.into(),
            Self::Pending => snapshot.pending.into(),
            Self::Waiting => snapshot.waiting,
            Self::Generation => snapshot.generation,
            Self::Created => snapshot.connections_created,
        }
    }
}

impl Comparison {
    /// Longer signs come first, because `>=` would otherwise be parsed as `>`.
    const ALL: [Self; 6] =
        [Self::AtLeast, Self::AtMost, Self::Unequal, Self::Equal, Self::Above, Self::Below];

    const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::Below => "<",
        }
    }

    /// `=` is the first time at or after it. A wall-clock time never comes.
    fn holds_at(self, at: Instant, time: TimePoint) -> bool {
        let comparison = if self == Self::Equal { Self::AtLeast } else { self };
        match time {
            TimePoint::Seconds(nanos) => comparison.holds(at.as_nanos(), nanos),
            TimePoint::OfDay(_) | TimePoint::Date(_) => false,
        }
    }

    fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::AtLeast => left >= right,
            Self::AtMost => left <= right,
            Self::Above => left > right,
            Self::Below => left < right,
        }
    }
}

/// In the syntax that is parsed.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count, comparison, number) => {
                write!(f, "{}{}{number}", count.name(), comparison.sign())
            }
            Self::Status(status) => write!(f, "status={status}"),
            Self::Event(name) => write!(f, "event={name}"),
            Self::Input(name) => write!(f, "input={name}"),
            Self::Action(name) => write!(f, "action={name}"),
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
        let (names, name) = match self.0.split_once('=') {
            Some(("event", name)) => (Names::Events, name),
            Some(("input", name)) => (Names::Inputs, name),
            Some(("action", name)) => (Names::Actions, name),
            Some(_) | None => return Ok(()),
        };
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
    let (at, comparison, sign) = Comparison::ALL
        .iter()
        .filter_map(|&comparison| {
            let sign = comparison.sign();
            Some((text.find(sign)?, comparison, sign))
        })
        .min_by_key(|&(at, _, sign)| (at, std::cmp::Reverse(sign.len())))?;
    let (key, value) = (text[..at].trim(), text[at + sign.len()..].trim());
    let is_equal = comparison == Comparison::Equal;
    let named = |names: Names| names.known().any(|known| known == value).then(|| value.to_owned());
    match key {
        "step" => Some(Condition::Step(comparison, value.parse().ok()?)),
        "at" => Some(Condition::At(comparison, value.parse().ok()?)),
        "event" if is_equal => named(Names::Events).map(Condition::Event),
        "input" if is_equal => named(Names::Inputs).map(Condition::Input),
        "action" if is_equal => named(Names::Actions).map(Condition::Action),
        "status" if is_equal => [Status::Paused, Status::Ready, Status::Closed]
            .into_iter()
            .find(|status| status.to_string() == value)
            .map(Condition::Status),
        _ => {
            let count = Count::ALL.into_iter().find(|count| count.name() == key)?;
            Some(Condition::Count(count, comparison, value.parse().ok()?))
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
        for (text, expected) in [
            ("waiting>100", Condition::Count(Count::Waiting, Comparison::Above, 100)),
            ("in-use >= 3", Condition::Count(Count::InUse, Comparison::AtLeast, 3)),
            ("status=paused", Condition::Status(Status::Paused)),
            ("event=ConnectionClosed", Condition::Event("ConnectionClosed".to_owned())),
            ("input=Clear", Condition::Input("Clear".to_owned())),
            ("action=ReportLeak", Condition::Action("ReportLeak".to_owned())),
            ("step=40", Condition::Step(Comparison::Equal, 40)),
            ("at=1.5s", Condition::At(Comparison::Equal, TimePoint::Seconds(1_500_000_000))),
            (
                "at>=03:07",
                Condition::At(Comparison::AtLeast, TimePoint::OfDay(jiff::civil::time(3, 7, 0, 0))),
            ),
        ] {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        }
        let told = |text: &str| text.parse::<Condition>().expect_err("a wrong name").to_string();
        assert!(told("event=ConectionClosed").ends_with("; did you mean ConnectionClosed?"));
        assert!(told("action=HeldTooLong").ends_with("; did you mean ReportLeak?"));
        for text in ["", "waiting", "waiting>x", "event=Nothing", "status>ready", "at=-1", "x=1"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }
}
