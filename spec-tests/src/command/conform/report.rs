//! What became of all files, for people and for machines.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::command::output::printable;
use crate::conform::{self, Outcome, Target, Verdict};

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) passed: usize,
    pub(super) failed: usize,
    skipped: usize,
    not_applicable: usize,
    left_out: usize,
    pub(super) files: Vec<File>,
    pub(super) tests: Vec<Test>,
}

/// A file, and how many of its tests went how on each target.
#[derive(Debug, Serialize)]
pub(super) struct File {
    pub(super) file: String,
    pub(super) targets: BTreeMap<&'static str, Counts>,
    /// Why it is not played.
    #[serde(rename = "leftOut", skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
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
    pub(super) fn new(outcomes: Vec<Outcome>) -> Self {
        let files = File::of(&outcomes);
        let tests: Vec<_> = outcomes.into_iter().map(Test::new).collect();
        let count = |verdict| tests.iter().filter(|test| test.verdict == verdict).count();
        Self {
            passed: count(PASSED),
            failed: count(FAILED),
            skipped: 0, // There is no way to skip a test.
            not_applicable: count(NOT_APPLICABLE),
            left_out: files.iter().filter(|file| file.left_out.is_some()).count(),
            files,
            tests,
        }
    }

    pub(super) fn print(&self) {
        for Test { file, target, description, verdict, because } in &self.tests {
            let file = file.rsplit('/').next().unwrap_or_default();
            println!("{verdict:<14} {target:<5} {}: {}", printable(file), printable(description));
            for line in because.iter().flat_map(|because| because.lines()) {
                println!("{:<14} {}", "", printable(line));
            }
        }
        let Self { passed, failed, skipped, not_applicable, left_out, files, .. } = self;
        println!(
            "{} files, {left_out} of them left out, {not_applicable} tests not applicable",
            files.len()
        );
        println!("{passed} passed, {failed} failed, {skipped} skipped");
    }
}

impl File {
    fn of(outcomes: &[Outcome]) -> Vec<Self> {
        let names: BTreeSet<_> = outcomes.iter().map(|it| conform::name_of(&it.file)).collect();
        let mut files: BTreeMap<String, Self> = names
            .into_iter()
            .map(|file| (file.clone(), Self { file, targets: BTreeMap::new(), left_out: None }))
            .collect();
        for outcome in outcomes {
            let Some(file) = files.get_mut(&conform::name_of(&outcome.file)) else { continue };
            if let Verdict::LeftOut(reason) = &outcome.verdict {
                file.left_out = Some(reason.clone());
                continue;
            }
            let counts = file.targets.entry(outcome.target.name()).or_default();
            match outcome.verdict {
                Verdict::Passed => counts.passed += 1,
                Verdict::Failed(_) => counts.failed += 1,
                Verdict::NotApplicable(_) => counts.not_applicable += 1,
                Verdict::LeftOut(_) => {}
            }
            counts.verdict = match counts {
                Counts { failed: 1.., .. } => FAILED,
                Counts { passed: 1.., .. } => PASSED,
                Counts { .. } => NOT_APPLICABLE,
            };
        }
        files.into_values().collect()
    }
}

const PASSED: &str = "passed";
pub(super) const FAILED: &str = "failed";
const NOT_APPLICABLE: &str = "not applicable";
const LEFT_OUT: &str = "left out";

impl Test {
    fn new(outcome: Outcome) -> Self {
        let (verdict, because) = match outcome.verdict {
            Verdict::Passed => (PASSED, None),
            Verdict::Failed(difference) => (FAILED, Some(difference)),
            Verdict::NotApplicable(reason) => (NOT_APPLICABLE, Some(reason)),
            Verdict::LeftOut(reason) => (LEFT_OUT, Some(reason)),
        };
        let file = conform::name_of(&outcome.file);
        let target = Target::name(outcome.target);
        Self { file, target, description: outcome.description, verdict, because }
    }
}
