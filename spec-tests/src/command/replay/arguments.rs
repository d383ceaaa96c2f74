//! What `cenote replay` can be told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::Instant;
use cenote_core::trace::TraceHeader;
use cenote_replay::clock::{self, Clock, TimePoint, UtcOffset};
use cenote_replay::condition::Condition;
use cenote_replay::filter;
use cenote_replay::shrink::Property;
use cenote_replay::topology::{History, ServerHistory};
use cenote_replay::what_if::{Goal, Grid, Loop};
use clap::ArgGroup;

use super::topology::Applies;
use crate::command::Failure;
use crate::command::input::at;
use crate::command::output::expect_different;

/// Arguments of `cenote replay`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("predicted").args(["what_if", "advise"]))]
#[command(group = ArgGroup::new("explained").multiple(true).args(["explain", "slowest", "leaks", "clears", "clear"]))]
#[command(group = ArgGroup::new(WAY).args(["step", "diff", "shrink"]))]
#[command(group = ArgGroup::new(RECORDED).multiple(true).args([
    "step", "diff", "shrink", "explain", "slowest", "leaks", "clears", "clear", "quiet", "perfetto", "beside",
    "events", "until", "connection", "waiter", "type", "from", "to",
]))]
pub(in crate::command) struct Arguments {
    /// A trace; `-` is standard input. Or those of one client: files, or their folder
    #[arg(value_name = "TRACE", required = true)]
    pub(super) traces: Vec<PathBuf>,
    /// The one of a pool that is looked at, or that of a topology.
    #[arg(skip)]
    pub(super) trace: PathBuf,
    /// Whether that is no trace, but the events of a pool.
    #[arg(skip)]
    pub(super) are_events: bool,
    /// What its servers were, if the trace of the topology was named, too.
    #[arg(skip)]
    pub(super) topology: Option<Arc<History>>,
    /// Read as much as possible of a truncated or damaged trace
    #[arg(long)]
    pub(super) lenient: bool,

    /// Only the number of steps, and whether what was recorded matches
    #[arg(long, short, help_heading = PRINTED)]
    pub(super) quiet: bool,
    /// Print one JSON object per step
    #[arg(long, help_heading = PRINTED)]
    pub(super) json: bool,
    /// With --json: print one JSON object per event
    #[arg(long, requires = "json", help_heading = PRINTED)]
    pub(super) events: bool,
    /// Say on one screen what happened: failures and waits by cause, leaks, clears, the longest waits. With
    /// --waiter: what that request waited for, whether it failed or not. With --json: one object with all of
    /// that
    #[arg(long, conflicts_with = "quiet", hide = true)]
    pub(super) explain: bool,
    /// The N longest waits
    #[arg(long, value_name = "N", conflicts_with_all = ["quiet", "json"], hide = true)]
    pub(super) slowest: Option<usize>,
    /// Connections that were held for long: leaked, or only slow
    #[arg(long, conflicts_with_all = ["quiet", "json"], hide = true)]
    pub(super) leaks: bool,
    /// For leaks: longer than this many seconds [default: leakDetectionThreshold of the trace, or 20
    /// times the median use]
    #[arg(long, value_name = "SECONDS", value_parser = duration, requires = "explained", hide = true)]
    pub(super) longer_than: Option<Duration>,
    /// What each clear did, in a line
    #[arg(long, conflicts_with_all = ["quiet", "json"], hide = true)]
    pub(super) clears: bool,
    /// What this clear did, from 1: requests, operations, connections; repeatable
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with_all = ["quiet", "json"],
        hide = true
    )]
    pub(super) clear: Vec<u64>,
    /// Everything instead of a screenful; with --explain: one line, or JSON object, per failed check-out
    #[arg(long, hide = true)]
    pub(super) all: bool,
    /// Wall-clock times with this offset, as in +02:00
    #[arg(
        long,
        value_name = "OFFSET",
        default_value = "Z",
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = CHOSEN
    )]
    pub(super) utc_offset: UtcOffset,

    /// Stop after the first step where this holds: waiting>100, event=ConnectionClosed, input=Clear,
    /// action=ReportLeak, status=paused, step=40, at=1.5, at=03:07:12
    #[arg(long, value_name = "COND", help_heading = CHOSEN)]
    pub(super) until: Option<Condition>,
    /// Only steps about this connection; repeatable
    #[arg(long, value_name = "NUMBER", help_heading = CHOSEN)]
    pub(super) connection: Vec<u64>,
    /// Only steps about this request; repeatable
    #[arg(long, value_name = "NUMBER", help_heading = CHOSEN)]
    pub(super) waiter: Vec<u64>,
    /// Only steps with this input, event or action, such as Clear; repeatable
    #[arg(long, value_name = "NAME", value_parser = filter::known_type, help_heading = CHOSEN)]
    pub(super) r#type: Vec<String>,
    /// Only steps from this time on: seconds since the start (1.5), 03:07:12, or 2026-01-01T03:07:12
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", help_heading = CHOSEN)]
    pub(super) from: Option<TimePoint>,
    /// Only steps up to this time
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", help_heading = CHOSEN)]
    pub(super) to: Option<TimePoint>,

    /// Write a page that shows the trace: one file, for any browser, without a network
    #[arg(long, value_name = "FILE", conflicts_with = WAY, hide = true)]
    pub(super) html: Option<PathBuf>,
    /// With --html: draw this trace beside the first, with the same times since the start in view
    #[arg(long, value_name = "OTHER", requires = "html", hide = true)]
    pub(super) beside: Option<PathBuf>,
    /// Write JSON for ui.perfetto.dev and chrome://tracing; packed if the name ends in .gz
    #[arg(long, value_name = "FILE", conflicts_with = WAY, hide = true)]
    pub(super) perfetto: Option<PathBuf>,
    /// Step forwards and backwards, by commands from standard input
    #[arg(long, conflicts_with_all = ["json", "explain"], help_heading = INSTEAD)]
    pub(super) step: bool,
    /// The first difference from another trace, or from those of another folder
    #[arg(
        long,
        value_name = "OTHER",
        conflicts_with_all = ["json", "explain", "lenient"],
        help_heading = INSTEAD
    )]
    pub(super) diff: Option<PathBuf>,
    /// Remove inputs while this still happens: misuse (a refused input), invariant, model, an event, or a condition as
    /// in --until
    #[arg(
        long,
        value_name = "PROPERTY",
        requires = "out",
        conflicts_with_all = ["json", "explain"],
        help_heading = INSTEAD
    )]
    pub(super) shrink: Option<Property>,
    /// What other options would have done, as in 'maxPoolSize=20,40; maxConnecting=2,8': every combination,
    /// beside what was recorded. Options: maxPoolSize, minPoolSize, maxConnecting, waitQueueTimeoutMS,
    /// maxIdleTimeMS
    #[arg(long, value_name = "OPTIONS", conflicts_with = RECORDED, hide = true)]
    pub(super) what_if: Option<Grid>,
    /// The smallest pools that keep a goal: 'p99 wait < 5 ms', 'max wait < 1 s' or 'time-outs < 1 %'; for the
    /// trace, and for its busiest minute with as many callers, 1.2 and 1.5 times as many
    #[arg(
        long,
        value_name = "GOAL",
        conflicts_with_all = [RECORDED, "html", "what_if"],
        hide = true
    )]
    pub(super) advise: Option<Goal>,
    /// How callers come: open, whatever happens to others; or closed, some time after their last request
    /// ended [default: what fits better]
    #[arg(long, value_name = "LOOP", requires = "predicted", hide = true)]
    pub(super) callers: Option<Loop>,
    /// File for the shrunk trace, folder for several
    #[arg(long, value_name = "FILE", requires = "shrink", help_heading = INSTEAD)]
    pub(super) out: Option<PathBuf>,
}

/// A part of a trace.
pub(super) struct Part {
    /// The trace's clock.
    pub(super) clock: Clock,
    /// From this time on, in nanoseconds since the origin.
    pub(super) from: Option<u64>,
    /// Up to this time.
    pub(super) to: Option<u64>,
    /// Up to the first step where this holds.
    pub(super) until: Option<Condition>,
}

impl Part {
    /// Whether that time is in it.
    pub(super) fn contains(&self, at: Instant) -> bool {
        let at = at.as_nanos();
        self.from.is_none_or(|from| at >= from) && self.to.is_none_or(|to| at <= to)
    }
}

/// What is done with the trace: one of these.
const WAY: &str = "way";
/// What only the steps that were recorded have.
const RECORDED: &str = "recorded";

const PRINTED: &str = "Output, instead of one line per step";
const CHOSEN: &str = "Which steps";
const INSTEAD: &str = "Other outputs";

const EXAMPLES: &str = "\
Examples:
  cenote replay traces/ --quiet
  cenote replay incident.bson --until 'waiting>100' --waiter 17
  cenote replay incident.bson --shrink event=ConnectionClosed --out s.bson
  cenote replay incident.bson --json --events | cenote check -

Exit status 1: something differs, was refused, or was not met.";

impl Arguments {
    /// The part of a trace with this header that was asked for.
    pub(super) fn part(&self, header: &TraceHeader) -> Result<Part, Failure> {
        self.part_on(Clock::new(header, self.utc_offset))
    }

    /// The same on this clock.
    pub(super) fn part_on(&self, clock: Clock) -> Result<Part, Failure> {
        let time = |time: Option<TimePoint>| {
            time.map(|time| clock.resolve(time)).transpose().map_err(at(&self.trace))
        };
        let until = self.until.clone().map(|until| until.resolve(&clock)).transpose();
        let until = until.map_err(at(&self.trace))?;
        Ok(Part { clock, from: time(self.from)?, to: time(self.to)?, until })
    }

    /// The command that does the same, of which these were options.
    pub(super) fn moved_to(&self) -> Option<&'static str> {
        let is_predicted = self.what_if.is_some() || self.advise.is_some();
        if is_predicted {
            Some("cenote predict")
        } else if self.html.is_some() || self.perfetto.is_some() {
            Some("cenote draw")
        } else {
            self.explains().then_some("cenote explain")
        }
    }

    /// Whether an explanation was asked for. One line per failed check-out, and JSON about one request, are
    /// printed with the steps.
    pub(super) fn explains(&self) -> bool {
        self.wants_summary()
            || (self.explain && !self.waiter.is_empty() && !self.json)
            || self.slowest.is_some()
            || self.leaks
            || self.clears
            || !self.clear.is_empty()
    }

    /// Whether that is the summary.
    pub(super) fn wants_summary(&self) -> bool {
        self.explain && !self.all && self.waiter.is_empty()
    }

    /// The same for another trace.
    pub(super) fn of_pool(&self, trace: &Path) -> Self {
        Self { trace: trace.to_owned(), ..self.clone() }
    }

    /// What became of the server of the pool with this trace, if the topology is known.
    pub(super) fn server(&self, header: &TraceHeader) -> Option<ServerHistory> {
        self.topology.as_ref().map(|history| ServerHistory::new(history, header))
    }

    /// Refuses options that mean nothing for these traces.
    pub(super) fn expect_only(&self, applies: Applies) -> Result<(), Failure> {
        let is_topology = applies == Applies::ToTopology;
        let given = [
            ("--events", self.events),
            ("--slowest", self.slowest.is_some()),
            ("--leaks", self.leaks),
            ("--longer-than", self.longer_than.is_some() && is_topology),
            ("--clears", self.clears),
            ("--clear", !self.clear.is_empty()),
            ("--connection", !self.connection.is_empty()),
            ("--waiter", !self.waiter.is_empty()),
            ("--beside", self.beside.is_some()),
            ("--perfetto", self.perfetto.is_some()),
            ("--step", self.step && is_topology),
            ("--shrink", self.shrink.is_some() && is_topology),
            ("--what-if", self.what_if.is_some()),
            ("--advise", self.advise.is_some()),
            ("--json", self.json && !is_topology),
            ("--until", self.until.is_some() && !is_topology),
            ("--type", !self.r#type.is_empty() && !is_topology),
            ("--json --explain", self.json && self.explain),
        ];
        let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        Err(applies.refuse(option))
    }

    /// What is read is not written over, nor anything that is written.
    pub(super) fn check_files(&self) -> Result<(), Failure> {
        let traces = self.traces.iter().map(|trace| ("the trace", Some(trace.as_path())));
        let files = traces.chain([
            ("--beside", self.beside.as_deref()),
            ("--html", self.html.as_deref()),
            ("--perfetto", self.perfetto.as_deref()),
            ("--out", self.out.as_deref()),
        ]);
        expect_different(&files.collect::<Vec<_>>())
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let nanos = clock::nanos(text).map(Duration::from_nanos);
    nanos.ok_or_else(|| format!("`{text}` is no number of seconds"))
}
