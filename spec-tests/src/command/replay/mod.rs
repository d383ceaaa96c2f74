//! `cenote replay TRACE`

mod arguments;
mod draw;
pub(super) mod draw_command;
mod explain;
pub(super) mod explain_command;
mod played;
pub(super) mod predict_command;
mod print;
mod several;
mod sources;
mod timeline;
mod topology;
mod what_if;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;
use std::sync::Arc;

use cenote_core::trace::TraceError;
use cenote_replay::clock::Clock;
use cenote_replay::diff::{Difference, diff};
use cenote_replay::history::History;
use cenote_replay::shrink::{self, Property};
use cenote_replay::stepper;

use super::Failure;
use super::input::{Source, at, open};
use super::output::{has_seen_enough, shown, tell};

pub(super) use self::arguments::Arguments;
use self::draw::draw;
pub(super) use self::draw::page;
use self::explain::explain;
use self::played::none_refused;
use self::print::{print, verify};
use self::sources::Sources;

/// `cenote replay`: also, for one release, what other commands do now.
pub(super) fn replay(arguments: Arguments) -> Result<bool, Failure> {
    let moved = arguments.moved_to();
    let good = run(arguments)?;
    if let Some(command) = moved.filter(|_| good) {
        tell(format_args!("cenote: that is `{command}` now; the next release has it there alone"));
    }
    Ok(good)
}

/// Replays a trace as the arguments say.
pub(super) fn run(arguments: Arguments) -> Result<bool, Failure> {
    arguments.check_files()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = run_on(arguments, &mut out);
    without_closed_pipe(outcome, &mut out)
}

/// A reader that has seen enough is no failure.
fn without_closed_pipe(
    outcome: Result<bool, Failure>,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let outcome = outcome.and_then(|good| {
        out.flush()?;
        Ok(good)
    });
    // Errors of files have their names: what has none is of standard output.
    let Err(failure) = outcome else { return outcome };
    match failure.downcast::<io::Error>() {
        Ok(error) if has_seen_enough(&error) => Ok(true),
        Ok(error) => Err(format!("cannot print: {error}").into()),
        Err(failure) => {
            let _ = out.flush();
            Err(failure)
        }
    }
}

/// On the trace of a topology, on the traces of several pools, or on that of one pool.
fn run_on(mut arguments: Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let sources = Sources::find(&arguments.traces)?;
    let is_whole = arguments.diff.as_ref().is_some_and(|other| other.is_dir());
    let mut good = true;
    if let Some(topology) = &sources.topology {
        arguments.trace.clone_from(topology);
        if sources.pools.is_empty() && !is_whole {
            return topology::run(&arguments, out);
        }
        let (history, agrees) = topology::load(&arguments)?;
        arguments.topology = Some(Arc::new(history));
        good = agrees;
    }
    if let ([pool], false) = (sources.pools.as_slice(), is_whole) {
        let arguments = arguments.of_pool(pool);
        return Ok(of_pool(&arguments, out)? && good);
    }
    Ok(several::run(&arguments, &sources, good, out)? && good)
}

fn of_pool(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    if arguments.what_if.is_some() || arguments.advise.is_some() {
        what_if::run(arguments, out)
    } else if let Some(other) = &arguments.diff {
        compare(arguments, other, diff, out)
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

/// Good enough with `--lenient`; a difference is not good, and anything else is unreadable.
fn ended_early(arguments: &Arguments, path: &Path, error: TraceError) -> Result<bool, Failure> {
    if error.is_difference() || arguments.lenient {
        tell(format_args!("cenote: {}: {error}", path.display()));
        return Ok(!error.is_difference());
    }
    Err(at(path)(error))
}

/// A complete trace, as far as it is usable, and whether it is as it should be.
fn read<T>(
    arguments: &Arguments,
    read: impl FnOnce(Source) -> Result<(T, Option<TraceError>), TraceError>,
) -> Result<(T, bool), Failure> {
    let path = &arguments.trace;
    let (whole, problem) = read(open(path)?).map_err(at(path))?;
    let good = problem.map_or(Ok(true), |error| ended_early(arguments, path, error))?;
    Ok((whole, good))
}

fn step(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let (history, good) = read(arguments, History::read)?;
    if !good {
        return Ok(false);
    }
    let commands = io::stdin();
    let prompt = commands.is_terminal() && io::stdout().is_terminal();
    stepper::run(&history, arguments.utc_offset, commands.lock(), &mut *out, prompt)?;
    out.flush()?;
    Ok(none_refused(&arguments.trace, history.refused()))
}

/// Prints how many steps the trace has in common with another, and what comes then.
fn compare(
    arguments: &Arguments,
    other: &Path,
    diff: impl FnOnce(Source, Source) -> Result<Difference, (usize, TraceError)>,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let paths = [arguments.trace.as_path(), other];
    let difference = match diff(open(paths[0])?, open(paths[1])?) {
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
) -> Result<bool, Failure> {
    let (history, good) = read(arguments, History::read)?;
    if !good {
        return Ok(false);
    }
    let clock = Clock::new(&history.header, arguments.utc_offset);
    let property = &property.clone().resolve(&clock).map_err(at(&arguments.trace))?;
    let Some(shrunk) = shrink::shrink(&history, property) else {
        let trace = arguments.trace.display();
        tell(format_args!("cenote: {trace}: the trace does not show {property}"));
        return Ok(false);
    };
    let path = arguments.out.clone().unwrap_or_default();
    File::create(&path).and_then(|file| shrunk.write(file)).map_err(at(&path))?;
    let (before, after) = (history.inputs.len(), shrunk.inputs.len());
    writeln!(out, "{before} steps shrunk to {after} in {}", shown(&path))?;
    writeln!(out, "{}", shrink::summary(&shrunk))?;
    Ok(true)
}
