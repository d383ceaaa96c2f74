//! The results of tests.

use std::path::PathBuf;

use super::target::Target;

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
    /// Why the file is not played. It does not count as passed; each is listed in the catalogue.
    LeftOut(String),
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
