//! Plays the files of a folder, each with the runner of its format.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use cenote_conform::{Document, Unreadable, parallel, some_test_files};

use super::catalogue::Runner;
use super::outcome::{Outcome, Played, Reason, Unplayed, Verdict};
use super::place::Place;
use super::target::Target;

/// A message for files without a test, which would pass whatever the pool does.
pub(super) const NO_TEST: &str = "a file without a test shows nothing";

/// Plays the files of these paths, each a file or a folder with the folders below it, on each of the targets: path by
/// path, target by target, in the order of the names of the files. A file that is not played is reported with the
/// reason; the others are played all the same.
///
/// A file that exists as JSON and as YAML is played once, as JSON. Several files are played at
/// once, unless they share a server.
///
/// # Errors
///
/// If a path or a folder below it cannot be read, or there is no test file in it.
pub fn play(
    paths: &[impl AsRef<Path>],
    targets: &[Target],
    place: &Place,
) -> Result<Played, Unreadable> {
    let mut played = Played::default();
    let mut files = Vec::new();
    for path in paths {
        let first = files.len();
        read(path.as_ref(), targets, place, &mut files, &mut played.unplayed)?;
        // Stable, so that the files of a target stay in their order.
        files[first..].sort_by_key(|(_, _, target)| targets.iter().position(|it| it == target));
    }
    let play = |(file, runner, target): &(Arc<Document>, Runner, Target)| {
        play_file(file, *runner, *target, place)
    };
    for (it, outcomes) in files.iter().zip(parallel::map(&files, at_once(place), play)) {
        match outcomes {
            Ok(outcomes) => played.outcomes.extend(outcomes),
            Err(error) => played.refuse(it.0.path(), error.into()),
        }
    }
    Ok(played)
}

/// Reads the files of a path, and says for each of them on which of the targets it is played.
fn read(
    path: &Path,
    targets: &[Target],
    place: &Place,
    files: &mut Vec<(Arc<Document>, Runner, Target)>,
    unplayed: &mut Vec<Unplayed>,
) -> Result<(), Unreadable> {
    for file in some_test_files(path)? {
        let other = file.with_extension("yml");
        if file.extension().is_some_and(|end| end == "yaml") && other.is_file() {
            let reason = format!("{}: {} is there, too", file.display(), other.display());
            unplayed.push(Unplayed { file, reason: Reason::Unreadable(reason) });
            continue;
        }
        let read = Runner::of(&file, targets, place)
            .and_then(|runner| Ok((Arc::new(Document::read(&file)?), runner)));
        match read {
            Ok((document, runner)) => {
                let of_runner = targets.iter().filter(|target| runner.targets().contains(target));
                files.extend(of_runner.map(|&target| (Arc::clone(&document), runner, target)));
            }
            Err(reason) => unplayed.push(Unplayed { file, reason }),
        }
    }
    Ok(())
}

impl Played {
    /// A file that is not of its format is reported once, not for each target.
    fn refuse(&mut self, file: &Path, reason: Reason) {
        if !self.unplayed.iter().any(|it| it.file == file) {
            self.unplayed.push(Unplayed { file: file.to_owned(), reason });
        }
    }
}

impl From<Unreadable> for Reason {
    fn from(error: Unreadable) -> Self {
        Self::Unreadable(error.to_string())
    }
}

fn play_file(
    file: &Document,
    runner: Runner,
    target: Target,
    place: &Place,
) -> Result<Vec<Outcome>, Unreadable> {
    // A pool that panics has failed; the other files are played all the same.
    let played = catch_unwind(AssertUnwindSafe(|| runner.play(file, target, place)));
    played.unwrap_or_else(|_| {
        let (file, description) = (file.path().to_owned(), "the whole file".to_owned());
        let verdict = Verdict::Failed("a panic; see its message on stderr".to_owned());
        Ok(vec![Outcome { file, target, description, verdict }])
    })
}

/// How many files are played at a time. Those on sockets spend most of their time waiting; with too
/// many of them, they would wait for the processor.
fn at_once(place: &Place) -> usize {
    match place {
        Place::Endpoint => 12,
        Place::Server(_) => 1,
    }
}
