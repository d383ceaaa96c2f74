//! Prints steps.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, Instant, WithoutEvents};
use cenote_core::trace::{Replay, Traced};

use crate::command::output::tell;
use cenote_replay::clock::Clock;
use cenote_replay::condition::{Condition, StepResult};
use cenote_replay::explain::Explainer;
use cenote_replay::filter::Filter;
use cenote_replay::step_reader::{StepReader, View};
use cenote_replay::{json, text};

use super::{Arguments, Part, Unplayable, ended_early, open, part};

/// Takes every step without printing it.
pub(super) fn verify(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let path = &arguments.trace;
    let unplayable = |source| Unplayable::Trace { path: path.clone(), source };
    let mut replay = Replay::new(open(path, &arguments.beginning)?).map_err(unplayable)?;
    let mut failed = 0;
    let mut count = |action| failed += u64::from(is_failure(&action));
    let mut refused = 0;
    loop {
        match replay.step(&mut WithoutEvents(&mut count)) {
            Ok(Some(step)) => refused += u64::from(step.refused),
            Ok(None) => break,
            Err(error) => return ended_early(arguments, path, error),
        }
    }
    if !arguments.json {
        writeln!(out, "{}", summary(replay.steps(), replay.pool().now(), failed))?;
        out.flush()?;
    }
    Ok(none_refused(path, refused))
}

fn summary(steps: u64, until: Instant, failed: u64) -> String {
    let (steps, failed) =
        (plural(steps, "step", "steps"), plural(failed, "check-out", "check-outs"));
    format!("{steps} until {until}, {failed} failed; the replay agrees with the recording")
}

fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A pool refuses inputs that make no sense: the program that recorded has a bug.
pub(super) fn none_refused(path: &Path, refused: u64) -> bool {
    if refused > 0 {
        let path = path.display();
        let inputs = plural(refused, "input was", "inputs were");
        tell(format_args!(
            "cenote: {path}: {inputs} refused, a bug of the program that recorded: --shrink misuse finds \
             it"
        ));
    }
    refused == 0
}

fn is_failure(action: &Action<Traced>) -> bool {
    matches!(action, Action::Deliver { outcome: Err(_), .. })
}

/// Prints the selected steps.
pub(super) fn print(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let unplayable = |source| Unplayable::Trace { path: arguments.trace.clone(), source };
    let mut watch =
        StepReader::new(open(&arguments.trace, &arguments.beginning)?).map_err(unplayable)?;
    let mut printer = Printer::new(arguments, part(arguments, watch.header())?, &watch);
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
    clock: Clock,
    until: Option<Condition>,
    filter: Filter,
    explainer: Explainer,
    has_met: bool,
    refused: u64,
    failed: u64,
    shown: u64,
}

impl<'a> Printer<'a> {
    fn new<R: Read>(arguments: &'a Arguments, part: Part, watch: &StepReader<R>) -> Self {
        let Part { clock, from, to, until } = part;
        let filter = Filter {
            connections: arguments.connection.clone(),
            waiters: arguments.waiter.clone(),
            from,
            to,
            types: arguments.r#type.clone(),
        };
        let server = arguments.server(watch.header());
        let explainer = Explainer::new(clock).following(server);
        let address = json::address(watch.header());
        Self {
            arguments,
            address,
            clock,
            until,
            filter,
            explainer,
            has_met: false,
            refused: 0,
            failed: 0,
            shown: 0,
        }
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
        let clock = self.clock.beginning().map(|begin| format!(", {begin}")).unwrap_or_default();
        writeln!(
            out,
            "a trace of {address}, recorded by {program}, from {begin} at {}{clock}",
            header.start
        )?;
        writeln!(out, "options {}", cenote_replay::brief::Brief(&header.options))
    }

    fn step(&mut self, view: &View<'_>, out: &mut impl Write) -> io::Result<()> {
        self.refused += u64::from(view.step.refused);
        self.failed += view.actions.iter().filter(|&action| is_failure(action)).count() as u64;
        // The explanation of a failure needs all steps before it, printed or not.
        let failures =
            if self.arguments.explain { self.explainer.explain(view) } else { Vec::new() };
        self.has_met = self.until.as_ref().is_some_and(|until| holds(until, view));
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
            return writeln!(out, "{}", json::step(view, &self.address, &self.clock));
        }
        writeln!(out, "{}", text::step(view, &self.clock))
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
        let met = match &self.until {
            Some(_) if !self.has_met => {
                tell("cenote: the condition of --until never holds");
                false
            }
            Some(_) | None => true,
        };
        let path = &self.arguments.trace;
        if self.arguments.json {
            out.flush()?;
            return Ok(none_refused(path, self.refused) && met);
        }
        let stopped = if self.has_met { ", stopped by --until" } else { "" };
        let summary = summary(watch.steps(), watch.pool().now(), self.failed);
        let shown = match self.shown {
            shown if self.arguments.quiet || shown == watch.steps() => String::new(),
            shown => format!(", {} shown", plural(shown, "step", "steps")),
        };
        writeln!(out, "{summary}{shown}{stopped}")?;
        out.flush()?;
        Ok(none_refused(path, self.refused) && met)
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
