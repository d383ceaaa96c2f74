//! Draws traces.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::print::{holds, none_refused};
use super::{Arguments, Unplayable, ended_early, open, part};
use crate::command::output::shown;
use cenote_core::trace::TraceHeader;
use cenote_simulation::replay::clock::{Clock, UtcOffset};
use cenote_simulation::replay::picture::{self, Collector, Fault, Picture};
use cenote_simulation::replay::step_reader::StepReader;

/// What one can do with a picture.
const KEYS: &str =
    "open it in a browser: `n` goes to the next failure, `e` explains, `?` lists the keys";

/// Draws the trace, and prints the path of the result.
pub(super) fn draw(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let (drawn, mut good) = read(arguments, &arguments.trace)?;
    let other = match &arguments.beside {
        Some(path) => {
            let (other, is_good) = read(arguments, path)?;
            good &= is_good;
            Some(other)
        }
        None => None,
    };
    let steps = drawn.picture.steps;
    if let Some(path) = &arguments.html {
        match &other {
            Some(other) => {
                create(path, |file| picture::beside([drawn.named(), other.named()], file))?;
                let beside = other.picture.steps;
                writeln!(out, "{steps} steps beside {beside} drawn in {}", shown(path))?;
                writeln!(out, "{KEYS}")?;
            }
            None => {
                create(path, |file| picture::html(&drawn.picture, &drawn.header, file))?;
                writeln!(out, "{steps} steps drawn in {}", shown(path))?;
                writeln!(out, "{KEYS}")?;
            }
        }
    }
    if let Some(path) = &arguments.perfetto {
        let is_packed = path.extension().is_some_and(|extension| extension == "gz");
        create(path, |file| {
            let Drawn { picture, header, .. } = &drawn;
            if is_packed {
                picture::packed_perfetto(picture, header, file)
            } else {
                picture::perfetto(picture, header, file)
            }
        })?;
        writeln!(out, "{steps} steps for https://ui.perfetto.dev in {}", shown(path))?;
    }
    Ok(good)
}

#[cfg(feature = "simulation")]
/// Draws the trace beside another one with this name, which is in memory.
pub(super) fn draw_beside(
    arguments: &Arguments,
    other: &[u8],
    name: &str,
    html: &Path,
) -> Result<(), Unplayable> {
    let (drawn, _) = read(arguments, &arguments.trace)?;
    let other = read_from(arguments, other, Path::new(name))?.0;
    create(html, |file| picture::beside([drawn.named(), other.named()], file))
}

/// A trace that was read.
struct Drawn {
    path: PathBuf,
    picture: Picture,
    header: TraceHeader,
}

impl Drawn {
    fn named(&self) -> (String, &Picture, &TraceHeader) {
        (shown(&self.path), &self.picture, &self.header)
    }
}

/// Reads a trace as far as the arguments say; returns also whether it is as it should be.
fn read(arguments: &Arguments, path: &Path) -> Result<(Drawn, bool), Unplayable> {
    read_from(arguments, open(path)?, path)
}

fn read_from(
    arguments: &Arguments,
    source: impl Read,
    path: &Path,
) -> Result<(Drawn, bool), Unplayable> {
    let unplayable = |source| Unplayable::Trace { path: path.to_owned(), source };
    let mut watch = StepReader::new(source).map_err(unplayable)?;
    let part = part(arguments, watch.header())?;
    let mut collector = Collector::new(watch.pool());
    let mut refused = 0;
    let outcome = watch.each(|view| {
        collector.add(view);
        refused += u64::from(view.step.refused);
        let met = part.until.as_ref().is_some_and(|until| holds(until, view));
        if met { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let good = match outcome {
        Ok(_) => true,
        Err(error) if !arguments.lenient && !error.is_difference() => {
            return Err(unplayable(error));
        }
        Err(error) => ended_early(arguments, path, error)?,
    };
    let good = none_refused(path, refused) && good;
    let picture = finish(collector, &watch, arguments.utc_offset);
    Ok((Drawn { path: path.to_owned(), picture, header: watch.header().clone() }, good))
}

fn finish<R: Read>(collector: Collector, watch: &StepReader<R>, offset: UtcOffset) -> Picture {
    let header = watch.header();
    collector.finish(header, watch.pool().options(), Clock::new(header, offset))
}

/// Draws a complete trace as a page, and returns the number of steps.
///
/// # Errors
///
/// If a file cannot be read or written, or the replay differs from the trace.
pub(in crate::command) fn page(
    trace: &Path,
    html: &Path,
    faults: Vec<Fault>,
) -> Result<u64, Unplayable> {
    let unplayable = |source| Unplayable::Trace { path: trace.to_owned(), source };
    let mut watch = StepReader::new(open(trace)?).map_err(unplayable)?;
    let mut collector = Collector::new(watch.pool());
    let each = watch.each(|view| {
        collector.add(view);
        ControlFlow::Continue(())
    });
    each.map_err(unplayable)?;
    let mut picture = finish(collector, &watch, UtcOffset::default());
    picture.faults = faults;
    create(html, |file| picture::html(&picture, watch.header(), file))?;
    Ok(picture.steps)
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
