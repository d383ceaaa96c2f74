//! `cenote replay TRACE`, and the other commands that replay traces.

mod arguments;
mod chosen;
mod draw;
pub(super) mod draw_command;
pub(super) mod explain;
mod played;
pub(super) mod predict;
mod predict_json;
mod predict_text;
mod print;
mod several;
mod sources;
mod timeline;
mod topology;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::Path;

use cenote_core::trace::TraceError;
use cenote_replay::diff::{Difference, diff};
use cenote_replay::history::History;
use cenote_replay::shrink::{self, Property};
use cenote_replay::stepper::{Stepper, Steps, converse};

use super::Failure;
use super::input::{Source, at, open};
use super::output::{has_seen_enough, shown, tell};

pub(super) use self::arguments::Arguments;
use self::chosen::Chosen;
pub(super) use self::draw::page;
use self::played::none_refused;
use self::print::{print, verify};
use self::sources::Sources;

/// Replays traces as the arguments say.
pub(super) fn run(mut arguments: Arguments) -> Result<bool, Failure> {
    arguments.check_files()?;
    printed(|out| run_on(&mut arguments, out))
}

/// Prints to standard output. A reader that has seen enough is no failure.
fn printed(
    print: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = print(&mut out).and_then(|good| {
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
fn run_on(arguments: &mut Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let sources = Sources::find(&arguments.traces)?;
    arguments.check(&sources)?;
    let is_whole = arguments.diff.as_ref().is_some_and(|other| other.is_dir());
    if let (Some(topology), true, false) = (&sources.topology, sources.pools.is_empty(), is_whole) {
        arguments.chosen.trace.clone_from(topology);
        return topology::run(arguments, out);
    }
    let good = arguments.chosen.load(&sources)?;
    if let ([pool], false) = (sources.pools.as_slice(), is_whole) {
        arguments.chosen.trace.clone_from(pool);
        return Ok(of_pool(arguments, out)? && good);
    }
    Ok(several::run(arguments, &sources, good, out)? && good)
}

fn of_pool(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    if let Some(other) = &arguments.diff {
        compare(&arguments.chosen, other, diff, out)
    } else if let Some(property) = &arguments.shrink {
        shrink(arguments, property, out)
    } else if arguments.step {
        step(&arguments.chosen, out)
    } else if arguments.quiet && arguments.chosen.until.is_none() {
        verify(arguments, out)
    } else {
        print(arguments, out)
    }
}

fn step(chosen: &Chosen, out: &mut impl Write) -> Result<bool, Failure> {
    let (history, good) = chosen.read(History::read)?;
    if !good {
        return Ok(false);
    }
    let clock = chosen.clock(history.header.origin, history.header.start);
    by_hand(&mut Stepper::new(&history, clock), out)?;
    Ok(none_refused(&chosen.trace, history.refused()))
}

/// Goes through steps as standard input says.
fn by_hand(steps: &mut impl Steps, out: &mut impl Write) -> io::Result<()> {
    let commands = io::stdin();
    let prompt = commands.is_terminal() && io::stdout().is_terminal();
    converse(steps, commands.lock(), out, prompt)
}

/// Prints how many steps the trace has in common with another, and what comes then.
fn compare(
    chosen: &Chosen,
    other: &Path,
    diff: impl FnOnce(Source, Source) -> Result<Difference, (usize, TraceError)>,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let paths = [chosen.trace.as_path(), other];
    let difference = match diff(open(paths[0])?, open(paths[1])?) {
        Ok(difference) => difference,
        Err((which, error)) => return chosen.ended_early(paths[which], error),
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
    let chosen = &arguments.chosen;
    let (history, good) = chosen.read(History::read)?;
    if !good {
        return Ok(false);
    }
    let clock = chosen.clock(history.header.origin, history.header.start);
    let property = &property.clone().resolve(&clock).map_err(at(&chosen.trace))?;
    let Some(shrunk) = shrink::shrink(&history, property) else {
        let trace = chosen.trace.display();
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
