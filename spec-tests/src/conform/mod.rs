//! Plays the official test files of MongoDB's specifications.
//!
//! The files are not part of this project; every function here takes a path to them. A file is
//! told by its folder (`cmap-format`, `uri-options`, …), as in the repository of the
//! specifications, and handed to the module that knows its format.

pub mod cmap;
pub mod sdam_errors;
pub mod uri;

use std::path::{Path, PathBuf};

/// What became of one test of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The file, as it was found.
    pub file: PathBuf,
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
    #[error("{path}: not a JSON document: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where it stops being JSON.
        source: serde_json::Error,
    },
    /// JSON, but not of the format that its folder promises.
    #[error("{path}: not a test file: {reason}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Plays a file, or every file of a folder and the folders in it, in the order of their names.
///
/// Each official file is there as JSON and as YAML with the same content; the JSON is what is
/// played.
///
/// # Errors
///
/// When something cannot be read, or there is a file whose format is not known here: nothing is
/// passed over in silence.
pub fn play(path: &Path) -> Result<Vec<Outcome>, Unreadable> {
    let mut outcomes = Vec::new();
    for file in json_files(path)? {
        outcomes.extend(play_file(&file)?);
    }
    Ok(outcomes)
}

fn play_file(path: &Path) -> Result<Vec<Outcome>, Unreadable> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let play = RUNNERS.iter().find(|(end, _)| folder.ends_with(end)).map(|(_, play)| play);
    match play {
        Some(play) => play(path),
        None => Err(Unreadable::Format {
            path: path.to_owned(),
            reason: format!("no runner for files of the folder {}", folder.display()),
        }),
    }
}

/// Plays one file.
type Runner = fn(&Path) -> Result<Vec<Outcome>, Unreadable>;

/// Which folders hold files of which format.
const RUNNERS: [(&str, Runner); 5] = [
    ("cmap-format", cmap::play),
    ("uri-options/tests", uri::play),
    ("connection-string/tests", uri::play),
    ("auth/tests/legacy", uri::play),
    ("server-discovery-and-monitoring/tests/errors", sdam_errors::play),
];

/// The file itself, or all JSON files below the folder.
fn json_files(path: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let unreadable = |source| Unreadable::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(unreadable)?;
    entries.retain(|entry| entry.is_dir() || entry.extension().is_some_and(|it| it == "json"));
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        files.extend(json_files(&entry)?);
    }
    Ok(files)
}

/// Reads one JSON file.
///
/// # Errors
///
/// When it cannot be read or is not JSON.
pub fn read_json(path: &Path) -> Result<serde_json::Value, Unreadable> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Unreadable::Io { path: path.to_owned(), source })?;
    serde_json::from_str(&text).map_err(|source| Unreadable::Json { path: path.to_owned(), source })
}
