//! The traces of a client together: of its topology, and of its pools.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cenote_core::pool::{Action, Event, Input, Instant};
use cenote_replay::clock::Clock;
use cenote_replay::step_reader::View;
use cenote_replay::text::{self, counted};
use cenote_replay::topology::{History, shifted, summary};

use super::explain::explain;
use super::played::Played;
use super::print::is_failure;
use super::sources::Sources;
use super::topology::{self, Applies, CHANGES};
use super::{Arguments, draw};
use crate::command::Failure;
use crate::command::output::shown;

pub(super) fn run(
    arguments: &Arguments,
    sources: &Sources,
    agrees: bool,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    arguments.expect_only(Applies::ToSeveral)?;
    if arguments.html.is_some() {
        return draw::draw_client(arguments, &sources.pools, out);
    }
    if arguments.explain {
        return explain_each(arguments, &sources.pools, out);
    }
    overview(arguments, sources, agrees, out)
}

/// The topology first, and then each pool.
fn explain_each(
    arguments: &Arguments,
    pools: &[PathBuf],
    out: &mut impl Write,
) -> Result<bool, Failure> {
    if let Some(history) = &arguments.topology {
        let clock = topology::clock(arguments, &history.header);
        writeln!(out, "{}", summary(history, &clock, CHANGES))?;
    }
    let mut good = true;
    for (number, pool) in pools.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        good &= explain(&arguments.of_pool(pool), out)?;
    }
    Ok(good)
}

/// A line for each trace, and then what changed in the topology and what came of it in the pools, in the order of
/// time.
fn overview(
    arguments: &Arguments,
    sources: &Sources,
    agrees: bool,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let mut told = Timeline::default();
    let mut good = true;
    if let (Some(path), Some(history)) = (&sources.topology, &arguments.topology) {
        let steps = counted(history.steps, "step", "steps");
        let changes = counted(history.changes.len() as u64, "change", "changes");
        told.line(path, &format!("{steps} until {}, {changes}", history.end), agrees);
        told.add_topology(history);
    }
    let header = arguments.topology.as_ref().map(|history| &history.header);
    let mut clock = header.map(|header| topology::clock(arguments, header));
    for pool in &sources.pools {
        let origin = header.map(|header| header.origin);
        let (its, is_good) = told.add_pool(&arguments.of_pool(pool), origin)?;
        clock.get_or_insert(its);
        good &= is_good;
    }
    told.print(clock.as_ref().filter(|_| !arguments.quiet), out)?;
    Ok(good)
}

/// What happened, by time.
#[derive(Default)]
struct Timeline {
    traces: Vec<(String, String)>,
    /// The time, the place of the trace, so that the topology comes first, and what happened.
    events: Vec<(Instant, usize, String)>,
}

impl Timeline {
    fn line(&mut self, path: &Path, told: &str, agrees: bool) {
        let agrees = if agrees { "; the replay agrees with the recording" } else { "" };
        let name = path.file_name().map_or_else(|| shown(path), |name| shown(Path::new(name)));
        self.traces.push((name, format!("{told}{agrees}")));
    }

    fn add_topology(&mut self, history: &History) {
        let changes = history.changes.iter();
        self.events.extend(changes.map(|change| (change.at, 0, change.to_string())));
        let selections = history.selections.iter();
        self.events.extend(selections.map(|(at, selection)| (*at, 0, selection.to_string())));
    }

    /// `origin` is that of the topology, if there is one. Returns the clock of the trace, and whether all is good.
    fn add_pool(
        &mut self,
        arguments: &Arguments,
        origin: Option<i64>,
    ) -> Result<(Clock, bool), Failure> {
        let mut trace = Played::open(arguments, &arguments.trace)?;
        let clock = trace.part.clock;
        let header = trace.reader.header().clone();
        let shift = origin.map_or(0, |origin| header.origin.saturating_sub(origin));
        let address = header.address.as_deref().unwrap_or("an unknown address");
        let (place, mut failed) = (self.traces.len() + 1, 0);
        let good = trace.each(|view, _| {
            failed += view.actions.iter().filter(|it| is_failure(it)).count() as u64;
            if let Some(event) = happened(view) {
                let at = shifted(view.pool.now(), shift);
                self.events.push((at, place, format!("  pool of {address}: {event}")));
            }
            Ok(())
        })?;
        let steps = counted(trace.reader.steps(), "step", "steps");
        let check_outs = counted(failed, "check-out", "check-outs");
        let told = format!("{steps} until {}, {check_outs} failed", trace.reader.pool().now());
        self.line(&arguments.trace, &told, good);
        Ok((clock, trace.end() && good))
    }

    /// Without a clock the traces alone.
    fn print(&mut self, clock: Option<&Clock>, out: &mut impl Write) -> io::Result<()> {
        let width = self.traces.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, told) in &self.traces {
            writeln!(out, "{name:<width$}  {told}")?;
        }
        let Some(clock) = clock else { return Ok(()) };
        self.events.sort_by_key(|&(at, place, _)| (at, place));
        if !self.events.is_empty() {
            writeln!(out)?;
        }
        for (at, _, told) in &self.events {
            writeln!(out, "{}  {told}", clock.short(*at))?;
        }
        Ok(())
    }
}

/// What monitors and the client do to a pool, if it has an effect.
fn happened(view: &View<'_>) -> Option<String> {
    let tells = |event: &Event<_>| {
        matches!(
            event,
            Event::ConnectionPoolReady
                | Event::ConnectionPoolCleared { .. }
                | Event::ConnectionPoolClosed
        )
    };
    let mut events = view.actions.iter();
    events.find(|action| matches!(action, Action::EmitEvent(event) if tells(event)))?;
    let failed = view.actions.iter().filter(|action| is_failure(action)).count() as u64;
    let failed = match (&view.step.input, failed) {
        (Input::Ready, _) | (_, 0) => String::new(),
        (_, failed) => format!("; {} failed", counted(failed, "check-out", "check-outs")),
    };
    Some(text::input(&view.step.input) + &failed)
}
