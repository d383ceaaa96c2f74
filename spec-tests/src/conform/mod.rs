//! Plays the official test files of MongoDB's specifications.
//!
//! The files are not part of this project; every function here takes a path to them. A file is
//! told by its folder (`cmap-format`, `uri-options`, …), as in the repository of the
//! specifications, and handed to the module that knows its format.

mod catalogue;
pub mod cmap;
pub mod connection;
mod crew;
mod document;
mod logs;
mod not_on;
mod place;
mod requirement;
pub mod sdam_errors;
mod starved;
pub mod unified;
pub mod uri;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use self::catalogue::Runner;
pub use self::document::Document;
use self::document::{is_yaml, twin};
pub use self::place::{Foreign, Place};

/// What a file is played on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// The machine itself; where time matters, it is virtual
    Core,
    /// The pool on tokio, in real time, on real sockets to an endpoint of our own
    Tokio,
    /// The same without an async runtime, on mio
    Mio,
}

/// What became of one test of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The file, as it was found.
    pub file: PathBuf,
    /// What it was played on.
    pub target: Target,
    /// The test's own description.
    pub description: String,
    /// Whether it passed.
    pub verdict: Verdict,
}

/// Whether a test passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All that the test expects was seen.
    Passed,
    /// What was expected, and what was seen instead.
    Failed(String),
    /// Why the test does not concern this project, or cannot be met by any. It does not count as
    /// passed; each is listed in the module that plays it.
    NotApplicable(String),
    /// Why the file is not played. It does not count as passed; each is listed in the catalogue.
    LeftOut(String),
}

impl Target {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Core, Self::Tokio, Self::Mio];

    /// As the command line spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Tokio => "tokio",
            Self::Mio => "mio",
        }
    }

    /// How many files are played at the same time. Those on sockets spend most of theirs waiting;
    /// too many of them would wait for the processor.
    const fn at_once(self, place: &Place) -> usize {
        match (self, place) {
            (Self::Core, _) | (_, Place::Server(_)) => 1,
            (Self::Tokio | Self::Mio, Place::Endpoint) => 8,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Result<(), String>> for Verdict {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Passed,
            Err(difference) => Self::Failed(difference),
        }
    }
}

/// Why a path could not be played at all.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not JSON.
    #[error("{path}:{line}: not a JSON document: {reason}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where it stops being JSON.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// Not YAML.
    #[error("{path}:{line}: not a YAML document: {reason}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where it stops being YAML.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A document, but not of the format that its folder promises; or a folder of none.
    #[error("{path}{}: not a test file: {reason}", colon(*line))]
    Format {
        /// The file.
        path: PathBuf,
        /// Where it is wrong, if that can be said.
        line: Option<usize>,
        /// Which key is wrong, and how.
        reason: String,
    },
    /// Such files have the endpoint do what no other server can be told to do.
    #[error("{path}: such files are played against the endpoint alone")]
    NoServer {
        /// The file.
        path: PathBuf,
    },
    /// What the file is about is not to be had on any target that was asked for.
    #[error("{path}: such files are played on {} alone", names(played_on))]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// Where it can be played.
        played_on: &'static [Target],
    },
}

/// What is said to a file that would pass whatever there is.
const NOTHING_TO_SHOW: &str = "a file without a test shows nothing";

fn colon(line: Option<usize>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

fn names(targets: &[Target]) -> String {
    targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(" and ")
}

/// Plays a file, or every file of a folder and the folders in it, on each of the targets: target by
/// target, in the order of the names of the files.
///
/// A file that is there as JSON and as YAML is played once, when both were read and say the same. In
/// real time, a few files are played at once, unless they share a server.
///
/// # Errors
///
/// When something cannot be read, or there is a file that nobody here knows how to play, or not on
/// any of these targets: nothing is passed over in silence.
pub fn play(path: &Path, targets: &[Target], place: &Place) -> Result<Vec<Outcome>, Unreadable> {
    let mut files = Vec::new();
    let found = test_files(path)?;
    if found.is_empty() {
        let reason = "there is no test file in it, JSON or YAML".to_owned();
        return Err(Unreadable::Format { path: path.to_owned(), line: None, reason });
    }
    for file in found {
        let runner = Runner::of(&file, targets, place)?;
        files.push((twin::read(&file)?, runner));
    }
    let mut outcomes = Vec::new();
    for &target in targets {
        // Of a file that is left out it is enough to be told once.
        let is_played = |runner: &Runner| match runner {
            Runner::LeftOut(_) => targets.first() == Some(&target),
            Runner::OnCore(_) | Runner::Everywhere(_) | Runner::OnShells(_) => {
                runner.targets().contains(&target)
            }
        };
        let files: Vec<_> = files.iter().filter(|(_, runner)| is_played(runner)).collect();
        let play = |(file, runner): &&(Document, Runner)| {
            // A pool that panics has failed, and the other files are played all the same.
            let played = || runner.play(file, target, place);
            catch_unwind(AssertUnwindSafe(played)).unwrap_or_else(|_| {
                let (file, description) = (file.path().to_owned(), "the whole file".to_owned());
                let verdict = Verdict::Failed("a panic; standard error has its message".to_owned());
                Ok(vec![Outcome { file, target, description, verdict }])
            })
        };
        for played in crew::work(&files, target.at_once(place), play) {
            outcomes.extend(played?);
        }
    }
    Ok(outcomes)
}

/// What to call a file: its folder in the specifications' repository and its name, without the end.
#[must_use]
pub fn name_of(path: &Path) -> String {
    let name = path.with_extension("");
    let folder = catalogue::folder_of(path);
    let name = name.file_name().unwrap_or(name.as_os_str()).to_string_lossy().into_owned();
    folder.map_or(name.clone(), |folder| format!("{folder}/{name}"))
}

/// The file itself, or all files below the folder that are JSON, or YAML without a twin.
fn test_files(path: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let unreadable = |source| Unreadable::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(unreadable)?;
    entries.retain(|entry| entry.is_dir() || is_test(entry));
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        files.extend(test_files(&entry)?);
    }
    Ok(files)
}

fn is_test(file: &Path) -> bool {
    let is_json = |file: &Path| file.extension().is_some_and(|end| end == "json");
    is_json(file) || (is_yaml(file) && !file.with_extension("json").is_file())
}
