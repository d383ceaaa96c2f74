//! Draws traces.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cenote_replay::clock::{Clock, UtcOffset};
use cenote_replay::picture::{self, Collector, Fault, Picture, Title};
use cenote_replay::step_reader::StepReader;
use cenote_replay::text::counted;
use cenote_replay::topology::History;

use super::chosen::Chosen;
use super::draw_command::Arguments;
use super::played::Played;
use crate::command::Failure;
use crate::command::input::{at, open};
use crate::command::output::{printable, shown};

/// What one can do with a picture.
const KEYS: &str =
    "open it in a browser: `n` goes to the next failure, `e` explains, `?` lists the keys";

/// Draws the trace, and prints the path of the result.
pub(super) fn draw_pool(
    given: &Arguments,
    chosen: &Chosen,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let read = |path| read(chosen, open(path)?, path, given.perfetto.is_some(), true);
    let (drawn, mut good) = read(&chosen.trace)?;
    let steps = drawn.picture.steps;
    if let (Some(html), Some(other)) = (&given.html, &given.beside) {
        let (other, is_good) = read(other)?;
        good &= is_good;
        create(html, |file| picture::beside(&[drawn.named(), other.named()], file))?;
        tell_drawn(&format!("{steps} steps beside {}", other.picture.steps), html, out)?;
    } else if let Some(html) = &given.html {
        create(html, |file| picture::html(&drawn.picture, &drawn.title, file))?;
        tell_drawn(&format!("{steps} steps"), html, out)?;
    }
    if let Some(path) = &given.perfetto {
        let is_packed = path.extension().is_some_and(|extension| extension == "gz");
        let write = if is_packed { picture::packed_perfetto } else { picture::perfetto };
        create(path, |file| write(&drawn.picture, &drawn.title, file))?;
        writeln!(out, "{steps} steps for https://ui.perfetto.dev in {}", shown(path))?;
    }
    Ok(good)
}

/// Draws the trace beside another one with this name, which is in memory.
pub(super) fn draw_beside(
    chosen: &Chosen,
    other: &[u8],
    name: &str,
    html: &Path,
) -> Result<(), Failure> {
    let (drawn, _) = read(chosen, open(&chosen.trace)?, &chosen.trace, false, true)?;
    let (other, _) = read(chosen, other, Path::new(name), false, true)?;
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

/// Reads a trace as far as it was chosen, with the servers of its client above it if they are known and wanted; returns also
/// whether it is as it should be.
fn read(
    chosen: &Chosen,
    source: impl Read,
    path: &Path,
    is_whole: bool,
    has_servers: bool,
) -> Result<(Drawn, bool), Failure> {
    let mut trace = Played::of(chosen, path, source)?;
    trace.ends_with_part = true;
    let begin = |pool: &_| {
        let collector = Collector::new(pool);
        if is_whole { collector.whole() } else { collector }
    };
    let mut collector = begin(trace.reader.pool());
    let mut has_begun = chosen.from.is_none();
    let good = trace.each(|view, part| {
        if has_begun {
            collector.add(view);
        } else if part.contains(view.pool.now()) {
            // What this step made of the pool is where the picture begins.
            (collector, has_begun) = (begin(view.pool), true);
        }
        Ok(())
    })?;
    trace.expect_inside()?;
    let good = trace.end() && good;
    let (reader, clock) = (&trace.reader, trace.part.clock);
    let header = reader.header();
    let mut title = Title::from(header);
    title.is_new &= chosen.from.is_none();
    let mut picture = collector.finish(reader, clock, chosen.server(header));
    let time = picture.time();
    if let Some(history) = chosen.topology.as_ref().filter(|_| has_servers) {
        picture = picture.with_servers(&History::clone(history).on_clock(header.origin), clock);
        if chosen.is_part() {
            picture.shown = Some(time);
        }
    }
    Ok((Drawn { path: path.to_owned(), picture, title }, good))
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
) -> Result<u64, Failure> {
    let mut reader = StepReader::new(open(trace)?).map_err(at(trace))?;
    let mut collector = Collector::new(reader.pool());
    let each = reader.each(|view| {
        collector.add(view);
        ControlFlow::Continue(())
    });
    each.map_err(at(trace))?;
    let header = reader.header();
    let clock = Clock::new(header, UtcOffset::default());
    let mut picture = collector.finish(&reader, clock, None);
    picture.faults = faults;
    create(html, |file| picture::html(&picture, &header.into(), file))?;
    Ok(picture.steps)
}

fn create(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Failure> {
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    written.map_err(at(path))
}

/// Draws the pools of any driver, from their events.
pub(super) fn draw_events(path: &Path, html: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let events = BufReader::new(open(path)?);
    let (pools, others) = picture::of_events(events).map_err(at(path))?;
    let named = pools.iter().map(|(picture, title)| {
        let address = title.address.as_deref().unwrap_or_default();
        (format!("pool of {}", printable(address)), picture, title)
    });
    create_all(html, &named.collect::<Vec<_>>())?;
    let events = pools.iter().map(|(picture, _)| picture.steps).sum::<u64>();
    if others > 0 {
        let others = counted(others as u64, "other pool", "other pools");
        let advice = "to draw one of them, write its events into a file of its own";
        writeln!(out, "{others} with fewer requests not drawn: {advice}")?;
    }
    Ok(tell_drawn(&format!("{events} events"), html, out)?)
}

/// Draws the servers of a client above its pools, with the same time in view.
pub(super) fn draw_client(
    chosen: &Chosen,
    pools: &[PathBuf],
    html: &Path,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let topology = chosen.topology.as_ref().map(|history| of_topology(chosen, history));
    let mut good = true;
    let mut all: Vec<_> = topology.into_iter().collect();
    for pool in pools {
        // Its servers have a page of their own.
        let (drawn, is_good) = read(&chosen.of(pool), open(pool)?, pool, false, false)?;
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
    create_all(html, &all.iter().map(Drawn::of_server).collect::<Vec<_>>())?;
    let what = match all.as_slice() {
        [one] => format!("{} steps", one.picture.steps),
        all => format!("{} traces", all.len()),
    };
    tell_drawn(&what, html, out)?;
    Ok(good)
}

/// One picture, or several below each other.
fn create_all(path: &Path, named: &[(String, &Picture, &Title)]) -> Result<(), Failure> {
    create(path, |file| match named {
        [(_, picture, title)] => picture::html(picture, title, file),
        all => picture::stacked(all, file),
    })
}

fn of_topology(chosen: &Chosen, history: &History) -> Drawn {
    let header = &history.header;
    let picture = Picture::of_topology(history, chosen.clock(header.origin, header.start));
    let (program, origin) = (header.program.clone(), header.origin);
    let title = Title { program, origin, is_new: true, ..Title::default() };
    Drawn { path: PathBuf::new(), picture, title }
}

fn tell_drawn(what: &str, path: &Path, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{what} drawn in {}", shown(path))?;
    writeln!(out, "{KEYS}")
}
