//! Plays the files of a folder, each with the runner of its format.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use cenote_conform::{Document, parallel, some_test_files};

use super::catalogue::{self, Runner};
use super::error::PlayError;
use super::outcome::{Outcome, Verdict};
use super::place::Place;
use super::target::Target;

/// Plays a file, or every file of a folder and the folders below it, on each of the targets: target by
/// target, in the order of the names of the files.
///
/// A file that exists as JSON and as YAML is played once; both must have the same content. In real
/// time, several files are played at once, unless they share a server.
///
/// # Errors
///
/// If a file cannot be read, its format is unknown, or it cannot be played on any of these targets: no
/// file is silently ignored.
pub fn play(path: &Path, targets: &[Target], place: &Place) -> Result<Vec<Outcome>, PlayError> {
    let mut files = Vec::new();
    for file in some_test_files(path)? {
        let runner = Runner::of(&file, targets, place)?;
        files.push((Document::read_with_twin(&file)?, runner));
    }
    let mut outcomes = Vec::new();
    for &target in targets {
        // A file that is left out is reported once.
        let is_played = |runner: &Runner| match runner {
            Runner::LeftOut(_) => targets.first() == Some(&target),
            Runner::OnCore(_) | Runner::Everywhere(_) | Runner::OnShells(_) => {
                runner.targets().contains(&target)
            }
        };
        let files: Vec<_> = files.iter().filter(|(_, runner)| is_played(runner)).collect();
        let play = |(file, runner): &&(Document, Runner)| {
            // A pool that panics has failed; the other files are played all the same.
            let played = || runner.play(file, target, place);
            catch_unwind(AssertUnwindSafe(played)).unwrap_or_else(|_| {
                let (file, description) = (file.path().to_owned(), "the whole file".to_owned());
                let verdict = Verdict::Failed("a panic; see its message on stderr".to_owned());
                Ok(vec![Outcome { file, target, description, verdict }])
            })
        };
        for played in parallel::map(&files, at_once(target, place), play) {
            outcomes.extend(played?);
        }
    }
    Ok(outcomes)
}

/// How many files are played at a time. Those on sockets spend most of their time waiting; with too
/// many of them, they would wait for the processor.
fn at_once(target: Target, place: &Place) -> usize {
    match place {
        Place::Endpoint if target != Target::Core => 8,
        Place::Endpoint | Place::Server(_) => 1,
    }
}

/// A file's name in reports: its folder in the specifications' repository and its name, without the
/// extension.
#[must_use]
pub fn name_of(path: &Path) -> String {
    let name = path.with_extension("");
    let folder = catalogue::folder_of(path);
    let name = name.file_name().unwrap_or(name.as_os_str()).to_string_lossy().into_owned();
    folder.map_or(name.clone(), |folder| format!("{folder}/{name}"))
}
