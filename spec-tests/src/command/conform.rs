//! `cenote conform PATH…`

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use crate::conform::{self, Outcome, Target, Unreadable, Verdict};

/// What `cenote conform` can be told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Test files, or folders of them, as in the repository of the specifications
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// What to play them on; each file on those that it is about, by default on all of them
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Target::ALL)]
    target: Vec<Target>,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    passed: usize,
    failed: usize,
    skipped: usize,
    #[serde(rename = "notApplicable")]
    not_applicable: usize,
    files: usize,
    tests: Vec<Test<'a>>,
}

#[derive(Debug, Serialize)]
struct Test<'a> {
    file: String,
    target: &'static str,
    description: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
}

/// Plays the files and prints a line a test.
///
/// # Errors
///
/// When a path cannot be read, or holds something else than tests.
pub fn run(arguments: &Arguments) -> Result<bool, Unreadable> {
    let targets: BTreeSet<_> = arguments.target.iter().copied().collect();
    let targets: Vec<_> = targets.into_iter().collect();
    let mut outcomes = Vec::new();
    for path in &arguments.paths {
        outcomes.extend(conform::play(path, &targets)?);
    }
    let report = Report::new(&outcomes);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("a report is plain data"));
    } else {
        report.print();
    }
    Ok(report.failed == 0 && report.passed > 0)
}

impl<'a> Report<'a> {
    fn new(outcomes: &'a [Outcome]) -> Self {
        let files: BTreeSet<_> = outcomes.iter().map(|outcome| &outcome.file).collect();
        let tests: Vec<_> = outcomes.iter().map(Test::new).collect();
        let count = |verdict| tests.iter().filter(|test| test.verdict == verdict).count();
        Self {
            passed: count("passed"),
            failed: count("failed"),
            skipped: 0, // There is no way to skip a test.
            not_applicable: count("not applicable"),
            files: files.len(),
            tests,
        }
    }

    fn print(&self) {
        for test in &self.tests {
            let Test { file, target, description, verdict, because } = test;
            println!("{verdict:<14} {target:<5} {file}: {description}");
            if let Some(because) = because {
                println!("{:<14} {}", "", because.replace('\n', "\n               "));
            }
        }
        println!("{} files, {} tests not applicable", self.files, self.not_applicable);
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
    }
}

impl<'a> Test<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        let (verdict, because) = match &outcome.verdict {
            Verdict::Passed => ("passed", None),
            Verdict::Failed(difference) => ("failed", Some(difference.as_str())),
            Verdict::LeftOut(reason) => ("left out", Some(reason.as_str())),
            Verdict::NotApplicable(reason) => ("not applicable", Some(reason.as_str())),
        };
        let file = outcome.file.file_name().unwrap_or(outcome.file.as_os_str());
        let file = file.to_string_lossy().into_owned();
        let target = outcome.target.name();
        Self { file, target, description: &outcome.description, verdict, because }
    }
}
