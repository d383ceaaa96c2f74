//! `cenote replay TRACE`

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cenote_core::trace::TraceError;
use thiserror::Error;

use crate::replay::condition::{self, Condition, Moment};
use crate::replay::diff::diff;
use crate::replay::explain::Explainer;
use crate::replay::filter::Filter;
use crate::replay::history::History;
use crate::replay::picture::{self, Collector};
use crate::replay::shrink::{self, Property};
use crate::replay::watch::{View, Watch};
use crate::replay::{json, stepper, text};

/// What `cenote replay` can be told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The trace; `-` is standard input
    trace: PathBuf,
    /// Verify and say only how many steps there are
    #[arg(long, short)]
    quiet: bool,
    /// One JSON object a step
    #[arg(long)]
    json: bool,
    /// With --json: one JSON object an event instead
    #[arg(long, requires = "json")]
    events: bool,
    /// Stop after the first step at which this holds: waiting>100, event=ConnectionCheckOutFailed,
    /// input=Clear, status=paused, step=40, at=1.5
    #[arg(long, value_name = "COND")]
    until: Option<Condition>,
    /// Only steps that have to do with this connection; may be given more than once
    #[arg(long, value_name = "NUMBER")]
    connection: Vec<u64>,
    /// Only steps that have to do with this request; may be given more than once
    #[arg(long, value_name = "NUMBER")]
    waiter: Vec<u64>,
    /// Only steps of this input, event or action; may be given more than once
    #[arg(long, value_name = "NAME")]
    r#type: Vec<String>,
    /// Only steps from this time on, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    from: Option<u64>,
    /// Only steps up to this time, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    to: Option<u64>,
    /// Explain each check-out that failed: who held what, and which limit stood in the way
    #[arg(long)]
    explain: bool,
    /// Go through it by hand, forwards and backwards; commands come from standard input
    #[arg(long, conflicts_with_all = ["json", "explain", "diff", "shrink"])]
    step: bool,
    /// Say where this trace and another one part
    #[arg(long, value_name = "OTHER", conflicts_with_all = ["json", "explain", "shrink"])]
    diff: Option<PathBuf>,
    /// Take inputs away for as long as this still shows: misuse, invariant, the name of an event,
    /// or a condition as in --until
    #[arg(long, value_name = "PROPERTY", requires = "out", conflicts_with_all = ["json", "explain"])]
    shrink: Option<Property>,
    /// Where the shrunk trace goes
    #[arg(long, value_name = "FILE", requires = "shrink")]
    out: Option<PathBuf>,
    /// Write a page that shows it: one file, which any browser opens without a network
    #[arg(long, value_name = "FILE", conflicts_with_all = ["step", "diff", "shrink"])]
    html: Option<PathBuf>,
    /// Write JSON that Perfetto and chrome://tracing open
    #[arg(long, value_name = "FILE", conflicts_with_all = ["step", "diff", "shrink"])]
    perfetto: Option<PathBuf>,
    /// Make do with what can be read of a trace that is cut or damaged
    #[arg(long)]
    lenient: bool,
}

/// Why a trace could not be replayed.
#[derive(Debug, Error)]
pub enum Unplayable {
    /// A file that cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A trace that cannot be read.
    #[error("{}: {source}", path.display())]
    Trace {
        /// Which.
        path: PathBuf,
        /// Why.
        source: TraceError,
    },
    /// Nowhere to print to.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

/// Replays a trace and does with it what it was asked for.
///
/// # Errors
///
/// When a file cannot be read or written.
pub fn run(arguments: &Arguments) -> Result<bool, Unplayable> {
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = if let Some(other) = &arguments.diff {
        compare(arguments, other, &mut out)
    } else if let Some(property) = &arguments.shrink {
        shrink(arguments, property, &mut out)
    } else if arguments.step {
        step(arguments, &mut out)
    } else if arguments.html.is_some() || arguments.perfetto.is_some() {
        draw(arguments, &mut out)
    } else {
        print(arguments, &mut out)
    };
    let flushed = out.flush();
    match outcome {
        // Whoever reads has seen enough, as in `… | head`.
        Err(Unplayable::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Ok(good) => match flushed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            Ok(()) | Err(_) => Ok(good),
        },
        other => other,
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>, Unplayable> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(source) => Err(Unplayable::File { path: path.to_owned(), source }),
    }
}

/// Prints the steps, or what is wanted of them.
fn print(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let mut watch = match Watch::new(open(&arguments.trace)?) {
        Ok(watch) => watch,
        Err(error) => return ended_early(arguments, &arguments.trace, error),
    };
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

/// Prints step after step.
struct Printer<'a> {
    arguments: &'a Arguments,
    address: cenote_core::address::ServerAddress,
    filter: Filter,
    explainer: Explainer,
    has_met: bool,
    failed: u64,
    shown: u64,
}

impl<'a> Printer<'a> {
    fn new<R: Read>(arguments: &'a Arguments, watch: &Watch<R>) -> Self {
        let filter = Filter {
            connections: arguments.connection.clone(),
            waiters: arguments.waiter.clone(),
            from: arguments.from,
            to: arguments.to,
            types: arguments.r#type.clone(),
        };
        let (address, explainer) = (json::address(watch.header()), Explainer::new());
        Self { arguments, address, filter, explainer, has_met: false, failed: 0, shown: 0 }
    }

    fn start<R: Read>(&self, watch: &Watch<R>, out: &mut impl Write) -> io::Result<()> {
        let header = watch.header();
        if self.arguments.events {
            return self.events(watch.start(), header.start, out);
        }
        if self.arguments.json || self.arguments.quiet {
            return Ok(());
        }
        let address = header.address.as_deref().unwrap_or("an address that is not told");
        let program = header.program.as_deref().unwrap_or("an unknown program");
        let begin = if header.is_new { "a new pool" } else { "a state" };
        writeln!(
            out,
            "a trace of {address}, recorded by {program}, from {begin} at {}",
            header.start
        )?;
        writeln!(out, "options {}", crate::lockstep::Brief(&header.options))
    }

    fn step(&mut self, view: &View<'_>, out: &mut impl Write) -> io::Result<()> {
        let failures = self.explainer.explain(view);
        self.failed += failures.len() as u64;
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
        actions: &[cenote_core::pool::Action<cenote_core::trace::Traced>],
        at: cenote_core::pool::Instant,
        out: &mut impl Write,
    ) -> io::Result<()> {
        json::events(actions, at, &self.address).try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Says what there was. A condition that never holds is what was asked for and is not so.
    fn end<R: Read>(&self, watch: &Watch<R>, out: &mut impl Write) -> io::Result<bool> {
        let met = match &self.arguments.until {
            Some(_) if !self.has_met => {
                eprintln!("cenote: the condition of --until never holds");
                false
            }
            Some(_) | None => true,
        };
        if self.arguments.json {
            return Ok(met);
        }
        let (steps, until) = (watch.steps(), watch.pool().now());
        let stopped = if self.has_met { ", stopped by --until" } else { "" };
        writeln!(
            out,
            "{steps} steps until {until}, {} check-outs failed; all that was recorded agrees{stopped}",
            self.failed
        )?;
        Ok(met)
    }
}

fn holds(condition: &Condition, view: &View<'_>) -> bool {
    condition.holds(&Moment {
        step: view.step.number,
        at: view.pool.now(),
        input: &view.step.input,
        actions: view.actions,
        snapshot: &view.pool.snapshot(),
    })
}

/// Good enough with `--lenient`; a difference is not good, and anything else is unreadable.
fn ended_early(arguments: &Arguments, path: &Path, error: TraceError) -> Result<bool, Unplayable> {
    if error.is_difference() || arguments.lenient {
        eprintln!("cenote: {}: {error}", path.display());
        return Ok(!error.is_difference());
    }
    Err(Unplayable::Trace { path: path.to_owned(), source: error })
}

/// The whole trace in memory, as far as it may be used.
fn load(arguments: &Arguments) -> Result<Option<History>, Unplayable> {
    let path = &arguments.trace;
    let (history, problem) = History::read(open(path)?)
        .map_err(|source| Unplayable::Trace { path: path.clone(), source })?;
    let good = match problem {
        Some(error) => ended_early(arguments, path, error)?,
        None => true,
    };
    Ok(good.then_some(history))
}

/// Draws what there is, and says where it is.
fn draw(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let path = &arguments.trace;
    let unplayable = |source| Unplayable::Trace { path: path.clone(), source };
    let mut watch = Watch::new(open(path)?).map_err(unplayable)?;
    let mut collector = Collector::new(watch.pool());
    let outcome = watch.each(|view| {
        collector.add(view);
        let met = arguments.until.as_ref().is_some_and(|until| holds(until, view));
        if met { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let good = match outcome {
        Ok(_) => true,
        Err(error) if !arguments.lenient && !error.is_difference() => {
            return Err(unplayable(error));
        }
        Err(error) => ended_early(arguments, path, error)?,
    };
    let (picture, header) = (collector.finish(), watch.header());
    let steps = picture.steps;
    if let Some(path) = &arguments.html {
        create(path, |file| picture::html(&picture, header, file))?;
        writeln!(out, "{steps} steps drawn in {}", path.display())?;
    }
    if let Some(path) = &arguments.perfetto {
        create(path, |file| picture::perfetto(&picture, header, file))?;
        writeln!(out, "{steps} steps for https://ui.perfetto.dev in {}", path.display())?;
    }
    Ok(good)
}

fn create(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Unplayable> {
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    written.map_err(|source| Unplayable::File { path: path.to_owned(), source })
}

fn step(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let Some(history) = load(arguments)? else { return Ok(false) };
    let commands = io::stdin();
    let prompt = commands.is_terminal() && io::stdout().is_terminal();
    stepper::run(&history, commands.lock(), out, prompt)?;
    Ok(true)
}

fn compare(arguments: &Arguments, other: &Path, out: &mut impl Write) -> Result<bool, Unplayable> {
    let paths = [arguments.trace.as_path(), other];
    let difference = diff(open(paths[0])?, open(paths[1])?)
        .map_err(|(which, source)| Unplayable::Trace { path: paths[which].to_owned(), source })?;
    writeln!(out, "{} steps are the same", difference.same)?;
    difference.lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(difference.lines.is_empty())
}

fn shrink(
    arguments: &Arguments,
    property: &Property,
    out: &mut impl Write,
) -> Result<bool, Unplayable> {
    let Some(history) = load(arguments)? else { return Ok(false) };
    let Some(shrunk) = shrink::shrink(&history, property) else {
        eprintln!("cenote: {}: the trace does not show {property}", arguments.trace.display());
        return Ok(false);
    };
    let path = arguments.out.clone().unwrap_or_default();
    let written = File::create(&path).and_then(|file| shrunk.write(file));
    written.map_err(|source| Unplayable::File { path: path.clone(), source })?;
    let (before, after) = (history.inputs.len(), shrunk.inputs.len());
    writeln!(out, "{before} steps shrunk to {after} in {}", path.display())?;
    writeln!(out, "{}", shrink::summary(&shrunk))?;
    Ok(true)
}

fn seconds(text: &str) -> Result<u64, String> {
    condition::nanos(text).ok_or_else(|| format!("`{text}` is no number of seconds"))
}
