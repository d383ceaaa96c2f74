//! Which part of a trace a command looks at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cenote_core::pool::Instant;
use cenote_core::trace::{TraceError, TraceHeader};
use cenote_replay::clock::{Clock, TimePoint, UtcOffset};
use cenote_replay::condition::Condition;
use cenote_replay::topology::{History, ServerHistory};

use super::sources::Sources;
use crate::command::Failure;
use crate::command::input::{Source, at, expect_none, open};
use crate::command::output::tell;

/// Options of every command that replays traces, and the trace that is looked at.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::command) struct Chosen {
    /// As much as possible of a truncated or damaged trace
    #[arg(long, help_heading = PART)]
    pub(super) lenient: bool,
    /// Wall-clock times with this offset, as in +02:00
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true, help_heading = PART)]
    utc_offset: Option<UtcOffset>,
    /// Stop after the first step where this holds: waiting>100, event=ConnectionClosed, input=Clear,
    /// action=ReportLeak, status=paused, step=40, at=1.5, at=03:07:12
    #[arg(long, value_name = "COND", help_heading = PART)]
    pub(super) until: Option<Condition>,
    /// Only from this time on: seconds since the start (1.5), 03:07:12, or 2026-01-01T03:07:12
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", help_heading = PART)]
    pub(super) from: Option<TimePoint>,
    /// Only up to this time
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", help_heading = PART)]
    pub(super) to: Option<TimePoint>,
    /// The trace of a pool, or that of a topology.
    #[arg(skip)]
    pub(super) trace: PathBuf,
    /// What the servers of a pool were, if the trace of the topology was named, too.
    #[arg(skip)]
    pub(super) topology: Option<Arc<History>>,
}

/// The heading of these options.
pub(super) const PART: &str = "Which part of a trace";

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

impl Chosen {
    /// Reads the trace of the topology, if there is one. Returns whether it is as it should be.
    pub(super) fn load(&mut self, sources: &Sources) -> Result<bool, Failure> {
        let Some(topology) = &sources.topology else { return Ok(true) };
        self.trace.clone_from(topology);
        let (history, good) = self.read(History::read)?;
        self.topology = Some(Arc::new(history));
        Ok(good)
    }

    /// The same of another trace.
    pub(super) fn of(&self, trace: &Path) -> Self {
        Self { trace: trace.to_owned(), ..self.clone() }
    }

    /// Whether times are left out.
    pub(super) fn is_part(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// The clock of a trace with this origin, which starts then.
    pub(super) fn clock(&self, origin: i64, start: Instant) -> Clock {
        Clock::from(origin, start, self.utc_offset.unwrap_or_default())
    }

    /// What was asked for, on the clock of the trace.
    pub(super) fn part(&self, clock: Clock) -> Result<Part, Failure> {
        let time = |time: Option<TimePoint>| {
            time.map(|time| clock.resolve(time)).transpose().map_err(at(&self.trace))
        };
        let until = self.until.clone().map(|until| until.resolve(&clock)).transpose();
        let until = until.map_err(at(&self.trace))?;
        Ok(Part { clock, from: time(self.from)?, to: time(self.to)?, until })
    }

    /// What became of the server of the pool with this trace, if the topology is known.
    pub(super) fn server(&self, header: &TraceHeader) -> Option<ServerHistory> {
        self.topology.as_ref().map(|history| ServerHistory::new(history, header))
    }

    /// The complete trace, as far as it is usable, and whether it is as it should be.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(Source) -> Result<(T, Option<TraceError>), TraceError>,
    ) -> Result<(T, bool), Failure> {
        let path = &self.trace;
        let (whole, problem) = read(open(path)?).map_err(at(path))?;
        let good = problem.map_or(Ok(true), |error| self.ended_early(path, error))?;
        Ok((whole, good))
    }

    /// Good enough with `--lenient`; a difference is not good, and anything else is unreadable.
    pub(super) fn ended_early(&self, path: &Path, error: TraceError) -> Result<bool, Failure> {
        if error.is_difference() || self.lenient {
            tell(format_args!("cenote: {}: {error}", path.display()));
            return Ok(!error.is_difference());
        }
        Err(at(path)(error))
    }

    /// It is an error if the condition of `--until` never held.
    pub(super) fn is_met(&self, has_met: bool) -> bool {
        let is_met = self.until.is_none() || has_met;
        if !is_met {
            tell("cenote: the condition of --until never holds");
        }
        is_met
    }

    /// Events have none of that, nor what else is given.
    pub(super) fn refuse_for_events(
        &self,
        path: &Path,
        others: &[(&str, bool)],
    ) -> Result<(), Failure> {
        let own = [
            ("--lenient", self.lenient),
            ("--until", self.until.is_some()),
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--utc-offset", self.utc_offset.is_some()),
        ];
        expect_none(&[others, &own].concat(), "is for a trace, and these are events")
            .map_err(at(path))
    }
}
