//! Prints steps.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, Instant, WithoutEvents};
use cenote_core::trace::{Replay, Traced};

use crate::command::output::tell;
use cenote_simulation::replay::clock::Clock;
use cenote_simulation::replay::condition::{Condition, StepResult};
use cenote_simulation::replay::explain::Explainer;
use cenote_simulation::replay::filter::Filter;
use cenote_simulation::replay::step_reader::{StepReader, View};
use cenote_simulation::replay::{json, text};

use super::{Arguments, Unplayable, ended_early, open};

/// Takes every step without printing it.
pub(super) fn verify(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let path = &arguments.trace;
    let unplayable = |source| Unplayable::Trace { path: path.clone(), source };
    let mut replay = Replay::new(open(path)?).map_err(unplayable)?;
    let mut failed = 0;
    let mut count = |action| failed += u64::from(is_failure(&action));
    loop {
        match replay.step(&mut WithoutEvents(&mut count)) {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => return ended_early(arguments, path, error),
        }
    }
    if !arguments.json {
        writeln!(out, "{}", summary(replay.steps(), replay.pool().now(), failed))?;
    }
    Ok(true)
}

fn summary(steps: u64, until: Instant, failed: u64) -> String {
    format!(
        "{steps} steps until {until}, {failed} check-outs failed; the replay agrees with the recording"
    )
}

fn is_failure(action: &Action<Traced>) -> bool {
    matches!(action, Action::Deliver { outcome: Err(_), .. })
}

/// Prints the selected steps.
pub(super) fn print(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let unplayable = |source| Unplayable::Trace { path: arguments.trace.clone(), source };
    let mut watch = StepReader::new(open(&arguments.trace)?).map_err(unplayable)?;
    let mut printer = Printer::new(arguments, &watch);
    printer.start(&watch, out)?;
    let mut printed = Ok(());
    let stopped = watch.each(|view| {
        printed = printer.step(view, out);
        let stop = printed.is_err() || printer.has_met;
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    printed?;
    let good = match stopped {
        Ok(_) => printer.end(&watch, out)?,
        Err(error) => {
            out.flush()?;
            return ended_early(arguments, &arguments.trace, error);
        }
    };
    Ok(good)
}

/// Prints each step.
struct Printer<'a> {
    arguments: &'a Arguments,
    address: ServerAddress,
    filter: Filter,
    explainer: Explainer,
    has_met: bool,
    failed: u64,
    shown: u64,
}

impl<'a> Printer<'a> {
    fn new<R: Read>(arguments: &'a Arguments, watch: &StepReader<R>) -> Self {
        let filter = Filter {
            connections: arguments.connection.clone(),
            waiters: arguments.waiter.clone(),
            from: arguments.from,
            to: arguments.to,
            types: arguments.r#type.clone(),
        };
        let clock = Clock::new(watch.header(), arguments.utc_offset);
        let (address, explainer) = (json::address(watch.header()), Explainer::new(clock));
        Self { arguments, address, filter, explainer, has_met: false, failed: 0, shown: 0 }
    }

    fn start<R: Read>(&self, watch: &StepReader<R>, out: &mut impl Write) -> io::Result<()> {
        let header = watch.header();
        if self.arguments.events {
            return self.events(watch.start(), header.start, out);
        }
        if self.arguments.json || self.arguments.quiet {
            return Ok(());
        }
        let address = header.address.as_deref().unwrap_or("an unknown address");
        let program = header.program.as_deref().unwrap_or("an unknown program");
        let begin = if header.is_new { "a new pool" } else { "a state" };
        writeln!(
            out,
            "a trace of {address}, recorded by {program}, from {begin} at {}",
            header.start
        )?;
        writeln!(out, "options {}", cenote_simulation::lockstep::Brief(&header.options))
    }

    fn step(&mut self, view: &View<'_>, out: &mut impl Write) -> io::Result<()> {
        self.failed += view.actions.iter().filter(|&action| is_failure(action)).count() as u64;
        // The explanation of a failure needs all steps before it, printed or not.
        let failures =
            if self.arguments.explain { self.explainer.explain(view) } else { Vec::new() };
        self.has_met = self.arguments.until.as_ref().is_some_and(|until| holds(until, view));
        if self.arguments.quiet || !self.filter.lets_pass(view) {
            return Ok(());
        }
        self.shown += 1;
        if self.arguments.explain {
            return failures.iter().try_for_each(|text| self.explanation(view, text, out));
        }
        if self.arguments.events {
            return self.events(view.actions, view.step.at, out);
        }
        if self.arguments.json {
            return writeln!(out, "{}", json::step(view, &self.address));
        }
        writeln!(out, "{}", text::step(view))
    }

    fn explanation(&self, view: &View<'_>, text: &str, out: &mut impl Write) -> io::Result<()> {
        if self.arguments.json {
            let at = json::seconds(view.step.at);
            let object =
                serde_json::json!({ "step": view.step.number, "at": at, "explanation": text });
            return writeln!(out, "{object}");
        }
        writeln!(out, "{text}")
    }

    fn events(
        &self,
        actions: &[Action<Traced>],
        at: Instant,
        out: &mut impl Write,
    ) -> io::Result<()> {
        json::events(actions, at, &self.address).try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Prints the summary. It is an error if the condition of --until never held.
    fn end<R: Read>(&self, watch: &StepReader<R>, out: &mut impl Write) -> io::Result<bool> {
        let met = match &self.arguments.until {
            Some(_) if !self.has_met => {
                tell("cenote: the condition of --until never holds");
                false
            }
            Some(_) | None => true,
        };
        if self.arguments.json {
            return Ok(met);
        }
        let stopped = if self.has_met { ", stopped by --until" } else { "" };
        let summary = summary(watch.steps(), watch.pool().now(), self.failed);
        writeln!(out, "{summary}{stopped}")?;
        Ok(met)
    }
}

pub(super) fn holds(condition: &Condition, view: &View<'_>) -> bool {
    condition.holds(&StepResult {
        step: view.step.number,
        at: view.pool.now(),
        input: &view.step.input,
        actions: view.actions,
        snapshot: &view.pool.snapshot(),
    })
}
