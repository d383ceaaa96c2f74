//! `cenote draw FILE --html PAGE`: a picture.

use std::path::PathBuf;

use cenote_replay::clock::{TimePoint, UtcOffset};

use super::explain_command::of_events;
use super::{Arguments as ReplayArguments, run as replay};
use crate::command::Failure;
use crate::command::input::at;

/// Arguments of `cenote draw`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::command) struct Arguments {
    /// A trace of Cenote, several of one client, or the folder that has them; `-` is standard input
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Write a page that shows it: one file, for any browser, without a network
    #[arg(long, value_name = "FILE", required_unless_present = "perfetto")]
    html: Option<PathBuf>,
    /// Draw this trace beside the first, with the same times since the start in view
    #[arg(long, value_name = "OTHER", requires = "html")]
    beside: Option<PathBuf>,
    /// Write JSON for ui.perfetto.dev and chrome://tracing; packed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// As much as can be read of a trace that is truncated or damaged
    #[arg(long)]
    lenient: bool,
    /// Only from this time on, as in 1.5, 03:07:12 or 2026-01-01T03:07:12
    #[arg(long, allow_negative_numbers = true, value_name = "TIME")]
    from: Option<TimePoint>,
    /// Only up to this time
    #[arg(long, allow_negative_numbers = true, value_name = "TIME")]
    to: Option<TimePoint>,
    /// Times with this offset from UTC, as in +02:00
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    utc_offset: Option<UtcOffset>,
}

const EXAMPLES: &str = "\
Examples:
  cenote draw incident.bson --html page.html
  cenote draw traces/ --html page.html      servers and pools in one picture
  cenote draw before.bson --beside after.bson --html both.html";

/// Draws.
pub(in crate::command) fn run(given: Arguments) -> Result<bool, Failure> {
    if let Some(path) = of_events(&given.traces)? {
        return Err(at(&path)("a picture is of a trace, and these are events"));
    }
    replay(ReplayArguments {
        traces: given.traces,
        html: given.html,
        beside: given.beside,
        perfetto: given.perfetto,
        lenient: given.lenient,
        from: given.from,
        to: given.to,
        utc_offset: given.utc_offset.unwrap_or_default(),
        ..ReplayArguments::default()
    })
}
