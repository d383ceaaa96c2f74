//! `cenote run [URI]`: runs a pool under load, and prints a summary.

mod arguments;
mod chaos;
mod deployment;
mod event_checker;
mod latency;
mod on_mio;
mod on_tokio;
mod operation;
mod patience;
mod pause;
mod permission;
mod play;
mod progress;
mod record;
mod resources;
mod seen;
mod server;
mod server_fault;
mod show;
mod summary;
mod tally;
pub(super) mod text;
mod timeline;
mod troubles;
mod work;

use std::io;
use std::path::PathBuf;

use cenote_core::error::ConnectionError;
use cenote_core::uri::UriError;
use cenote_endpoint::StartError;
use cenote_tokio::{BuildError, ClientBuildError, RecordingError};
use thiserror::Error;

use self::arguments::Shell;
use self::summary::Summary;
use super::endpoint::with_cause;
use super::output::{self, SameFile};
use super::replay::Unplayable;

pub use self::arguments::Arguments;

/// Why a run has no summary.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Trouble {
    /// `--chaos` with a server that is not ours to break.
    #[error("--chaos injects faults into the built-in mock server: omit the URI")]
    ChaosElsewhere,
    /// `--options` beside a connection string, which has its own.
    #[error("--options is for the built-in mock server: put the options into the URI")]
    OptionsElsewhere,
    /// `--options` that mean nothing.
    #[error("--options: {option}: {problem}")]
    Options {
        /// Its name, or where it stands.
        option: String,
        /// What is wrong with it.
        problem: String,
    },
    /// More tasks on mio than there can be threads.
    #[error("--tasks {tasks}: on mio each is a thread, at most {most}")]
    Threads {
        /// As it was given.
        tasks: u32,
        /// The maximum.
        most: u32,
    },
    /// No terminal is there to ask whether the server may be loaded, or the answer was not yes.
    #[error("not begun: {load}; --yes does so without asking")]
    NotAllowed {
        /// What would have been done.
        load: String,
    },
    /// Two output files are the same file.
    #[error(transparent)]
    Files(#[from] SameFile),
    /// The file of the connection string cannot be read.
    #[error("--uri-file: {path}: {source}")]
    UriFile {
        /// As it was given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection string is invalid.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The pool cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The client cannot be built.
    #[error(transparent)]
    Client(#[from] ClientBuildError),
    /// The mock server does not start.
    #[error("{}", with_cause(.0))]
    Endpoint(#[from] StartError),
    /// The server does not answer.
    #[error("{server} cannot be reached: {}", .source.with_advice())]
    Unreachable {
        /// The server's address.
        server: String,
        /// Why.
        source: ConnectionError,
    },
    /// A signal stopped it before the run began.
    #[error("stopped before {server} answered")]
    Stopped {
        /// The server's address.
        server: String,
    },
    /// There may be several pools.
    #[error(
        "{option} is about one pool, and a client of {servers} may have several: name one host in the URI, without directConnection=false"
    )]
    SeveralPools {
        /// `--trace`, `--html` or `--give-up`.
        option: &'static str,
        /// The hosts of the connection string.
        servers: String,
    },
    /// The file of events cannot be written.
    #[error("{path}: {source}")]
    Events {
        /// As it was given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The trace cannot be written to its end.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The page cannot be written, or the trace not be replayed for it.
    #[error(transparent)]
    Page(#[from] Unplayable),
    /// Threads, signals, standard output.
    #[error("the operating system refuses what a run needs: {0}")]
    System(#[from] io::Error),
}

/// Runs, shows progress on standard error, and prints a summary. Returns whether every rule was kept,
/// every worker ended, and nothing leaked.
///
/// # Errors
///
/// The run could not start: an invalid connection string or option, a server that does not answer, a
/// file that cannot be written.
pub fn run(arguments: &Arguments) -> Result<bool, Trouble> {
    let plan = arguments.plan()?;
    if !arguments.yes {
        permission::ask(&plan)?;
    }
    let summary = match plan.shell {
        Shell::Tokio => on_tokio::run(&plan)?,
        Shell::Mio => on_mio::run(&plan)?,
    };
    print(&summary, arguments.json)?;
    let complaints = summary.complaints();
    if !complaints.is_empty() {
        output::tell(format_args!("cenote: {}", complaints.join("; ")));
    }
    Ok(complaints.is_empty())
}

fn print(summary: &Summary, as_json: bool) -> Result<(), Trouble> {
    if as_json {
        let text = serde_json::to_string_pretty(summary).map_err(io::Error::from)?;
        output::print(format_args!("{text}\n"))?;
    } else {
        output::print(summary)?;
    }
    Ok(())
}
