//! `cenote draw FILE --html PAGE`: a picture.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::draw::draw_events;
use super::explain_command::{OfTrace, of_events};
use super::{Arguments as ReplayArguments, run as replay, without_closed_pipe};
use crate::command::Failure;
use crate::command::output::expect_different;

/// Arguments of `cenote draw`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::command) struct Arguments {
    /// A trace of Cenote, several of one client, or the folder that has them. Or the events or the log of a pool of any
    /// driver; `-` is standard input
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
    #[command(flatten)]
    of_trace: OfTrace,
}

const EXAMPLES: &str = "\
Examples:
  cenote draw incident.bson --html page.html
  cenote draw events.jsonl --html page.html
  cenote draw traces/ --html page.html      servers and pools in one picture
  cenote draw before.bson --beside after.bson --html both.html";

fn of_any_driver(given: &Arguments, path: &Path) -> Result<bool, Failure> {
    let of_traces =
        [("--beside", given.beside.is_some()), ("--perfetto", given.perfetto.is_some())];
    given.of_trace.refuse_for_events(path, &of_traces)?;
    let Some(html) = &given.html else { return Ok(true) };
    expect_different(&[("the events", Some(path)), ("--html", Some(html))])?;
    let mut out = BufWriter::new(io::stdout().lock());
    let drawn = draw_events(path, html, &mut out).map(|()| true);
    without_closed_pipe(drawn, &mut out)
}

/// Draws.
pub(in crate::command) fn run(given: Arguments) -> Result<bool, Failure> {
    if let Some(path) = of_events(&given.traces)? {
        return of_any_driver(&given, &path);
    }
    replay(given.of_trace.chosen(ReplayArguments {
        traces: given.traces,
        html: given.html,
        beside: given.beside,
        perfetto: given.perfetto,
        ..ReplayArguments::default()
    }))
}
