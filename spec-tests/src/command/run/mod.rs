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
mod timeline;
mod troubles;
mod work;

use std::io;

use self::arguments::Shell;
use self::summary::Summary;
use super::Failure;
use super::output;

pub(super) use self::arguments::Arguments;

/// Runs, shows progress on standard error, and prints a summary. Returns whether every rule was kept,
/// every worker ended, and nothing leaked.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let plan = arguments.plan()?;
    if !arguments.yes {
        permission::ask(&plan)?;
    }
    let summary = match arguments.shell {
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

fn print(summary: &Summary, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let text = serde_json::to_string_pretty(summary).map_err(io::Error::from)?;
        output::print(format_args!("{text}\n"))?;
    } else {
        output::print(summary)?;
    }
    Ok(())
}
