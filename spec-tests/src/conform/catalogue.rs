//! Which folders hold files of which format.

use std::path::Path;

use super::{Document, Outcome, Target, Unreadable, cmap, sdam_errors, uri};

/// Plays one file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runner {
    /// What the file is about does not come near a socket.
    OnCore(fn(&Document) -> Result<Vec<Outcome>, Unreadable>),
    /// It is about pools, wherever they are.
    Everywhere(fn(&Document, Target) -> Result<Vec<Outcome>, Unreadable>),
}

const RUNNERS: [(&str, Runner); 6] = [
    ("cmap-format", Runner::Everywhere(cmap::play_document)),
    ("scenarios/cmap", Runner::Everywhere(cmap::play_document)), // Our own.
    ("uri-options/tests", Runner::OnCore(uri::play_document)),
    ("connection-string/tests", Runner::OnCore(uri::play_document)),
    ("auth/tests/legacy", Runner::OnCore(uri::play_document)),
    ("server-discovery-and-monitoring/tests/errors", Runner::OnCore(sdam_errors::play_document)),
];

impl Runner {
    /// Who plays this file.
    ///
    /// # Errors
    ///
    /// When nobody does, or on none of these targets.
    pub(super) fn of(path: &Path, targets: &[Target]) -> Result<Self, Unreadable> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let Some((_, runner)) = RUNNERS.iter().find(|(end, _)| folder.ends_with(end)) else {
            let reason = format!("no runner for files of the folder {}", folder.display());
            return Err(Unreadable::Format { path: path.to_owned(), line: None, reason });
        };
        let played_on = runner.targets();
        if played_on.iter().any(|target| targets.contains(target)) {
            return Ok(*runner);
        }
        Err(Unreadable::Elsewhere { path: path.to_owned(), played_on })
    }

    /// What such files are played on.
    pub(super) const fn targets(self) -> &'static [Target] {
        match self {
            Self::OnCore(_) => &[Target::Core],
            Self::Everywhere(_) => &Target::ALL,
        }
    }

    /// Plays one on one of them.
    ///
    /// # Errors
    ///
    /// When it is no file of its format.
    pub(super) fn play(self, file: &Document, target: Target) -> Result<Vec<Outcome>, Unreadable> {
        match self {
            Self::OnCore(play) => play(file),
            Self::Everywhere(play) => play(file, target),
        }
    }
}
