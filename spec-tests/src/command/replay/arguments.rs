//! What `cenote replay` can be told.

use std::path::PathBuf;

use crate::command::output::{SameFile, expect_different};
use cenote_simulation::replay::condition::{self, Condition};
use cenote_simulation::replay::filter;
use cenote_simulation::replay::shrink::Property;

/// Arguments of `cenote replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Trace file; `-` is standard input
    pub(super) trace: PathBuf,
    /// Read as much as possible of a truncated or damaged trace
    #[arg(long)]
    pub(super) lenient: bool,

    /// Only print the number of steps, and whether everything recorded matches
    #[arg(long, short, help_heading = PRINTED)]
    pub(super) quiet: bool,
    /// Print one JSON object per step
    #[arg(long, help_heading = PRINTED)]
    pub(super) json: bool,
    /// With --json: print one JSON object per event
    #[arg(long, requires = "json", help_heading = PRINTED)]
    pub(super) events: bool,
    /// Explain each failed check-out: the connections in use, and the limit that was reached
    #[arg(long, help_heading = PRINTED)]
    pub(super) explain: bool,

    /// Stop after the first step where this holds: waiting>100, event=ConnectionCheckOutFailed,
    /// input=Clear, status=paused, step=40, at=1.5
    #[arg(long, value_name = "COND", help_heading = CHOSEN)]
    pub(super) until: Option<Condition>,
    /// Only steps about this connection; repeatable
    #[arg(long, value_name = "NUMBER", help_heading = CHOSEN)]
    pub(super) connection: Vec<u64>,
    /// Only steps about this request; repeatable
    #[arg(long, value_name = "NUMBER", help_heading = CHOSEN)]
    pub(super) waiter: Vec<u64>,
    /// Only steps with this input, event or action; repeatable
    #[arg(long, value_name = "NAME", value_parser = filter::known_type, help_heading = CHOSEN)]
    pub(super) r#type: Vec<String>,
    /// Only steps from this time on, in seconds
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds, help_heading = CHOSEN)]
    pub(super) from: Option<u64>,
    /// Only steps up to this time, in seconds
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds, help_heading = CHOSEN)]
    pub(super) to: Option<u64>,

    /// Write a page that shows the trace: one file, for any browser, without a network
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["step", "diff", "shrink"],
        help_heading = INSTEAD
    )]
    pub(super) html: Option<PathBuf>,
    /// Write JSON for ui.perfetto.dev and chrome://tracing
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["step", "diff", "shrink"],
        help_heading = INSTEAD
    )]
    pub(super) perfetto: Option<PathBuf>,
    /// Step forwards and backwards with commands from standard input
    #[arg(
        long,
        conflicts_with_all = ["json", "explain", "diff", "shrink"],
        help_heading = INSTEAD
    )]
    pub(super) step: bool,
    /// Print the first difference from another trace
    #[arg(
        long,
        value_name = "OTHER",
        conflicts_with_all = ["json", "explain", "shrink", "lenient"],
        help_heading = INSTEAD
    )]
    pub(super) diff: Option<PathBuf>,
    /// Remove inputs while this still happens: misuse (a refused input), invariant, model (a difference
    /// from the reference model), the name of an event, or a
    /// condition as in --until
    #[arg(
        long,
        value_name = "PROPERTY",
        requires = "out",
        conflicts_with_all = ["json", "explain"],
        help_heading = INSTEAD
    )]
    pub(super) shrink: Option<Property>,
    /// File for the shrunk trace
    #[arg(
        long,
        value_name = "FILE",
        requires = "shrink",
        help_heading = INSTEAD
    )]
    pub(super) out: Option<PathBuf>,
}

const PRINTED: &str = "What is printed, instead of a line a step";
const CHOSEN: &str = "Which steps";
const INSTEAD: &str = "Something else than printing";

const EXAMPLES: &str = "\
Examples:
  cenote replay incident.bson --quiet            does it agree with what was recorded?
  cenote replay incident.bson --explain          why check-outs failed
  cenote replay incident.bson --html page.html   a picture
  cenote replay incident.bson --until 'waiting>100' --waiter 17
  cenote replay incident.bson --shrink event=ConnectionCheckOutFailed --out small.bson
  cenote replay incident.bson --json --events | cenote check -";

impl Arguments {
    /// What is read is not written over, nor anything that is written.
    pub(super) fn check_files(&self) -> Result<(), SameFile> {
        expect_different(&[
            ("the trace", Some(&self.trace)),
            ("--html", self.html.as_deref()),
            ("--perfetto", self.perfetto.as_deref()),
            ("--out", self.out.as_deref()),
        ])
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    condition::nanos(text).ok_or_else(|| format!("`{text}` is no number of seconds"))
}
