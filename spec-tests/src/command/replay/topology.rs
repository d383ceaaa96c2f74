//! The trace of a topology alone.

use std::io::{self, Write};
use std::ops::ControlFlow;

use cenote_core::trace::topology::{ActionRecord, StepInput, TraceHeader};
use cenote_replay::condition::Condition;
use cenote_replay::diff::diff_topologies;
use cenote_replay::text::counted;
use cenote_replay::topology::{StepReader, View, line, step_json};

use super::chosen::Part;
use super::sources::NOT_OF_TOPOLOGY;
use super::{Arguments, compare};
use crate::command::Failure;
use crate::command::input::{at, open};

pub(super) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    match &arguments.diff {
        Some(other) => compare(&arguments.chosen, other, diff_topologies, out),
        None => print(arguments, out),
    }
}

/// Prints what changed, and the requests for a server that waited; with --json, --type or --all also what says the same as before.
fn print(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let path = &arguments.chosen.trace;
    let mut reader = StepReader::new(open(path)?).map_err(at(path))?;
    let mut printer = Printer::new(arguments, reader.header())?;
    if !arguments.json && !arguments.quiet {
        let header = reader.header();
        let program = header.program.as_deref().unwrap_or("an unknown program");
        let clock =
            printer.part.clock.beginning().map(|begin| format!(", {begin}")).unwrap_or_default();
        let start = header.start;
        writeln!(out, "a trace of a topology, recorded by {program}, from {start}{clock}")?;
        writeln!(out, "begins with {}", reader.topology())?;
    }
    let mut printed = Ok(());
    let outcome = reader.each(|view| {
        printed = printer.step(view, out);
        let stop = printed.is_err() || printer.has_met;
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    printed?;
    out.flush()?;
    match outcome {
        Ok(_) => Ok(printer.end(reader.steps(), out)?),
        Err(error) => arguments.chosen.ended_early(path, error),
    }
}

struct Printer<'a> {
    arguments: &'a Arguments,
    part: Part,
    has_met: bool,
    changes: u64,
    shown: u64,
    last: Option<cenote_core::pool::Instant>,
}

impl<'a> Printer<'a> {
    fn new(arguments: &'a Arguments, header: &TraceHeader) -> Result<Self, Failure> {
        let chosen = &arguments.chosen;
        let part = chosen.part(chosen.clock(header.origin, header.start))?;
        if let Some(until @ (Condition::Count(..) | Condition::Status(_))) = &part.until {
            return Err(format!("--until {until} {NOT_OF_TOPOLOGY}").into());
        }
        Ok(Self { arguments, part, has_met: false, changes: 0, shown: 0, last: None })
    }

    fn step(&mut self, view: &View<'_>, out: &mut impl Write) -> io::Result<()> {
        let step = view.step;
        self.last = self.last.max(Some(step.at));
        self.changes += u64::from(view.change.is_some());
        let until = self.part.until.as_ref();
        self.has_met = until.is_some_and(|until| until.holds_for_topology(view) == Some(true));
        if self.arguments.quiet || !self.lets_pass(view) {
            return Ok(());
        }
        if self.arguments.json {
            return writeln!(out, "{}", step_json(view, &self.part.clock));
        }
        let is_asked_for = self.arguments.all || !self.arguments.r#type.is_empty();
        let is_check = view.change.is_none() && matches!(step.input, StepInput::Topology(_));
        if is_check && !is_asked_for {
            return Ok(());
        }
        self.shown += u64::from(view.change.is_some());
        writeln!(out, "{}", line(view, &self.part.clock))
    }

    fn lets_pass(&self, view: &View<'_>) -> bool {
        let types = &self.arguments.r#type;
        let is_named = |name: &str| types.iter().any(|wanted| wanted == name);
        let mut actions = view.actions.iter().map(ActionRecord::of);
        self.part.contains(view.step.at)
            && (types.is_empty()
                || is_named(view.step.input.name())
                || actions.any(|action| is_named(action.name)))
    }

    /// Prints the summary.
    fn end(&self, steps: u64, out: &mut impl Write) -> io::Result<bool> {
        if !self.arguments.json {
            let stopped = if self.has_met { ", stopped by --until" } else { "" };
            let shown = match self.shown {
                shown if self.arguments.quiet || shown == self.changes => String::new(),
                shown => format!(", {shown} shown"),
            };
            let until = self.last.map(|at| format!(" until {at}")).unwrap_or_default();
            let steps = counted(steps, "step", "steps");
            let changes = counted(self.changes, "change", "changes");
            writeln!(
                out,
                "{steps}{until}, {changes}; the replay agrees with the recording{shown}{stopped}"
            )?;
        }
        Ok(self.arguments.chosen.is_met(self.has_met))
    }
}
