//! `cenote predict FILE`: what other options would have done.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use cenote_replay::what_if::{Goal, Grid, Loop};

use super::explain_command::of_events;
use super::{Arguments as ReplayArguments, what_if, without_closed_pipe};
use crate::command::Failure;
use crate::command::input::at;

/// Arguments of `cenote predict`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("question").args(["what_if", "advise"]).required(true))]
pub(in crate::command) struct Arguments {
    /// Events of a pool of any driver, one JSON object per line, or its log of the component `connection`; `-` is standard
    /// input. Or a trace of Cenote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What other options would have done, as in 'maxPoolSize=20,40; maxConnecting=2,8': every combination, beside what
    /// happened. Options: maxPoolSize, minPoolSize, maxConnecting, waitQueueTimeoutMS, maxIdleTimeMS
    #[arg(long, value_name = "OPTIONS")]
    what_if: Option<Grid>,
    /// The smallest pools that keep a goal: 'p99 wait < 5 ms', 'max wait < 1 s' or 'time-outs < 1 %'
    #[arg(long, value_name = "GOAL", conflicts_with = "html")]
    advise: Option<Goal>,
    /// How callers come: open, whatever happens to others; or closed, some time after their last request
    /// ended [default: what fits better]
    #[arg(long, value_name = "LOOP")]
    callers: Option<Loop>,
    /// Of a trace: draw it beside what would have happened with one value per option
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON object, with each draw
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cenote predict events.jsonl --what-if 'maxPoolSize=8,16,32'
  cenote predict events.jsonl --advise 'p99 wait < 5 ms'
  cenote predict incident.bson --what-if 'maxPoolSize=40' --html both.html";

/// Predicts, or advises.
pub(in crate::command) fn run(given: Arguments) -> Result<bool, Failure> {
    let files = vec![given.file];
    let events = of_events(&files)?;
    if given.html.is_some() && !files[0].is_file() && !files[0].is_dir() {
        return Err(at(&files[0])("--html reads the trace twice: give it as a file"));
    }
    let arguments = ReplayArguments {
        what_if: given.what_if,
        advise: given.advise,
        callers: given.callers,
        html: given.html,
        json: given.json,
        are_events: events.is_some(),
        trace: files[0].clone(),
        traces: files,
        ..ReplayArguments::default()
    };
    let Some(path) = events else { return super::run(arguments) };
    if arguments.html.is_some() {
        return Err(at(&path)("--html draws a trace, and these are events"));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    without_closed_pipe(what_if::run(&arguments, &mut out), &mut out)
}
