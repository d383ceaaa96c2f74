//! `cenote replay TRACE`

mod arguments;
mod draw;
mod explain;
mod print;
mod several;
mod sources;
mod topology;
mod what_if;

use std::fs::File;
use std::io::{self, BufWriter, Cursor, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cenote_core::trace::{TraceError, TraceHeader};
use thiserror::Error;

use super::output::{SameFile, has_seen_enough, shown, tell};
use cenote_replay::clock::{Clock, NoClock};
use cenote_replay::diff::diff;
use cenote_replay::history::History;
use cenote_replay::shrink::{self, Property};
use cenote_replay::stepper;
use cenote_replay::what_if::InvalidChange;

pub use arguments::Arguments;
use arguments::Part;
use draw::draw;
pub(super) use draw::page;
use explain::explain;
use print::{none_refused, print, verify};
use sources::Sources;

/// Why a trace could not be replayed.
#[derive(Debug, Error)]
pub enum Unplayable {
    /// A file that cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A trace that cannot be read.
    #[error("{}: {source}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The error.
        source: TraceError,
    },
    /// An output would overwrite the input or another output.
    #[error(transparent)]
    Files(#[from] SameFile),
    /// A wall-clock time for a trace without one.
    #[error("{}: {source}", path.display())]
    Time {
        /// The file.
        path: PathBuf,
        /// The error.
        source: NoClock,
    },
    /// Options that no pool accepts.
    #[error(transparent)]
    Options(#[from] InvalidChange),
    /// A picture of several predictions.
    #[error(
        "--html shows one prediction beside the trace, not {0}: give each option of --what-if one value"
    )]
    Combinations(usize),
    /// A trace from which nothing can be predicted.
    #[error("{}: the trace has no requests, so nothing can be predicted", path.display())]
    NoRequests {
        /// The file.
        path: PathBuf,
    },
    /// Standard input among several traces.
    #[error("- is one trace: name files, or a folder")]
    StandardInput,
    /// Several traces of topologies, which belong to several clients or times.
    #[error(
        "{} and {} are both traces of a topology: name one of them, with the pools of its client",
        first.display(), second.display()
    )]
    Topologies {
        /// The first.
        first: PathBuf,
        /// The second.
        second: PathBuf,
    },
    /// A folder without traces.
    #[error("{}: a folder without a trace: files whose names end in .bson", path.display())]
    NoTraces {
        /// The folder.
        path: PathBuf,
    },
    /// An option that means nothing for the trace of a topology.
    #[error("{option} does not apply to the trace of a topology: add the trace of a pool")]
    NotOfTopology {
        /// The option.
        option: String,
    },
    /// An option that means nothing for several pools.
    #[error("{option} is for one pool: name its trace, and that of the topology")]
    NotOfSeveral {
        /// The option.
        option: String,
    },
    /// The output cannot be written.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

/// Replays a trace as the arguments say.
///
/// # Errors
///
/// If a file cannot be read or written.
pub fn run(arguments: Arguments) -> Result<bool, Unplayable> {
    arguments.check_files()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = run_on(arguments, &mut out);
    ended(outcome, &mut out)
}

/// On the trace of a topology, on the traces of several pools, or on that of one pool.
fn run_on(mut arguments: Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let mut sources = Sources::find(&arguments.traces)?;
    arguments.beginning = std::mem::take(&mut sources.beginning);
    let mut good = true;
    if let Some(topology) = &sources.topology {
        arguments.trace.clone_from(topology);
        if sources.pools.is_empty() {
            return topology::run(&arguments, out);
        }
        let (history, agrees) = topology::load(&arguments)?;
        arguments.topology = Some(Arc::new(history));
        good = agrees;
    }
    if let [pool] = sources.pools.as_slice() {
        let arguments = arguments.of_pool(pool);
        return Ok(of_pool(&arguments, out)? && good);
    }
    Ok(several::run(&arguments, &sources, good, out)? && good)
}

fn of_pool(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    if arguments.what_if.is_some() || arguments.advise.is_some() {
        return what_if::run(arguments, out);
    }
    if let Some(other) = &arguments.diff {
        compare(arguments, other, out)
    } else if let Some(property) = &arguments.shrink {
        shrink(arguments, property, out)
    } else if arguments.step {
        step(arguments, out)
    } else if arguments.html.is_some() || arguments.perfetto.is_some() {
        draw(arguments, out)
    } else if arguments.explains() {
        explain(arguments, out)
    } else if arguments.quiet && arguments.until.is_none() {
        verify(arguments, out)
    } else {
        print(arguments, out)
    }
}

/// The outcome when everything is printed; a reader that has seen enough is no failure.
fn ended(outcome: Result<bool, Unplayable>, out: &mut impl Write) -> Result<bool, Unplayable> {
    let flushed = out.flush();
    match outcome {
        Err(Unplayable::Print(error)) if has_seen_enough(&error) => Ok(true),
        Ok(good) => match flushed {
            Err(error) if !has_seen_enough(&error) => Err(error.into()),
            Ok(()) | Err(_) => Ok(good),
        },
        other => other,
    }
}

/// `beginning` is what was read of standard input before.
fn open(path: &Path, beginning: &[u8]) -> Result<Box<dyn Read>, Unplayable> {
    if path == Path::new("-") {
        return Ok(Box::new(Cursor::new(beginning.to_vec()).chain(io::stdin())));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(source) => Err(Unplayable::File { path: path.to_owned(), source }),
    }
}

/// The part of the trace that was asked for.
fn part(arguments: &Arguments, header: &TraceHeader) -> Result<Part, Unplayable> {
    let path = || arguments.trace.clone();
    arguments.part(header).map_err(|source| Unplayable::Time { path: path(), source })
}

/// Good enough with `--lenient`; a difference is not good, and anything else is unreadable.
fn ended_early(arguments: &Arguments, path: &Path, error: TraceError) -> Result<bool, Unplayable> {
    if error.is_difference() || arguments.lenient {
        tell(format_args!("cenote: {}: {error}", path.display()));
        return Ok(!error.is_difference());
    }
    Err(Unplayable::Trace { path: path.to_owned(), source: error })
}

/// The complete trace in memory, as far as it is usable.
fn load(arguments: &Arguments) -> Result<Option<History>, Unplayable> {
    let path = &arguments.trace;
    let (history, problem) = History::read(open(path, &arguments.beginning)?)
        .map_err(|source| Unplayable::Trace { path: path.clone(), source })?;
    let good = match problem {
        Some(error) => ended_early(arguments, path, error)?,
        None => true,
    };
    Ok(good.then_some(history))
}

fn step(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let Some(history) = load(arguments)? else { return Ok(false) };
    let commands = io::stdin();
    let prompt = commands.is_terminal() && io::stdout().is_terminal();
    stepper::run(&history, arguments.utc_offset, commands.lock(), &mut *out, prompt)?;
    out.flush()?;
    Ok(none_refused(&arguments.trace, history.refused()))
}

fn compare(arguments: &Arguments, other: &Path, out: &mut impl Write) -> Result<bool, Unplayable> {
    let paths = [arguments.trace.as_path(), other];
    let first = open(paths[0], &arguments.beginning)?;
    let difference = match diff(first, open(paths[1], &[])?) {
        Ok(difference) => difference,
        Err((which, error)) => return ended_early(arguments, paths[which], error),
    };
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
    let clock = Clock::new(&history.header, arguments.utc_offset);
    let property = &property.clone().resolve(&clock).map_err(|source| {
        let path = arguments.trace.clone();
        Unplayable::Time { path, source }
    })?;
    let Some(shrunk) = shrink::shrink(&history, property) else {
        let trace = arguments.trace.display();
        tell(format_args!("cenote: {trace}: the trace does not show {property}"));
        return Ok(false);
    };
    let path = arguments.out.clone().unwrap_or_default();
    let written = File::create(&path).and_then(|file| shrunk.write(file));
    written.map_err(|source| Unplayable::File { path: path.clone(), source })?;
    let (before, after) = (history.inputs.len(), shrunk.inputs.len());
    writeln!(out, "{before} steps shrunk to {after} in {}", shown(&path))?;
    writeln!(out, "{}", shrink::summary(&shrunk))?;
    Ok(true)
}
