//! Which folders hold files of which format.

use std::path::Path;

use cenote_conform::{Document, Unreadable};

use super::error::PlayError;
use super::outcome::{Outcome, Verdict};
use super::place::Place;
use super::target::Target;
use super::{cmap, connection, sdam_errors, unified, uri};

/// Plays one file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runner {
    /// What the file is about does not come near a socket.
    OnCore(fn(&Document) -> Result<Vec<Outcome>, Unreadable>),
    /// It is about pools, wherever they are.
    Everywhere(fn(&Document, Target, &Place) -> Result<Vec<Outcome>, Unreadable>),
    /// It is not played, for this reason.
    LeftOut(&'static str),
    /// It needs real sockets.
    OnShells(fn(&Document, Target) -> Result<Vec<Outcome>, Unreadable>),
}

const RUNNERS: [(&str, Runner); 16] = [
    (
        "connection-monitoring-and-pooling/tests/cmap-format",
        Runner::Everywhere(cmap::play_document),
    ),
    ("cmap-format", Runner::Everywhere(cmap::play_document)), // In other repositories.
    ("scenarios/cmap", Runner::Everywhere(cmap::play_document)), // Our own.
    ("scenarios/connection", Runner::Everywhere(connection::play_document)), // Our own.
    ("scenarios/unified", UNIFIED),                           // Our own.
    ("scenarios/uri", Runner::OnCore(uri::play_document)),    // Our own.
    ("uri-options/tests", Runner::OnCore(uri::play_document)),
    ("connection-string/tests", Runner::OnCore(uri::play_document)),
    ("auth/tests/legacy", Runner::OnCore(uri::play_document)),
    ("server-discovery-and-monitoring/tests/errors", Runner::OnCore(sdam_errors::play_document)),
    ("connection-monitoring-and-pooling/tests/logging", UNIFIED),
    ("load-balancers/tests", UNIFIED),
    ("server-discovery-and-monitoring/tests/unified", UNIFIED),
    ("client-backpressure/tests", UNIFIED),
    ("client-side-operations-timeout/tests", UNIFIED),
    ("mongodb-handshake/tests/unified", UNIFIED),
];

const UNIFIED: Runner = Runner::OnShells(unified::play_document);

/// Files that are not played, each with the reason: `docs/audit/conformance.md` lists them. They are told by
/// the end of their path, whether they are JSON or YAML.
const LEFT_OUT: [(&str, &str); 2] = [
    ("client-backpressure/tests/backpressure-retry-loop", RETRIES),
    ("client-backpressure/tests/backpressure-retry-max-attempts", RETRIES),
];

const RETRIES: &str = "one story for each of a driver's thirty operations: two more attempts. A pool sees of it what \
                       backpressure-connection-checkin and getMore-retried show";

/// The folder of a file, as the specifications' repository calls it.
pub(super) fn folder_of(path: &Path) -> Option<&'static str> {
    let folder = path.parent()?;
    RUNNERS.iter().map(|(end, _)| *end).find(|end| folder.ends_with(end))
}

impl Runner {
    /// The runner for this file.
    ///
    /// # Errors
    ///
    /// If there is none, or none for these targets.
    pub(super) fn of(path: &Path, targets: &[Target], place: &Place) -> Result<Self, PlayError> {
        let name = path.with_extension("");
        if let Some((_, reason)) = LEFT_OUT.iter().find(|(end, _)| name.ends_with(end)) {
            return Ok(Self::LeftOut(reason));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let Some((_, runner)) = RUNNERS.iter().find(|(end, _)| folder.ends_with(end)) else {
            let reason = format!("no runner for files of the folder {}", folder.display());
            let path = path.to_owned();
            return Err(Unreadable::Format { path, line: None, reason }.into());
        };
        if let (Self::OnShells(_), Place::Server(_)) = (runner, place) {
            return Err(PlayError::NoServer { path: path.to_owned() });
        }
        let played_on = runner.targets();
        if played_on.iter().any(|target| targets.contains(target)) {
            return Ok(*runner);
        }
        Err(PlayError::Elsewhere { path: path.to_owned(), played_on })
    }

    /// What such files are played on.
    pub(super) const fn targets(self) -> &'static [Target] {
        match self {
            Self::OnCore(_) => &[Target::Core],
            Self::Everywhere(_) => &Target::ALL,
            Self::LeftOut(_) => &Target::ALL,
            Self::OnShells(_) => &Target::SHELLS,
        }
    }

    /// Plays one on one of them.
    ///
    /// # Errors
    ///
    /// When it is no file of its format.
    pub(super) fn play(
        self,
        file: &Document,
        target: Target,
        place: &Place,
    ) -> Result<Vec<Outcome>, Unreadable> {
        match self {
            Self::OnCore(play) => play(file),
            Self::LeftOut(reason) => Ok(vec![Outcome {
                file: file.path().to_owned(),
                target,
                description: "the whole file".to_owned(),
                verdict: Verdict::LeftOut(reason.to_owned()),
            }]),
            Self::Everywhere(play) => play(file, target, place),
            Self::OnShells(play) => play(file, target),
        }
    }
}
