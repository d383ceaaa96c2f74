//! Draws traces.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::print::{holds, none_refused};
use super::{Arguments, Unplayable, ended_early, open, part, topology};
use crate::command::output::shown;
use cenote_replay::clock::{Clock, UtcOffset};
use cenote_replay::picture::{self, Collector, Fault, Picture, Title};
use cenote_replay::step_reader::StepReader;
use cenote_replay::topology::{History, ServerHistory};

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
                create(path, |file| picture::beside(&[drawn.named(), other.named()], file))?;
                let beside = other.picture.steps;
                tell_drawn(&format!("{steps} steps beside {beside}"), path, out)?;
            }
            None => {
                create(path, |file| picture::html(&drawn.picture, &drawn.title, file))?;
                tell_drawn(&format!("{steps} steps"), path, out)?;
            }
        }
    }
    if let Some(path) = &arguments.perfetto {
        let is_packed = path.extension().is_some_and(|extension| extension == "gz");
        create(path, |file| {
            let Drawn { picture, title, .. } = &drawn;
            if is_packed {
                picture::packed_perfetto(picture, title, file)
            } else {
                picture::perfetto(picture, title, file)
            }
        })?;
        writeln!(out, "{steps} steps for https://ui.perfetto.dev in {}", shown(path))?;
    }
    Ok(good)
}

/// Draws the trace beside another one with this name, which is in memory.
pub(super) fn draw_beside(
    arguments: &Arguments,
    other: &[u8],
    name: &str,
    html: &Path,
) -> Result<(), Unplayable> {
    let (drawn, _) = read(arguments, &arguments.trace)?;
    let other = read_from(arguments, other, Path::new(name))?.0;
    create(html, |file| picture::beside(&[drawn.named(), other.named()], file))
}

/// A trace that was read.
struct Drawn {
    path: PathBuf,
    picture: Picture,
    title: Title,
}

impl Drawn {
    fn named(&self) -> (String, &Picture, &Title) {
        (shown(&self.path), &self.picture, &self.title)
    }

    /// By the address of its server, or as all servers.
    fn of_server(&self) -> (String, &Picture, &Title) {
        let name = match (&self.title.address, self.picture.is_topology) {
            (_, true) => "servers".to_owned(),
            (Some(address), false) => format!("pool of {address}"),
            (None, false) => shown(&self.path),
        };
        (name, &self.picture, &self.title)
    }
}

/// Reads a trace as far as the arguments say; returns also whether it is as it should be.
fn read(arguments: &Arguments, path: &Path) -> Result<(Drawn, bool), Unplayable> {
    read_from(arguments, open(path, &arguments.beginning)?, path)
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
    let server = arguments.server(watch.header());
    let mut picture = finish(collector, &watch, arguments.utc_offset, server);
    let header = watch.header();
    if let Some(history) = arguments.topology.as_ref().filter(|_| arguments.html.is_some()) {
        let history = History::clone(history).on_clock(header.origin);
        picture = picture.with_servers(&history, Clock::new(header, arguments.utc_offset));
    }
    Ok((Drawn { path: path.to_owned(), picture, title: header.into() }, good))
}

fn finish<R: Read>(
    collector: Collector,
    watch: &StepReader<R>,
    offset: UtcOffset,
    server: Option<ServerHistory>,
) -> Picture {
    let header = watch.header();
    collector.finish(header, watch.pool().options(), Clock::new(header, offset), server)
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
    let mut watch = StepReader::new(open(trace, &[])?).map_err(unplayable)?;
    let mut collector = Collector::new(watch.pool());
    let each = watch.each(|view| {
        collector.add(view);
        ControlFlow::Continue(())
    });
    each.map_err(unplayable)?;
    let mut picture = finish(collector, &watch, UtcOffset::default(), None);
    picture.faults = faults;
    create(html, |file| picture::html(&picture, &watch.header().into(), file))?;
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

/// Draws the servers of a client.
pub(super) fn draw_topology(
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<bool, Unplayable> {
    let (history, good) = topology::load(arguments)?;
    let drawn = of_topology(arguments, &history);
    if let Some(path) = &arguments.html {
        create(path, |file| picture::html(&drawn.picture, &drawn.title, file))?;
        tell_drawn(&format!("{} steps", history.steps), path, out)?;
    }
    Ok(good)
}

/// Draws the servers of a client above its pools, with the same time in view.
pub(super) fn draw_client(
    arguments: &Arguments,
    pools: &[PathBuf],
    out: &mut impl Write,
) -> Result<bool, Unplayable> {
    let topology = arguments.topology.as_ref().map(|history| of_topology(arguments, history));
    let mut good = true;
    let mut all: Vec<_> = topology.into_iter().collect();
    for pool in pools {
        // Its servers have a page of their own.
        let (drawn, is_good) = read(&Arguments { html: None, ..arguments.of_pool(pool) }, pool)?;
        good &= is_good;
        all.push(drawn);
    }
    // Of all of them, in nanoseconds since 1970.
    let zero = |drawn: &Drawn| i128::from(drawn.title.origin) * 1_000_000;
    let times = all.iter().map(|drawn| (zero(drawn), drawn.picture.time()));
    let start = times.clone().map(|(zero, (start, _))| zero + i128::from(start)).min();
    let end = times.map(|(zero, (_, end))| zero + i128::from(end)).max();
    for drawn in &mut all {
        let own = |at: i128| u64::try_from((at - zero(drawn)).max(0)).unwrap_or(u64::MAX);
        drawn.picture.shown = start.map(own).zip(end.map(own));
    }
    let named: Vec<_> = all.iter().map(Drawn::of_server).collect();
    if let Some(path) = &arguments.html {
        create(path, |file| picture::stacked(&named, file))?;
        tell_drawn(&format!("{} traces", named.len()), path, out)?;
    }
    Ok(good)
}

fn of_topology(arguments: &Arguments, history: &History) -> Drawn {
    let header = &history.header;
    let clock = topology::clock(arguments, header);
    let picture = Picture::of_topology(history, clock);
    let (program, origin) = (header.program.clone(), header.origin);
    let title = Title { program, origin, is_new: true, ..Title::default() };
    Drawn { path: PathBuf::new(), picture, title }
}

fn tell_drawn(what: &str, path: &Path, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{what} drawn in {}", shown(path))?;
    writeln!(out, "{KEYS}")
}
