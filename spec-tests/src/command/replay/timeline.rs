//! What the traces of a client tell together, in the order in which it happened.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use cenote_core::pool::{Action, Event, Input, Instant};
use cenote_core::trace::StageRecord;
use cenote_replay::clock::Clock;
use cenote_replay::step_reader::View;
use cenote_replay::stepper::Steps;
use cenote_replay::text::{self, counted};
use cenote_replay::topology::{History, shifted};

use super::chosen::Chosen;
use super::played::Played;
use super::print::is_failure;
use super::sources::name;
use crate::command::Failure;

/// What happened. What follows a step of the client comes after it, and otherwise the time decides.
#[derive(Default)]
pub(super) struct Timeline {
    /// The name of each trace, and what it is.
    traces: Vec<(String, String)>,
    moments: Vec<Moment>,
    /// Which of them is a change of the topology, by its number among the client's steps.
    changes: BTreeMap<u64, usize>,
    topology: Option<Arc<History>>,
    /// The address of each pool, by the place of its trace.
    pools: BTreeMap<usize, String>,
    /// In stepping: how many have happened.
    at: usize,
    clock: Option<Clock>,
}

struct Moment {
    at: Instant,
    /// The place of the trace, so that the topology comes first.
    trace: usize,
    told: String,
    /// The counts of the pool, if all of its steps are told.
    state: String,
}

impl Timeline {
    pub(super) fn add_topology(&mut self, path: &Path, history: &Arc<History>, agrees: bool) {
        let steps = counted(history.steps, "step", "steps");
        let changes = counted(history.changes.len() as u64, "change", "changes");
        self.line(path, &format!("{steps} until {}, {changes}", history.end), agrees);
        for change in &history.changes {
            self.changes.insert(change.client_step, self.moments.len());
            self.push(change.at, 0, change.to_string(), String::new());
        }
        for (at, selection) in &history.selections {
            self.push(*at, 0, selection.to_string(), String::new());
        }
        self.topology = Some(Arc::clone(history));
    }

    /// What was done to a pool, or each of its steps. Returns the clock of the trace, and whether all is good.
    pub(super) fn add_pool(
        &mut self,
        chosen: &Chosen,
        tells_all: bool,
    ) -> Result<(Clock, bool), Failure> {
        let mut trace = Played::open(chosen)?;
        let clock = trace.part.clock;
        let header = trace.reader.header().clone();
        let origin = self.topology.as_ref().map(|history| history.header.origin);
        let shift = origin.map_or(0, |origin| header.origin.saturating_sub(origin));
        let address = header.address.as_deref().unwrap_or("an unknown address");
        let (place, mut failed, mut last) = (self.traces.len() + 1, 0, Instant::ORIGIN);
        let good = trace.each(|view, _| {
            failed += view.actions.iter().filter(|it| is_failure(it)).count() as u64;
            self.add_failures(address, &view.step.stages);
            let told = if tells_all { Some(text::outcome(view)) } else { happened(view) };
            if let Some(told) = told {
                let cause = self.change(view.step.follows).map(|change| change.at);
                last = shifted(view.pool.now(), shift).max(last).max(cause.unwrap_or(last));
                let state = tells_all.then(|| view.pool.snapshot().to_string());
                let told = format!("  pool of {address}: {told}");
                self.push(last, place, told, state.unwrap_or_default());
            }
            Ok(())
        })?;
        self.add_failures(address, trace.reader.later_stages());
        self.pools.insert(place, address.to_owned());
        let steps = counted(trace.reader.steps(), "step", "steps");
        let check_outs = counted(failed, "check-out", "check-outs");
        let told = format!("{steps} until {}, {check_outs} failed", trace.reader.pool().now());
        self.line(&chosen.trace, &told, good);
        Ok((clock, trace.end() && good))
    }

    fn line(&mut self, path: &Path, told: &str, agrees: bool) {
        let agrees = if agrees { "; the replay agrees with the recording" } else { "" };
        self.traces.push((name(path), format!("{told}{agrees}")));
    }

    fn push(&mut self, at: Instant, trace: usize, told: String, state: String) {
        self.moments.push(Moment { at, trace, told, state });
    }

    /// Says of changes of the topology by which connection they came to be known.
    fn add_failures(&mut self, address: &str, stages: &[StageRecord]) {
        for StageRecord { connection, failed, .. } in stages {
            if let Some(change) = self.change(*failed) {
                change.told += &format!("; by c{connection} of the pool of {address}");
            }
        }
    }

    /// What the topology's trace has of a step of the client, if that changed anything.
    fn change(&mut self, step: Option<u64>) -> Option<&mut Moment> {
        self.moments.get_mut(*self.changes.get(&step?)?)
    }

    /// In order, from now on; nothing is added any more.
    pub(super) fn order(&mut self, clock: Option<Clock>) {
        self.moments.sort_by_key(|moment| (moment.at, moment.trace));
        self.changes.clear();
        self.clock = clock;
    }

    /// A line for each trace, and then what happened.
    pub(super) fn print(&self, is_brief: bool, out: &mut impl Write) -> io::Result<()> {
        let width = self.traces.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, told) in &self.traces {
            writeln!(out, "{name:<width$}  {told}")?;
        }
        if is_brief || self.clock.is_none() {
            return Ok(());
        }
        if !self.moments.is_empty() {
            writeln!(out)?;
        }
        self.moments.iter().try_for_each(|moment| writeln!(out, "{}", self.told(moment)))
    }

    fn told(&self, Moment { at, told, .. }: &Moment) -> String {
        let at = self.clock.map(|clock| clock.short(*at)).unwrap_or_default();
        format!("{at}  {told}")
    }

    /// What each server is and what its pool has, after what has happened.
    fn state(&self, out: &mut impl Write) -> io::Result<()> {
        let past = &self.moments[..self.at];
        if let (Some(topology), Some(now)) = (&self.topology, past.last()) {
            // What is known at the end of the trace is known still.
            let is_now = |from, to| from <= now.at && (now.at < to || to == topology.end);
            let spans = topology.spans();
            let spans = spans.iter().filter(|span| is_now(span.from, span.to));
            for span in spans {
                writeln!(out, "{}: {}", span.server, span.text)?;
            }
        }
        for (trace, address) in &self.pools {
            let last = past.iter().rev().find(|moment| moment.trace == *trace);
            let state = last.map_or("nothing has happened", |moment| &moment.state);
            writeln!(out, "pool of {address}: {state}")?;
        }
        Ok(())
    }

    fn go(&mut self, to: usize, out: &mut impl Write) -> io::Result<()> {
        self.at = to.min(self.moments.len());
        match self.at.checked_sub(1) {
            Some(last) => writeln!(out, "{:>7}  {}", self.at, self.told(&self.moments[last])),
            None => writeln!(out, "      0  the beginning"),
        }
    }
}

const HELP: &str = "\
next [N]      take N steps (n; an empty line takes one)
back [N]      go N steps back (b)
go STEP       go to a step (g)
find TEXT     go to the next step with this text (f)
state         what each server is, and the counts of its pool (s)
help          this (h)
quit          quit (q)";

impl Steps for Timeline {
    fn at(&self) -> usize {
        self.at
    }

    fn count(&self) -> usize {
        self.moments.len()
    }

    fn answer(&mut self, command: &str, argument: &str, out: &mut impl Write) -> io::Result<()> {
        let count = if argument.is_empty() { Ok(1) } else { argument.parse::<usize>() };
        match (command, count) {
            ("next" | "n" | "", Ok(count)) => {
                let to = self.at.saturating_add(count);
                while self.at < to.min(self.moments.len()) {
                    self.go(self.at + 1, out)?;
                }
                if self.at < to { writeln!(out, "the end") } else { Ok(()) }
            }
            ("back" | "b", Ok(count)) => self.go(self.at.saturating_sub(count), out),
            ("go" | "g", Ok(step)) if !argument.is_empty() => self.go(step, out),
            ("find" | "f", _) => {
                let rest = &mut self.moments[self.at..].iter();
                match rest.position(|moment| moment.told.contains(argument)) {
                    Some(ahead) => self.go(self.at + ahead + 1, out),
                    None => writeln!(out, "no step from here on has `{argument}`"),
                }
            }
            ("state" | "s", _) => self.state(out),
            ("help" | "h" | "?", _) => writeln!(out, "{HELP}"),
            ("next" | "n" | "back" | "b" | "go" | "g", _) => {
                writeln!(out, "`{argument}` is not a number of steps")
            }
            _ => writeln!(out, "`{command}` is not a command; `help` lists them"),
        }
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
