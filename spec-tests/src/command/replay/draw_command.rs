//! `cenote draw FILE --html PAGE`: a picture.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::chosen::Chosen;
use super::draw::{draw_client, draw_events, draw_pool};
use super::explain::of_events;
use super::printed;
use super::sources::Sources;
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
    pub(super) html: Option<PathBuf>,
    /// Draw this trace beside the first, with the same times since the start in view
    #[arg(long, value_name = "OTHER", requires = "html")]
    pub(super) beside: Option<PathBuf>,
    /// Write JSON for ui.perfetto.dev and chrome://tracing; packed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub(super) perfetto: Option<PathBuf>,
    #[command(flatten)]
    chosen: Chosen,
}

const EXAMPLES: &str = "\
Examples:
  cenote draw incident.bson --html page.html
  cenote draw events.jsonl --html page.html
  cenote draw traces/ --html page.html      servers and pools in one picture
  cenote draw before.bson --beside after.bson --html both.html";

/// Draws.
pub(in crate::command) fn run(mut given: Arguments) -> Result<bool, Failure> {
    printed(|out| match of_events(&given.traces)? {
        Some(path) => of_any_driver(&given, &path, out),
        None => of_traces(&mut given, out),
    })
}

fn of_any_driver(given: &Arguments, path: &Path, out: &mut impl Write) -> Result<bool, Failure> {
    let of_traces =
        [("--beside", given.beside.is_some()), ("--perfetto", given.perfetto.is_some())];
    given.chosen.refuse_for_events(path, &of_traces)?;
    let Some(html) = &given.html else { return Ok(true) };
    expect_different(&[("the events", Some(path)), ("--html", Some(html))])?;
    draw_events(path, html, out)?;
    Ok(true)
}

fn of_traces(given: &mut Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let traces = given.traces.iter().map(|trace| ("the trace", Some(trace.as_path())));
    let files = traces.chain([
        ("--beside", given.beside.as_deref()),
        ("--html", given.html.as_deref()),
        ("--perfetto", given.perfetto.as_deref()),
    ]);
    expect_different(&files.collect::<Vec<_>>())?;
    let sources = Sources::find(&given.traces)?;
    sources.expect_none(&[
        ("--beside", given.beside.is_some()),
        ("--perfetto", given.perfetto.is_some()),
        ("--until", given.chosen.until.is_some()),
        ("--from", given.chosen.from.is_some()),
        ("--to", given.chosen.to.is_some()),
    ])?;
    let good = given.chosen.load(&sources)?;
    let drawn = match (sources.pools.as_slice(), &given.html) {
        ([pool], _) => draw_pool(given, &given.chosen.of(pool), out)?,
        (pools, Some(html)) => draw_client(&given.chosen, pools, html, out)?,
        (_, None) => true,
    };
    Ok(drawn && good)
}
