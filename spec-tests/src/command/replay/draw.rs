//! Draws traces.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use super::print::holds;
use super::{Arguments, Unplayable, ended_early, open, part};
use crate::command::output::shown;
use cenote_simulation::replay::picture::{self, Collector};
use cenote_simulation::replay::step_reader::StepReader;

/// Draws the trace, and prints the path of the result.
pub(super) fn draw(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let path = &arguments.trace;
    let unplayable = |source| Unplayable::Trace { path: path.clone(), source };
    let mut watch = StepReader::new(open(path)?).map_err(unplayable)?;
    let part = part(arguments, watch.header())?;
    let mut collector = Collector::new(watch.pool());
    let outcome = watch.each(|view| {
        collector.add(view);
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
    let (picture, header) = (collector.finish(), watch.header());
    let steps = picture.steps;
    if let Some(path) = &arguments.html {
        create(path, |file| picture::html(&picture, header, file))?;
        writeln!(out, "{steps} steps drawn in {}", shown(path))?;
    }
    if let Some(path) = &arguments.perfetto {
        create(path, |file| picture::perfetto(&picture, header, file))?;
        writeln!(out, "{steps} steps for https://ui.perfetto.dev in {}", shown(path))?;
    }
    Ok(good)
}

/// Draws a complete trace as a page, and returns the number of steps.
///
/// # Errors
///
/// If a file cannot be read or written, or the replay differs from the trace.
pub(in crate::command) fn page(trace: &Path, html: &Path) -> Result<u64, Unplayable> {
    let unplayable = |source| Unplayable::Trace { path: trace.to_owned(), source };
    let mut watch = StepReader::new(open(trace)?).map_err(unplayable)?;
    let mut collector = Collector::new(watch.pool());
    let each = watch.each(|view| {
        collector.add(view);
        ControlFlow::Continue(())
    });
    each.map_err(unplayable)?;
    let (picture, header) = (collector.finish(), watch.header());
    create(html, |file| picture::html(&picture, header, file))?;
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
