//! Plays scenarios on a target.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use cenote_core::uri::ConnectionString;
use serde_json::Value;

use crate::document::Document;
use crate::error::{OperationError, Unreadable};
use crate::expected::{Expected, Played};
use crate::files::some_test_files;
use crate::matching::ADDRESS;
use crate::parallel;
use crate::player::{Player, setup};
use crate::recorder::Recorder;
use crate::report::{Outcome, Report, Verdict};
use crate::scenario::Scenario;
use crate::server::Servers;
use crate::target::{Failure, Target};

/// Plays scenarios on a target, and compares what happens with what they expect.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "neither targets nor servers need it")]
pub struct Runner<'t, T> {
    target: &'t T,
    servers: Option<&'t dyn Servers>,
    limit: Duration,
    threads: usize,
}

impl<'t, T: Target> Runner<'t, T> {
    /// Without servers, for pools that need none; one scenario at a time.
    #[must_use]
    pub const fn new(target: &'t T) -> Self {
        Self { target, servers: None, limit: Duration::from_secs(600), threads: 1 }
    }

    /// Starts a server for each scenario.
    #[must_use]
    pub const fn with_servers(self, servers: &'t dyn Servers) -> Self {
        Self { servers: Some(servers), ..self }
    }

    /// The time limit of operations that have none in the file, such as `checkOut`; by default 10
    /// minutes, which is longer than any scenario takes.
    #[must_use]
    pub const fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// How many scenarios [`run`](Self::run) plays at a time. In real time most scenarios wait most of
    /// the time; too many at a time delay each other. By default 1.
    #[must_use]
    pub const fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Plays a file, or all files of a folder and the folders below it. A file that exists as JSON and
    /// as YAML is played once, as JSON. A pool that panics fails its scenario.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is not a scenario, or there is none.
    pub fn run(&self, path: &Path) -> Result<Report, Unreadable> {
        let mut scenarios = Vec::new();
        for file in some_test_files(path)? {
            let scenario = Scenario::new(&Document::read(&file)?)?;
            scenarios.push((file, scenario));
        }
        let outcomes = parallel::map(&scenarios, self.threads, |(file, scenario)| {
            let played = catch_unwind(AssertUnwindSafe(|| self.play(scenario)));
            let panicked = || Verdict::Failed("a panic; see its message on stderr".to_owned());
            Outcome {
                file: file.clone(),
                description: scenario.description().to_owned(),
                verdict: played.unwrap_or_else(|_| panicked()),
            }
        });
        Ok(Report { outcomes })
    }

    /// Plays one scenario.
    #[must_use]
    pub fn play(&self, scenario: &Scenario) -> Verdict {
        let verdict = if let Some(expected) = &scenario.invalid_options {
            self.open_invalid(scenario, expected).into()
        } else {
            match self.play_to_end(scenario) {
                Ok(Played { failure: Some(Failure::Unsupported(reason)), .. })
                | Err(OperationError::Unsupported(reason)) => Verdict::NotApplicable(reason),
                Ok(played) => {
                    let Played { is_virtual, address, .. } = &played;
                    Expected::new(scenario, *is_virtual, address).compare(&played).into()
                }
                Err(OperationError::Failed(reason)) => Verdict::Failed(reason),
            }
        };
        scenario.not_on().verdict(self.target.name(), verdict)
    }

    /// Plays one scenario and returns the events until its main thread ended, as official files write
    /// them, whatever it expects.
    ///
    /// # Errors
    ///
    /// If it cannot be played, or something is left open in the end.
    pub fn events(&self, scenario: &Scenario) -> Result<Vec<Value>, String> {
        let played = self.play_to_end(scenario).map_err(|error| error.to_string())?;
        played.cleanup.map(|()| played.events)
    }

    fn play_to_end(&self, scenario: &Scenario) -> Result<Played, OperationError> {
        let server = self.servers.map(|servers| servers.start(scenario)).transpose()?;
        let server = server.as_deref();
        let uri = server.map_or_else(no_server, |server| server.uri().clone());
        let player = Player::new(self.target, scenario, uri, self.limit);
        Ok(player.map_err(OperationError::Failed)?.play(server))
    }

    /// Nothing connects to a server here: there is no pool.
    fn open_invalid(&self, scenario: &Scenario, expected: &str) -> Result<(), String> {
        let opened = self.target.open(setup(scenario, &no_server(), &Recorder::default()));
        match opened.err() {
            Some(reason) if reason.contains(expected) => Ok(()),
            Some(reason) => Err(format!("expected the error {expected:?}, saw {reason:?}")),
            None => Err(format!("expected the error {expected:?}, saw a pool")),
        }
    }
}

fn no_server() -> ConnectionString {
    match ConnectionString::parse(&format!("mongodb://{ADDRESS}")) {
        Ok(uri) => uri,
        Err(error) => unreachable!("it is a connection string: {error}"),
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
