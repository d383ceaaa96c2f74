//! Where two traces part.

use std::io::Read;

use cenote_core::trace::{ActionRecord, TraceError};

use super::text;
use super::watch::{View, Watch};

/// What two traces have in common, and the first thing in which they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// So many steps are the same.
    pub same: u64,
    /// How they differ then, a line each; empty if they do not.
    pub lines: Vec<String>,
}

/// A step of one of the two, as far as it is compared.
struct Side {
    input: String,
    at: String,
    actions: Vec<ActionRecord>,
    state: String,
    line: String,
}

/// Replays both side by side until they part.
///
/// # Errors
///
/// When one of them cannot be read, with which: 0 or 1.
pub fn diff(left: impl Read, right: impl Read) -> Result<Difference, (usize, TraceError)> {
    let mut left = Watch::new(left).map_err(|error| (0, error))?;
    let mut right = Watch::new(right).map_err(|error| (1, error))?;
    if left.header().options != right.header().options {
        let options = |watch: &cenote_core::trace::TraceHeader| {
            crate::lockstep::Brief(&watch.options).to_string()
        };
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
    loop {
        let same = left.steps();
        let one = left.step(Side::of).map_err(|error| (0, error))?;
        let other = right.step(Side::of).map_err(|error| (1, error))?;
        let lines = match (one, other) {
            (None, None) => return Ok(Difference { same, lines: Vec::new() }),
            (Some(one), Some(other)) => one.differs_from(&other),
            (Some(more), None) => vec![
                "the second trace ends; the first goes on:".to_owned(),
                format!("- {}", more.line),
            ],
            (None, Some(more)) => vec![
                "the first trace ends; the second goes on:".to_owned(),
                format!("+ {}", more.line),
            ],
        };
        if !lines.is_empty() {
            return Ok(Difference { same, lines });
        }
    }
}

impl Side {
    fn of(view: &View<'_>) -> Self {
        Self {
            input: text::input(&view.step.input),
            at: view.step.at.to_string(),
            actions: view.actions.iter().filter_map(ActionRecord::of).collect(),
            state: format!("{} {:016x}", view.pool.snapshot(), view.pool.fingerprint()),
            line: text::step(view),
        }
    }

    fn differs_from(&self, other: &Self) -> Vec<String> {
        let what = if self.input != other.input {
            "different inputs:"
        } else if self.at != other.at {
            "the same input at different times:"
        } else if self.actions != other.actions {
            "the same input had different consequences:"
        } else if self.state != other.state {
            "the same input led to different states:"
        } else {
            return Vec::new();
        };
        vec![what.to_owned(), format!("- {}", self.line), format!("+ {}", other.line)]
    }
}
