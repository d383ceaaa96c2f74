//! The results of tests.

use std::path::PathBuf;

use serde::Serialize;

use super::target::Target;

/// What became of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// The results of tests, target by target.
    pub outcomes: Vec<Outcome>,
    /// The files that were not played.
    pub unplayed: Vec<Unplayed>,
}

/// A file that was not played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplayed {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why a file is not played. The first two are listed in the catalogue, or are due to the targets that
/// were asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is about what this project is not.
    NotApplicable(String),
    /// It is about drivers, and needs more of one than there is here.
    LeftOut(String),
    /// It cannot be read, is not of its format, or no format is known for its folder. A failure.
    Unreadable(String),
}

/// One test of one file on one target, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The file.
    pub file: PathBuf,
    /// What it was played on.
    pub target: Target,
    /// The test's own description.
    pub description: String,
    /// Its result.
    pub verdict: Verdict,
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that the test expects was seen.
    Passed,
    /// The differences.
    Failed(String),
    /// Why the test does not concern this project, or cannot be played on this target. It does not
    /// count as passed; each is listed in the module that plays it.
    NotApplicable(String),
}

impl From<cenote_conform::Verdict> for Verdict {
    fn from(verdict: cenote_conform::Verdict) -> Self {
        match verdict {
            cenote_conform::Verdict::Passed => Self::Passed,
            cenote_conform::Verdict::Failed(difference) => Self::Failed(difference),
            cenote_conform::Verdict::NotApplicable(reason) => Self::NotApplicable(reason),
            other => Self::Failed(format!("{other:?}")),
        }
    }
}

impl From<Result<(), String>> for Verdict {
    fn from(result: Result<(), String>) -> Self {
        cenote_conform::Verdict::from(result).into()
    }
}
