//! What became of all test files, for people and for machines.

mod junit;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;

pub(super) use self::junit::xml;
use crate::command::output::printable;
use crate::formats::{self, Outcome, Played, Reason, Target, Unplayed, Verdict};

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) passed: usize,
    pub(super) failed: usize,
    skipped: usize,
    pub(super) counts: FileCounts,
    pub(super) files: Vec<File>,
    pub(super) tests: Vec<Test>,
}

/// How many files there are, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileCounts {
    files: usize,
    played: usize,
    not_applicable: usize,
    left_out: usize,
    pub(super) unreadable: usize,
}

/// A file, and how many of its tests went how on each target.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    pub(super) file: String,
    /// None, if it is not played.
    pub(super) targets: BTreeMap<&'static str, TestCounts>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) unplayed: Option<Reason>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestCounts {
    /// Of all of them: the worst.
    pub(super) verdict: &'static str,
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) not_applicable: usize,
}

/// One test on one target.
#[derive(Debug, Serialize)]
pub(super) struct Test {
    pub(super) file: String,
    pub(super) target: &'static str,
    pub(super) description: String,
    pub(super) verdict: &'static str,
    /// How it failed, or why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) because: Option<String>,
}

impl Report {
    pub(super) fn new(played: Played) -> Self {
        let files = File::of(&played);
        let tests: Vec<_> = played.outcomes.into_iter().map(Test::new).collect();
        let count = |verdict| tests.iter().filter(|test| test.verdict == verdict).count();
        Self {
            passed: count(PASSED),
            failed: count(FAILED),
            skipped: 0, // There is no way to skip a test.
            counts: FileCounts::of(&files),
            files,
            tests,
        }
    }

    /// Whether something was played, and nothing is wrong.
    pub(super) const fn is_good(&self) -> bool {
        self.passed > 0 && self.failed == 0 && self.counts.unreadable == 0
    }

    /// A line for each test, and for each file that is not played; then the counts.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for Test { file, target, description, verdict, because } in &self.tests {
            let file = file.rsplit('/').next().unwrap_or_default();
            let _ = writeln!(
                text,
                "{verdict:<14} {target:<5} {}: {}",
                printable(file),
                printable(description)
            );
            for line in because.iter().flat_map(|because| because.lines()) {
                let _ = writeln!(text, "{:<14} {}", "", printable(line));
            }
        }
        for File { file, unplayed, .. } in &self.files {
            match unplayed {
                None => {}
                // Its message names the file, and the line.
                Some(Reason::Unreadable(why)) => {
                    let _ = writeln!(text, "{UNREADABLE:<14} {}", printable(why));
                }
                Some(Reason::NotApplicable(why)) => {
                    let _ = writeln!(text, "{NOT_APPLICABLE:<14} {}: {why}", printable(file));
                }
                Some(Reason::LeftOut(why)) => {
                    let _ = writeln!(text, "{LEFT_OUT:<14} {}: {why}", printable(file));
                }
            }
        }
        let Self { passed, failed, skipped, counts, .. } = self;
        let _ = writeln!(text, "{counts}\n{passed} passed, {failed} failed, {skipped} skipped");
        text
    }
}

impl fmt::Display for FileCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, played, not_applicable, left_out, unreadable } = self;
        write!(
            f,
            "{files} files: {played} played, {not_applicable} not applicable, {left_out} left out, \
             {unreadable} unreadable"
        )
    }
}

impl FileCounts {
    pub(super) fn of<'a>(files: impl IntoIterator<Item = &'a File>) -> Self {
        let mut counts = Self::default();
        for file in files {
            counts.files += 1;
            let count = match &file.unplayed {
                None => &mut counts.played,
                Some(Reason::NotApplicable(_)) => &mut counts.not_applicable,
                Some(Reason::LeftOut(_)) => &mut counts.left_out,
                Some(Reason::Unreadable(_)) => &mut counts.unreadable,
            };
            *count += 1;
        }
        counts
    }
}

impl File {
    /// In the order of their names.
    fn of(played: &Played) -> Vec<Self> {
        let mut files: BTreeMap<String, Self> = BTreeMap::new();
        for Outcome { file, target, verdict, .. } in &played.outcomes {
            let file = files.entry(formats::name_of(file)).or_default();
            file.targets.entry(target.name()).or_default().add(verdict);
        }
        for Unplayed { file, reason } in &played.unplayed {
            files.entry(formats::name_of(file)).or_default().unplayed = Some(reason.clone());
        }
        files.into_iter().map(|(file, it)| Self { file, ..it }).collect()
    }
}

impl TestCounts {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(_) => self.failed += 1,
            Verdict::NotApplicable(_) => self.not_applicable += 1,
        }
        self.verdict = match self {
            Self { failed: 1.., .. } => FAILED,
            Self { passed: 1.., .. } => PASSED,
            Self { .. } => NOT_APPLICABLE,
        };
    }
}

pub(super) const PASSED: &str = "passed";
pub(super) const FAILED: &str = "failed";
pub(super) const NOT_APPLICABLE: &str = "not applicable";
const LEFT_OUT: &str = "left out";
const UNREADABLE: &str = "unreadable";

impl Test {
    fn new(outcome: Outcome) -> Self {
        let (verdict, because) = match outcome.verdict {
            Verdict::Passed => (PASSED, None),
            Verdict::Failed(difference) => (FAILED, Some(difference)),
            Verdict::NotApplicable(reason) => (NOT_APPLICABLE, Some(reason)),
        };
        let file = formats::name_of(&outcome.file);
        let target = Target::name(outcome.target);
        Self { file, target, description: outcome.description, verdict, because }
    }
}
