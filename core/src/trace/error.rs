//! Errors in traces, with their place.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use std::io;

use thiserror::Error;

use crate::pool::{InvalidCheckpoint, InvalidOptions, MisuseReason};
use crate::wire::BsonProblem;

use super::action::ActionRecord;
use super::topology;

/// What is wrong with a trace, at which byte, and after how many inputs. One line.
///
/// Everything before that byte was good: it has been replayed.
#[derive(Debug, Error)]
#[error("byte {byte}, step {step}: {problem}")]
pub struct TraceError {
    /// Where the document begins that is wrong, from the start of the trace; for a fingerprint or
    /// actions that do not agree, those that were recorded.
    pub byte: u64,
    /// The number of the last input that was read, from 1; 0 before the first.
    pub step: u64,
    /// The problem.
    pub problem: TraceProblem,
}

impl TraceError {
    /// Whether the trace is readable and the replay differs from the recorded pool; all other
    /// problems are those of the file.
    pub const fn is_difference(&self) -> bool {
        match &self.problem {
            TraceProblem::Fingerprint { .. }
            | TraceProblem::Actions(_)
            | TraceProblem::TopologyActions(_)
            | TraceProblem::NotRefused { .. } => true,
            TraceProblem::Io(_)
            | TraceProblem::Empty
            | TraceProblem::NotATrace { .. }
            | TraceProblem::OtherFormat { .. }
            | TraceProblem::Version { .. }
            | TraceProblem::Length { .. }
            | TraceProblem::Cut { .. }
            | TraceProblem::NoEnd
            | TraceProblem::AfterTheEnd
            | TraceProblem::Bson { .. }
            | TraceProblem::Field { .. }
            | TraceProblem::UnknownDocument { .. }
            | TraceProblem::OutOfPlace { .. }
            | TraceProblem::TimeOrder { .. }
            | TraceProblem::Missing { .. }
            | TraceProblem::Options(_)
            | TraceProblem::State(_)
            | TraceProblem::Refused { .. } => false,
        }
    }
}

/// See [`TraceError`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceProblem {
    /// The source could not be read.
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// The source is empty.
    #[error("empty: a trace begins with a header")]
    Empty,
    /// The source is not a trace.
    #[error(
        "not a trace: {found}; traces are BSON documents whose first has format: \"cenote-trace\", or \
         \"cenote-topology\""
    )]
    NotATrace {
        /// What the source is instead.
        found: String,
    },
    /// The trace of a pool where that of a topology is expected, or the other way round.
    #[error("a trace with format: \"{got}\", where one with \"{expected}\" is expected")]
    OtherFormat {
        /// The format in the header.
        got: &'static str,
        /// The format that is read here.
        expected: &'static str,
    },
    /// A trace of another version.
    #[error("a trace of version {got}, but this program reads none above {known}")]
    Version {
        /// The value in the header.
        got: u64,
        /// The supported version.
        known: u64,
    },
    /// A length that no document of a trace has.
    #[error("a document of {got} bytes, but those of a trace have 5 to {max}")]
    Length {
        /// The value in the document.
        got: i32,
        /// The most that makes sense.
        max: usize,
    },
    /// The source ends within a document.
    #[error("cut: the document has {expected} bytes, but only {got} are there")]
    Cut {
        /// As the document says; 4 if it ends within its length.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// The source ends between two documents, and none of them was the end.
    #[error("cut: the trace ends without its last document")]
    NoEnd,
    /// Something follows the last document.
    #[error("there is more after the end of the trace")]
    AfterTheEnd,
    /// A document that is not well-formed.
    #[error("damaged: {problem} (at byte {offset} of the document)")]
    Bson {
        /// Where in the document.
        offset: usize,
        /// What is wrong there.
        problem: BsonProblem,
    },
    /// A field that is absent, of the wrong type or out of range.
    #[error("damaged: `{key}` {problem}")]
    Field {
        /// Of the field.
        key: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A document that begins with a key that no document of this version begins with.
    #[error("damaged: no document of a trace begins with `{key}`")]
    UnknownDocument {
        /// Its first key.
        key: String,
    },
    /// A document where it makes no sense.
    #[error("damaged: a document that begins with `{key}` makes no sense here")]
    OutOfPlace {
        /// Its first key.
        key: String,
    },
    /// An input before the one that was recorded before it, without being marked so.
    #[error("times out of order: {now} ns comes after {before} ns and is not marked `back`")]
    TimeOrder {
        /// Of this input.
        now: u64,
        /// Of the input before.
        before: u64,
    },
    /// Inputs were taken out of the file, or put into it.
    #[error("there were {said} inputs up to here when this was recorded, but {counted} are in it")]
    Missing {
        /// The value in the document.
        said: u64,
        /// As they were counted.
        counted: u64,
    },
    /// No pool can have begun with these options.
    #[error("damaged: the options are invalid: {0}")]
    Options(InvalidOptions),
    /// No pool can be in the state with which the trace begins.
    #[error("damaged: no pool can be in this state: {0}")]
    State(InvalidCheckpoint),
    /// The machine refuses an input that the recorded pool accepted.
    #[error("{input} is refused: {reason}")]
    Refused {
        /// The input's name.
        input: &'static str,
        /// Why.
        reason: MisuseReason,
    },
    /// The machine accepts an input that the recorded pool refused.
    #[error("{input} was refused when it was recorded, but is not refused now")]
    NotRefused {
        /// The input's name.
        input: &'static str,
    },
    /// The state is another than it was.
    #[error(
        "the fingerprint is {got:016x}, but {recorded:016x} was recorded: since the last one that agreed, something went another way"
    )]
    Fingerprint {
        /// As it was.
        recorded: u64,
        /// As it is.
        got: u64,
    },
    /// The actions are others than they were.
    #[error("{0}")]
    Actions(Box<ActionDifference<ActionRecord>>),
    /// The actions of a topology are others than they were.
    #[error("{0}")]
    TopologyActions(Box<ActionDifference<topology::ActionRecord>>),
}

/// An action that is another than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionDifference<A> {
    /// Which of the step, from 1.
    pub index: usize,
    /// As it was; `None` if there was none.
    pub recorded: Option<A>,
    /// As it is; `None` if there is none.
    pub got: Option<A>,
}

impl<A: fmt::Display> fmt::Display for ActionDifference<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, recorded, got } = self;
        write!(f, "action {index} is {}, but {} was recorded", Shown(got), Shown(recorded))
    }
}

struct Shown<'a, A>(&'a Option<A>);

impl<A: fmt::Display> fmt::Display for Shown<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("nothing"),
            Some(action) => fmt::Display::fmt(action, f),
        }
    }
}
