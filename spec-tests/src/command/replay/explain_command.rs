//! `cenote explain FILE`: what happened to a pool of any driver.

use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cenote_replay::clock::{TimePoint, UtcOffset};
use cenote_replay::explain::{POOLS, explain_events};
use cenote_replay::text::counted;

use super::explain::{KEPT, print_findings};
use super::{Arguments as ReplayArguments, arguments, without_closed_pipe};
use crate::command::Failure;
use crate::command::input::{at, is_trace, open};

/// Arguments of `cenote explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::command) struct Arguments {
    /// Events of a pool of any driver, one JSON object per line, or its log of the component `connection`; `-` is standard
    /// input. Or a trace of Cenote, several of one client, or the folder that has them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The N longest waits
    #[arg(long, value_name = "N", conflicts_with = "json")]
    slowest: Option<usize>,
    /// Connections that were held for long: leaked, or only slow
    #[arg(long, conflicts_with = "json")]
    leaks: bool,
    /// For leaks: longer than this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = arguments::duration)]
    longer_than: Option<Duration>,
    /// What each clear did, in a line
    #[arg(long, conflicts_with = "json")]
    clears: bool,
    /// What this clear did, from 1; repeatable
    #[arg(long, value_name = "NUMBER", conflicts_with = "json")]
    clear: Vec<u64>,
    /// Everything instead of a screenful
    #[arg(long)]
    all: bool,
    /// One JSON object with all of that
    #[arg(long)]
    json: bool,
    /// Of a trace: what this request waited for; repeatable
    #[arg(long, value_name = "NUMBER")]
    waiter: Vec<u64>,
    #[command(flatten)]
    of_trace: OfTrace,
}

/// What can be chosen of a trace.
#[derive(Debug, clap::Args)]
pub(super) struct OfTrace {
    /// Of a trace that is truncated or damaged: as much of it as can be read
    #[arg(long)]
    lenient: bool,
    /// Of a trace: only from this time on, as in 1.5, 03:07:12 or 2026-01-01T03:07:12
    #[arg(long, allow_negative_numbers = true, value_name = "TIME")]
    from: Option<TimePoint>,
    /// Of a trace: only up to this time
    #[arg(long, allow_negative_numbers = true, value_name = "TIME")]
    to: Option<TimePoint>,
    /// Of a trace: times with this offset from UTC, as in +02:00
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    utc_offset: Option<UtcOffset>,
}

impl OfTrace {
    /// Of a trace that is played with these arguments.
    pub(super) fn chosen(self, arguments: ReplayArguments) -> ReplayArguments {
        let Self { lenient, from, to, utc_offset } = self;
        ReplayArguments {
            lenient,
            from,
            to,
            utc_offset: utc_offset.unwrap_or_default(),
            ..arguments
        }
    }

    /// Events have none of that, nor what else is given.
    pub(super) fn refuse_for_events(
        &self,
        path: &Path,
        others: &[(&str, bool)],
    ) -> Result<(), Failure> {
        let own = [
            ("--lenient", self.lenient),
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--utc-offset", self.utc_offset.is_some()),
        ];
        let given = others.iter().chain(&own).find(|(_, is_given)| *is_given);
        let refuse = |(option, _): &(&str, bool)| {
            Err(at(path)(format!("{option} is for a trace, and these are events")))
        };
        given.map_or(Ok(()), refuse)
    }
}

const EXAMPLES: &str = "\
Examples:
  cenote explain events.jsonl                what happened, and why
  cenote explain events.jsonl --leaks --clears
  cenote explain incident.bson --waiter 17   what a request waited for
  cenote explain traces/                     the topology, and each pool";

/// Explains the file.
pub(in crate::command) fn run(given: Arguments) -> Result<bool, Failure> {
    let is_asked =
        given.slowest.is_some() || given.leaks || given.clears || !given.clear.is_empty();
    let events = of_events(&given.files)?;
    if let Some(path) = &events {
        given.of_trace.refuse_for_events(path, &[("--waiter", !given.waiter.is_empty())])?;
    }
    let at_most = if given.all || given.json { usize::MAX } else { POOLS };
    let arguments = given.of_trace.chosen(ReplayArguments {
        explain: !is_asked,
        slowest: given.slowest,
        leaks: given.leaks,
        longer_than: given.longer_than,
        clears: given.clears,
        clear: given.clear,
        all: given.all && (is_asked || !given.waiter.is_empty()),
        json: given.json,
        waiter: given.waiter,
        traces: given.files,
        ..ReplayArguments::default()
    });
    let Some(path) = events else { return super::run(arguments) };
    let mut out = BufWriter::new(io::stdout().lock());
    without_closed_pipe(explain(&arguments, &path, at_most, &mut out), &mut out)
}

fn explain(
    arguments: &ReplayArguments,
    path: &Path,
    at_most: usize,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let slowest = arguments.slowest.unwrap_or(KEPT).max(KEPT);
    let source = BufReader::new(open(path)?);
    let pools = explain_events(source, slowest, arguments.longer_than, at_most);
    let (pools, others) = pools.map_err(at(path))?;
    let mut good = true;
    for (index, findings) in pools.iter().enumerate() {
        if index > 0 && !arguments.json {
            writeln!(out)?;
        }
        good &= print_findings(arguments, path, findings, out)?;
    }
    if others > 0 {
        let others = counted(others as u64, "other pool", "other pools");
        writeln!(out, "\n{others} with fewer requests: --all explains each")?;
    }
    Ok(good)
}

/// The file, if it is of events.
pub(super) fn of_events(files: &[PathBuf]) -> Result<Option<PathBuf>, Failure> {
    for path in files {
        if path.is_dir() || is_trace(path)? {
            continue;
        }
        if files.len() > 1 {
            return Err(at(path)("events are explained one file at a time"));
        }
        return Ok(Some(path.clone()));
    }
    Ok(None)
}
