//! Finds the first difference between two traces.

use std::io::Read;

use cenote_core::trace::topology;
use cenote_core::trace::{ActionRecord, TraceError};

use super::clock::{Clock, UtcOffset};
use super::step_reader::{StepReader, View};
use super::text;
use super::topology::{StepReader as TopologyReader, View as TopologyView, line, unchanged};

/// The common beginning of two traces, and their first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of equal steps.
    pub same: u64,
    /// The difference, one line each; empty if there is none.
    pub lines: Vec<String>,
}

/// A step of one trace, as far as it is compared.
struct Side<A> {
    input: String,
    at: String,
    actions: Vec<A>,
    state: String,
    line: String,
}

/// How many actions of a step are shown.
const ACTIONS_MAX: usize = 10;

/// Replays both traces until they differ.
///
/// # Errors
///
/// If a trace cannot be read; with its index, 0 or 1.
pub fn diff(left: impl Read, right: impl Read) -> Result<Difference, (usize, TraceError)> {
    let mut left = StepReader::new(left).map_err(|error| (0, error))?;
    let mut right = StepReader::new(right).map_err(|error| (1, error))?;
    if left.header().options != right.header().options {
        let options = |watch: &cenote_core::trace::TraceHeader| watch.options.to_string();
        let lines = vec![
            "the pools have different options:".to_owned(),
            format!("- {}", options(left.header())),
            format!("+ {}", options(right.header())),
        ];
        return Ok(Difference { same: 0, lines });
    }
    if left.pool().fingerprint() != right.pool().fingerprint() {
        let lines = vec![
            "the traces begin in different states:".to_owned(),
            format!("- {}  {}", left.pool().now(), left.pool().snapshot()),
            format!("+ {}  {}", right.pool().now(), right.pool().snapshot()),
        ];
        return Ok(Difference { same: 0, lines });
    }
    let clocks =
        [left.header(), right.header()].map(|header| Clock::new(header, UtcOffset::default()));
    let one = || left.step(|view| Side::of(view, &clocks[0]));
    first_difference(one, || right.step(|view| Side::of(view, &clocks[1])))
}

/// The same for two traces of topologies.
///
/// # Errors
///
/// As [`diff`].
pub fn diff_topologies(
    left: impl Read,
    right: impl Read,
) -> Result<Difference, (usize, TraceError)> {
    let mut left = TopologyReader::new(left).map_err(|error| (0, error))?;
    let mut right = TopologyReader::new(right).map_err(|error| (1, error))?;
    let [one, other] = [left.topology(), right.topology()].map(ToString::to_string);
    if one != other {
        let lines = vec![
            "the traces begin in different states:".to_owned(),
            format!("- {one}"),
            format!("+ {other}"),
        ];
        return Ok(Difference { same: 0, lines });
    }
    let clocks = [left.header(), right.header()]
        .map(|header| Clock::from(header.origin, header.start, UtcOffset::default()));
    let one = || left.step(|view| Side::of_topology(view, &clocks[0]));
    first_difference(one, || right.step(|view| Side::of_topology(view, &clocks[1])))
}

fn first_difference<A: PartialEq>(
    mut left: impl FnMut() -> Result<Option<Side<A>>, TraceError>,
    mut right: impl FnMut() -> Result<Option<Side<A>>, TraceError>,
) -> Result<Difference, (usize, TraceError)> {
    let mut same = 0;
    loop {
        let one = left().map_err(|error| (0, error))?;
        let other = right().map_err(|error| (1, error))?;
        let lines = match (one, other) {
            (None, None) => return Ok(Difference { same, lines: Vec::new() }),
            (Some(one), Some(other)) => one.differs_from(&other),
            (Some(more), None) => vec![
                "the second trace ends; the first continues:".to_owned(),
                format!("- {}", more.line),
            ],
            (None, Some(more)) => vec![
                "the first trace ends; the second continues:".to_owned(),
                format!("+ {}", more.line),
            ],
        };
        if !lines.is_empty() {
            return Ok(Difference { same, lines });
        }
        same += 1;
    }
}

impl Side<topology::ActionRecord> {
    fn of_topology(view: &TopologyView<'_>, clock: &Clock) -> Self {
        Self {
            input: unchanged(view.step),
            at: view.step.at.to_string(),
            actions: view.actions.iter().map(topology::ActionRecord::of).collect(),
            state: view.topology.to_string(),
            line: line(view, clock),
        }
    }
}

impl Side<ActionRecord> {
    fn of(view: &View<'_>, clock: &Clock) -> Self {
        Self {
            input: text::input(&view.step.input),
            at: view.step.at.to_string(),
            actions: view.actions.iter().filter_map(ActionRecord::of).collect(),
            state: format!("{} {:016x}", view.pool.snapshot(), view.pool.fingerprint()),
            line: text::brief_step(view, clock, ACTIONS_MAX),
        }
    }
}

impl<A: PartialEq> Side<A> {
    fn differs_from(&self, other: &Self) -> Vec<String> {
        let what = if self.input != other.input {
            "different inputs:"
        } else if self.at != other.at {
            "the same input at different times:"
        } else if self.actions != other.actions {
            "the same input had different actions:"
        } else if self.state != other.state {
            "the same input led to different states:"
        } else {
            return Vec::new();
        };
        vec![what.to_owned(), format!("- {}", self.line), format!("+ {}", other.line)]
    }
}

#[cfg(test)]
mod tests {
    use cenote_core::pool::{Input, Instant, PoolCheckpoint, Purpose, WaiterId};
    use cenote_core::trace::{Cause, TraceInfo, TraceWriter};

    use super::*;

    /// Of a pool that is ready, and in which this many requests wait when it is cleared.
    fn trace(requests: u64, clears: bool) -> Vec<u8> {
        let mut writer = TraceWriter::new(Vec::new(), TraceInfo::default());
        writer.begin(&PoolCheckpoint::default(), 0).expect("memory");
        let asks = (1..=requests).map(|id| Input::CheckOutRequested {
            id: WaiterId(id),
            waiter: WaiterId(id),
            deadline: None,
            purpose: Purpose::Other,
        });
        let clear = clears.then(|| Input::Clear {
            cause: Cause::default(),
            interrupt: true,
            service: None,
        });
        for input in [Input::Ready].into_iter().chain(asks).chain(clear) {
            writer.input(Instant::ORIGIN, &input, false).expect("memory");
        }
        writer.finish().expect("memory")
    }

    #[test]
    fn a_step_with_many_actions_stays_short() {
        let (all, part) = (trace(500, true), trace(500, false));
        let Difference { same, lines } = diff(&*part, &*all).expect("good traces");
        assert_eq!((same, lines.len()), (501, 2));
        assert!(lines[1].starts_with("+ ") && lines[1].len() < 600, "{lines:?}");
        assert!(lines[1].contains(", and ") && lines[1].contains(" more  |  "), "{lines:?}");
    }
}
