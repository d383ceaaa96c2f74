//! The results of scenarios.

use std::fmt;
use std::path::PathBuf;

/// The result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Events, error and messages are those that the scenario expects, and nothing was left open.
    Passed,
    /// The differences, a line each.
    Failed(String),
    /// Why the scenario cannot be played on this target. It does not count as passed.
    NotApplicable(String),
}

/// One scenario and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The file.
    pub file: PathBuf,
    /// What the scenario is about.
    pub description: String,
    /// Its result.
    pub verdict: Verdict,
}

/// The results of all scenarios of a folder. Its `Display` is a line for each, and the totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order of the names of the files.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// How many scenarios passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Passed))
    }

    /// How many scenarios failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed(_)))
    }

    /// How many scenarios cannot be played on the target.
    #[must_use]
    pub fn not_applicable(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::NotApplicable(_)))
    }

    fn count(&self, is_counted: impl Fn(&Verdict) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| is_counted(&outcome.verdict)).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Outcome { file, description, verdict } in &self.outcomes {
            let file = file.display();
            match verdict {
                Verdict::Passed => writeln!(f, "passed          {file}: {description}")?,
                Verdict::Failed(reason) => {
                    writeln!(f, "failed          {file}: {description}\n{reason}")?;
                }
                Verdict::NotApplicable(reason) => {
                    writeln!(f, "not applicable  {file}: {description} ({reason})")?;
                }
            }
        }
        let (passed, failed) = (self.passed(), self.failed());
        write!(f, "{passed} passed, {failed} failed, {} not applicable", self.not_applicable())
    }
}
