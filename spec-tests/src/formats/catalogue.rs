//! Which folders hold files of which format, and which files are not played, each with the reason.

use std::path::Path;

use cenote_conform::{Document, Unreadable};

use super::outcome::{Outcome, Reason};
use super::place::Place;
use super::target::Target;
use super::{cmap, disclosure, monitoring, seedlist, topology, unified, uri};

/// What is done with the files of a folder, and of the folders below it.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// They are played.
    Played(Runner),
    /// They are about what this project is not.
    NotApplicable(&'static str),
    /// They are about drivers, and need more of one than its pool and its monitors.
    LeftOut(&'static str),
}

/// Plays one file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runner {
    /// What the file is about does not come near a socket.
    OnCore(fn(&Document) -> Result<Vec<Outcome>, Unreadable>),
    /// It is about pools, wherever they are.
    Everywhere(fn(&Document, Target, &Place) -> Result<Vec<Outcome>, Unreadable>),
    /// It is about clients, without servers or with real ones.
    OnClients(fn(&Document, Target) -> Result<Vec<Outcome>, Unreadable>),
    /// It needs real sockets.
    OnShells(fn(&Document, Target) -> Result<Vec<Outcome>, Unreadable>),
}

use Rule::{LeftOut, NotApplicable, Played};

/// A folder is told by the end of its path. The innermost folder of a file that is listed counts.
const FOLDERS: [(&str, Rule); 47] = [
    ("connection-monitoring-and-pooling/tests/cmap-format", CMAP),
    ("cmap-format", CMAP),          // In other repositories.
    ("scenarios/cmap", CMAP),       // Our own.
    ("scenarios/unified", UNIFIED), // Our own.
    ("scenarios/uri", URI),         // Our own.
    ("uri-options/tests", URI),
    ("connection-string/tests", URI),
    ("auth/tests/legacy", URI),
    ("server-discovery-and-monitoring/tests/errors", DISCOVERY),
    ("server-discovery-and-monitoring/tests/load-balanced", DISCOVERY),
    ("server-discovery-and-monitoring/tests/monitoring", DISCOVERY),
    ("server-discovery-and-monitoring/tests/rs", DISCOVERY),
    ("server-discovery-and-monitoring/tests/sharded", DISCOVERY),
    ("server-discovery-and-monitoring/tests/single", DISCOVERY),
    ("max-staleness/tests", Played(Runner::OnCore(topology::play_staleness))),
    ("server-selection/tests/in_window", Played(Runner::OnCore(topology::play_choices))),
    ("server-selection/tests/server_selection", SELECTION),
    ("server-selection/tests/logging", UNIFIED),
    ("server-selection/tests/rtt", Played(Runner::OnCore(monitoring::play_round_trips))),
    ("connection-monitoring-and-pooling/tests/logging", UNIFIED),
    ("load-balancers/tests", UNIFIED),
    ("server-discovery-and-monitoring/tests/unified", UNIFIED),
    ("client-backpressure/tests", UNIFIED),
    ("client-side-operations-timeout/tests", UNIFIED),
    ("mongodb-handshake/tests/unified", UNIFIED),
    ("auth/tests/unified", UNIFIED),
    (
        "command-logging-and-monitoring/tests",
        NotApplicable("events and log messages of commands are the driver's"),
    ),
    ("initial-dns-seedlist-discovery/tests", Played(Runner::OnClients(seedlist::play_document))),
    ("open-telemetry/tests", NotApplicable("spans of operations are the driver's")),
    (
        "read-write-concern/tests",
        NotApplicable(
            "read and write concerns are the driver's, which puts them into its commands",
        ),
    ),
    ("unified-test-format", NotApplicable("tests and schemas of test runners, not of drivers")),
    ("retryable-reads/tests", LeftOut(OPERATIONS)),
    ("retryable-writes/tests", LeftOut(OPERATIONS)),
    ("run-command/tests", LeftOut(OPERATIONS)),
    ("sessions/tests", LeftOut(OPERATIONS)),
    ("transactions/tests", LeftOut(OPERATIONS)),
    ("versioned-api/tests", LeftOut(OPERATIONS)),
    // Without a word about pools.
    ("bson-binary-vector", NotApplicable(NO_POOLS)),
    ("bson-corpus", NotApplicable(NO_POOLS)),
    ("causal-consistency", NotApplicable(NO_POOLS)),
    ("change-streams", NotApplicable(NO_POOLS)),
    ("client-side-encryption", NotApplicable(NO_POOLS)),
    ("collection-management", NotApplicable(NO_POOLS)),
    ("crud", NotApplicable(NO_POOLS)),
    ("gridfs", NotApplicable(NO_POOLS)),
    ("index-management", NotApplicable(NO_POOLS)),
    ("transactions-convenient-api", NotApplicable(NO_POOLS)),
];

const CMAP: Rule = Played(Runner::Everywhere(cmap::play_document));
const UNIFIED: Rule = Played(Runner::OnShells(unified::play_document));
const DISCOVERY: Rule = Played(Runner::OnCore(topology::play_discovery));
const SELECTION: Rule = Played(Runner::OnClients(topology::play_selection));
const URI: Rule = Played(Runner::OnCore(uri::play_document));

const NO_POOLS: &str = "about a driver's operations, not about pools";
const OPERATIONS: &str = "needs a driver's operations, sessions and retries";

/// Single files that are treated otherwise than their folder, whether they are JSON or YAML.
const FILES: [(&str, &[&str], Rule); 6] = [
    (
        "connection-string/tests",
        &["credential-disclosure"],
        Played(Runner::OnClients(disclosure::play_document)),
    ),
    (
        "client-backpressure/tests",
        &["backpressure-retry-loop", "backpressure-retry-max-attempts"],
        LeftOut(RETRIES),
    ),
    (
        "client-side-operations-timeout/tests",
        &["gridfs-advanced", "gridfs-delete", "gridfs-download", "gridfs-find", "gridfs-upload"],
        NotApplicable("GridFS is the driver's"),
    ),
    (
        "client-side-operations-timeout/tests",
        &[
            "change-streams",
            "close-cursors",
            "cursors",
            "non-tailable-cursors",
            "runCursorCommand",
            "tailable-awaitData",
            "tailable-non-awaitData",
        ],
        LeftOut("needs a driver's cursors under timeoutMS"),
    ),
    (
        "client-side-operations-timeout/tests",
        &[
            "convenient-transactions",
            "sessions-inherit-timeoutMS",
            "sessions-override-operation-timeoutMS",
            "sessions-override-timeoutMS",
        ],
        LeftOut("needs a driver's transactions under timeoutMS"),
    ),
    (
        "client-side-operations-timeout/tests",
        &["retryability-legacy-timeouts", "retryability-timeoutMS"],
        LeftOut("needs a driver's retries under timeoutMS"),
    ),
];

const RETRIES: &str = "one story for each of a driver's thirty operations: two more attempts. A pool sees of it what \
                       backpressure-connection-checkin and getMore-retried show";

/// The innermost folder of a file that is listed, as the specifications' repository calls it.
fn listed(file: &Path) -> Option<(&Path, &'static str, Rule)> {
    file.ancestors().skip(1).find_map(|folder| {
        let (name, rule) = FOLDERS.iter().find(|(end, _)| folder.ends_with(end))?;
        Some((folder, *name, *rule))
    })
}

/// What is done with this file, if it is not what is done with its folder.
fn single(file: &Path) -> Option<Rule> {
    let (folder, name) = (file.parent()?, file.file_stem()?.to_str()?);
    let is_it =
        |(end, names, _): &&(&str, &[&str], Rule)| folder.ends_with(end) && names.contains(&name);
    FILES.iter().find(is_it).map(|(_, _, rule)| *rule)
}

/// A file's name in reports: its folder in the specifications' repository and its name, without the
/// extension.
#[must_use]
pub fn name_of(path: &Path) -> String {
    let name = path.with_extension("");
    let below =
        listed(path).and_then(|(folder, end, _)| Some((end, name.strip_prefix(folder).ok()?)));
    match below {
        Some((folder, below)) => format!("{folder}/{}", below.display()),
        None => name.display().to_string(),
    }
}

impl Runner {
    /// The runner for this file.
    ///
    /// # Errors
    ///
    /// Why it is not played, on these targets and against this server.
    pub(super) fn of(path: &Path, targets: &[Target], place: &Place) -> Result<Self, Reason> {
        let is_odd = |letter: char| letter.is_control() || "|`".contains(letter);
        if path.file_name().is_some_and(|name| name.to_string_lossy().contains(is_odd)) {
            let path = path.display();
            return Err(Reason::Unreadable(format!("{path}: a name that no table can show")));
        }
        let rule = single(path).or_else(|| listed(path).map(|(_, _, rule)| rule));
        let runner = match rule {
            None => {
                return Err(Reason::Unreadable(format!(
                    "{}: no format is known for files of this folder",
                    path.display()
                )));
            }
            Some(NotApplicable(reason)) => return Err(Reason::NotApplicable(reason.to_owned())),
            Some(LeftOut(reason)) => return Err(Reason::LeftOut(reason.to_owned())),
            Some(Played(runner)) => runner,
        };
        if let (Self::OnShells(_), Place::Server(_)) = (runner, place) {
            return Err(Reason::NotApplicable("played against the mock server alone".to_owned()));
        }
        let played_on = runner.targets();
        if played_on.iter().any(|target| targets.contains(target)) {
            return Ok(runner);
        }
        Err(Reason::NotApplicable(format!("played on {} alone", Target::names(played_on))))
    }

    /// What such files are played on.
    pub(super) const fn targets(self) -> &'static [Target] {
        match self {
            Self::OnCore(_) => &[Target::Core],
            Self::Everywhere(_) => &Target::ALL,
            Self::OnClients(_) => &Target::WITH_CLIENTS,
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
            Self::Everywhere(play) => play(file, target, place),
            Self::OnClients(play) | Self::OnShells(play) => play(file, target),
        }
    }
}
