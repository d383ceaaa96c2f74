//! Prints steps.

use std::io::{self, Write};

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, Instant, WithoutEvents};
use cenote_core::trace::{Replay, StageRecord, TraceHeader, Traced};
use cenote_replay::clock::Clock;
use cenote_replay::filter::Filter;
use cenote_replay::step_reader::View;
use cenote_replay::text::counted;
use cenote_replay::{json, text};

use super::Arguments;
use super::played::{Played, none_refused};
use crate::command::Failure;
use crate::command::input::{at, open};

/// Takes every step without printing it.
pub(super) fn verify(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let path = &arguments.chosen.trace;
    let mut replay = Replay::new(open(path)?).map_err(at(path))?;
    let mut failed = 0;
    let mut count = |action| failed += u64::from(is_failure(&action));
    let mut refused = 0;
    loop {
        match replay.step(&mut WithoutEvents(&mut count)) {
            Ok(Some(step)) => refused += u64::from(step.refused),
            Ok(None) => break,
            Err(error) => return arguments.chosen.ended_early(path, error),
        }
    }
    if !arguments.json {
        writeln!(out, "{}", summary(replay.steps(), replay.pool().now(), failed))?;
        out.flush()?;
    }
    Ok(none_refused(path, refused))
}

fn summary(steps: u64, until: Instant, failed: u64) -> String {
    let steps = counted(steps, "step", "steps");
    let failed = counted(failed, "check-out", "check-outs");
    format!("{steps} until {until}, {failed} failed; the replay agrees with the recording")
}

pub(super) fn is_failure(action: &Action<Traced>) -> bool {
    matches!(action, Action::Deliver { outcome: Err(_), .. })
}

/// Prints the selected steps.
pub(super) fn print(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let mut trace = Played::open(&arguments.chosen)?;
    let mut printer = Printer::new(arguments, &trace);
    printer.start(trace.reader.header(), trace.reader.start(), out)?;
    let good = trace.each(|view, _| printer.step(view, out))?;
    if trace.is_cut {
        out.flush()?;
        return Ok(good);
    }
    if !arguments.quiet {
        printer.stages(trace.reader.later_stages(), out)?;
    }
    if !arguments.json {
        let steps = trace.reader.steps();
        let stopped = if trace.has_met { ", stopped by --until" } else { "" };
        let summary = summary(steps, trace.reader.pool().now(), printer.failed);
        let shown = match printer.shown {
            shown if arguments.quiet || shown == steps => String::new(),
            shown => format!(", {} shown", counted(shown, "step", "steps")),
        };
        writeln!(out, "{summary}{shown}{stopped}")?;
    }
    out.flush()?;
    Ok(trace.end() && good)
}

/// Prints each step.
struct Printer<'a> {
    arguments: &'a Arguments,
    address: ServerAddress,
    clock: Clock,
    filter: Filter,
    failed: u64,
    shown: u64,
}

impl<'a> Printer<'a> {
    fn new<R: io::Read>(arguments: &'a Arguments, trace: &Played<'_, R>) -> Self {
        let (header, clock) = (trace.reader.header(), trace.part.clock);
        let filter = Filter {
            connections: arguments.connection.clone(),
            waiters: arguments.waiter.clone(),
            from: trace.part.from,
            to: trace.part.to,
            types: arguments.r#type.clone(),
        };
        let address = json::address(header);
        Self { arguments, address, clock, filter, failed: 0, shown: 0 }
    }

    fn start(
        &self,
        header: &TraceHeader,
        actions: &[Action<Traced>],
        out: &mut impl Write,
    ) -> io::Result<()> {
        if self.arguments.events {
            return self.events(actions, header.start, out);
        }
        if self.arguments.json || self.arguments.quiet {
            return Ok(());
        }
        let address = header.address.as_deref().unwrap_or("an unknown address");
        let program = header.program.as_deref().unwrap_or("an unknown program");
        let begin = if header.is_new { "a new pool" } else { "a state" };
        let clock = self.clock.beginning().map(|begin| format!(", {begin}")).unwrap_or_default();
        writeln!(
            out,
            "a trace of {address}, recorded by {program}, from {begin} at {}{clock}",
            header.start
        )?;
        writeln!(out, "options {}", header.options)
    }

    fn step(&mut self, view: &View<'_>, out: &mut impl Write) -> io::Result<()> {
        self.failed += view.actions.iter().filter(|&action| is_failure(action)).count() as u64;
        if self.arguments.quiet {
            return Ok(());
        }
        self.stages(&view.step.stages, out)?;
        if !self.filter.lets_pass(view) {
            return Ok(());
        }
        self.shown += 1;
        if self.arguments.events {
            return self.events(view.actions, view.step.at, out);
        }
        if self.arguments.json {
            return writeln!(out, "{}", json::step(view, &self.address, &self.clock));
        }
        writeln!(out, "{}", text::step(view, &self.clock))
    }

    fn stages(&self, stages: &[StageRecord], out: &mut impl Write) -> io::Result<()> {
        let Arguments { events, json, .. } = self.arguments;
        if *events {
            return Ok(());
        }
        let mut shown = stages.iter().filter(|stage| self.filter.lets_stage_pass(stage));
        shown.try_for_each(|stage| match json {
            true => writeln!(out, "{}", json::stage(stage, &self.clock)),
            false => writeln!(out, "{}", text::stage(stage, &self.clock)),
        })
    }

    fn events(
        &self,
        actions: &[Action<Traced>],
        at: Instant,
        out: &mut impl Write,
    ) -> io::Result<()> {
        json::events(actions, at, &self.address).try_for_each(|line| writeln!(out, "{line}"))
    }
}
