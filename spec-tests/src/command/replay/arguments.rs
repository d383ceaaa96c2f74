//! What `cenote replay` can be told.

use std::path::PathBuf;

use cenote_replay::filter;
use cenote_replay::shrink::Property;
use clap::ArgGroup;

use super::chosen::{Chosen, PART};
use super::sources::Sources;
use crate::command::Failure;
use crate::command::output::expect_different;

/// Arguments of `cenote replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("way").args(["step", "diff", "shrink"]))]
pub(in crate::command) struct Arguments {
    /// A trace; `-` is standard input. Or those of one client: files, or their folder
    #[arg(value_name = "TRACE", required = true)]
    pub(super) traces: Vec<PathBuf>,

    /// Only the number of steps, and whether what was recorded matches
    #[arg(long, short, help_heading = PRINTED)]
    pub(super) quiet: bool,
    /// Print one JSON object per step
    #[arg(long, help_heading = PRINTED)]
    pub(super) json: bool,
    /// With --json: print one JSON object per event
    #[arg(long, requires = "json", help_heading = PRINTED)]
    pub(super) events: bool,

    #[command(flatten)]
    pub(super) chosen: Chosen,
    /// Only steps about this connection; repeatable
    #[arg(long, value_name = "NUMBER", help_heading = PART)]
    pub(super) connection: Vec<u64>,
    /// Only steps about this request; repeatable
    #[arg(long, value_name = "NUMBER", help_heading = PART)]
    pub(super) waiter: Vec<u64>,
    /// Only steps with this input, event or action, such as Clear; repeatable
    #[arg(long, value_name = "NAME", value_parser = filter::known_type, help_heading = PART)]
    pub(super) r#type: Vec<String>,
    /// Of a topology, or of several traces: every step, not only changes
    #[arg(long, help_heading = PART)]
    pub(super) all: bool,

    /// Step forwards and backwards, by commands from standard input
    #[arg(long, conflicts_with = "json", help_heading = INSTEAD)]
    pub(super) step: bool,
    /// The first difference from another trace, or from those of another folder
    #[arg(
        long,
        value_name = "OTHER",
        conflicts_with_all = ["json", "lenient"],
        help_heading = INSTEAD
    )]
    pub(super) diff: Option<PathBuf>,
    /// Remove inputs while this still happens: misuse (a refused input), invariant, model, an event, or a condition as
    /// in --until
    #[arg(
        long,
        value_name = "PROPERTY",
        requires = "out",
        conflicts_with = "json",
        help_heading = INSTEAD
    )]
    pub(super) shrink: Option<Property>,
    /// File for the shrunk trace, folder for several
    #[arg(long, value_name = "FILE", requires = "shrink", help_heading = INSTEAD)]
    pub(super) out: Option<PathBuf>,
}

const PRINTED: &str = "Output, instead of one line per step";
const INSTEAD: &str = "Other outputs";

const EXAMPLES: &str = "\
Examples:
  cenote replay traces/ --quiet
  cenote replay incident.bson --until 'waiting>100' --waiter 17
  cenote replay incident.bson --shrink event=ConnectionClosed --out s.bson
  cenote replay incident.bson --json --events | cenote check -

Exit status 1: something differs, was refused, or was not met.";

impl Arguments {
    /// Refuses options that mean nothing for these traces.
    pub(super) fn check(&self, sources: &Sources) -> Result<(), Failure> {
        let is_topology = sources.pools.is_empty();
        sources.expect_none(&[
            ("--events", self.events),
            ("--connection", !self.connection.is_empty()),
            ("--waiter", !self.waiter.is_empty()),
            ("--step", self.step && is_topology),
            ("--shrink", self.shrink.is_some() && is_topology),
            ("--json", self.json && !is_topology),
            ("--until", self.chosen.until.is_some() && !is_topology),
            ("--type", !self.r#type.is_empty() && !is_topology),
        ])
    }

    /// What is read is not written over.
    pub(super) fn check_files(&self) -> Result<(), Failure> {
        let traces = self.traces.iter().map(|trace| ("the trace", Some(trace.as_path())));
        let files = traces.chain([("--out", self.out.as_deref())]);
        expect_different(&files.collect::<Vec<_>>())
    }
}
