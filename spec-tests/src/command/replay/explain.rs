//! `cenote explain FILE`: what happened to a pool of any driver: a summary, one wait, the longest waits, leaks, clears.

use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cenote_replay::clock;
use cenote_replay::explain::{Analysis, Findings, POOLS, Story, explain_events};
use cenote_replay::text::counted;
use cenote_replay::topology::summary;

use super::chosen::Chosen;
use super::played::Played;
use super::printed;
use super::sources::Sources;
use crate::command::Failure;
use crate::command::input::{at, is_trace, open};
use crate::command::output::{tell, wrapped};

/// Arguments of `cenote explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::command) struct Arguments {
    /// Events of a pool of any driver, one JSON object per line, or its log of the component `connection`; `-` is standard
    /// input. Or a trace of Cenote, several of one client, or the folder that has them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The N longest waits
    #[arg(long, value_name = "N", conflicts_with = "json")]
    slowest: Option<usize>,
    /// Connections that were held for long: leaked, or only slow
    #[arg(long, conflicts_with = "json")]
    leaks: bool,
    /// For leaks: longer than this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    longer_than: Option<Duration>,
    /// What each clear did, in a line
    #[arg(long, conflicts_with = "json")]
    clears: bool,
    /// What this clear did, from 1; repeatable
    #[arg(long, value_name = "NUMBER", conflicts_with = "json")]
    clear: Vec<u64>,
    /// Everything instead of a screenful
    #[arg(long)]
    all: bool,
    /// One JSON object with all of that
    #[arg(long)]
    json: bool,
    /// Of a trace: what this request waited for; repeatable
    #[arg(long, value_name = "NUMBER", conflicts_with = "json")]
    waiter: Vec<u64>,
    #[command(flatten)]
    chosen: Chosen,
}

const EXAMPLES: &str = "\
Examples:
  cenote explain events.jsonl                what happened, and why
  cenote explain events.jsonl --leaks --clears
  cenote explain incident.bson --waiter 17   what a request waited for
  cenote explain traces/                     the topology, and each pool";

fn duration(text: &str) -> Result<Duration, String> {
    let nanos = clock::nanos(text).map(Duration::from_nanos);
    nanos.ok_or_else(|| format!("`{text}` is no number of seconds"))
}

/// Explains the file.
pub(in crate::command) fn run(mut given: Arguments) -> Result<bool, Failure> {
    printed(|out| match of_events(&given.files)? {
        Some(path) => of_any_driver(&given, &path, out),
        None => of_traces(&mut given, out),
    })
}

/// The file, if it is of events.
pub(super) fn of_events(files: &[PathBuf]) -> Result<Option<PathBuf>, Failure> {
    for path in files {
        if path.is_dir() || is_trace(path)? {
            continue;
        }
        if files.len() > 1 {
            return Err(at(path)("events are explained one file at a time"));
        }
        return Ok(Some(path.clone()));
    }
    Ok(None)
}

fn of_any_driver(given: &Arguments, path: &Path, out: &mut impl Write) -> Result<bool, Failure> {
    given.chosen.refuse_for_events(path, &[("--waiter", !given.waiter.is_empty())])?;
    let at_most = if given.all || given.json { usize::MAX } else { POOLS };
    let source = BufReader::new(open(path)?);
    let pools = explain_events(source, given.kept(), given.longer_than, at_most);
    let (pools, others) = pools.map_err(at(path))?;
    let mut good = true;
    for (index, findings) in pools.iter().enumerate() {
        if index > 0 && !given.json {
            writeln!(out)?;
        }
        good &= given.print(path, findings, out)?;
    }
    if others > 0 {
        let others = counted(others as u64, "other pool", "other pools");
        writeln!(out, "\n{others} with fewer requests: --all explains each")?;
    }
    Ok(good)
}

/// The pool, or the topology first and then each pool.
fn of_traces(given: &mut Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let sources = Sources::find(&given.files)?;
    sources.expect_none(&[
        ("--slowest", given.slowest.is_some()),
        ("--leaks", given.leaks),
        ("--clears", given.clears),
        ("--clear", !given.clear.is_empty()),
        ("--json", given.json),
        ("--waiter", !given.waiter.is_empty()),
        ("--until", given.chosen.until.is_some()),
    ])?;
    let mut good = given.chosen.load(&sources)?;
    let chosen = &given.chosen;
    if let [pool] = sources.pools.as_slice() {
        return Ok(of_pool(given, &chosen.of(pool), true, out)? && good);
    }
    if let Some(history) = &chosen.topology {
        let clock = chosen.clock(history.header.origin, history.header.start);
        let changes = if given.all { usize::MAX } else { LINES };
        out.write_all(wrapped(&summary(history, &clock, changes)).as_bytes())?;
    }
    for (number, pool) in sources.pools.iter().enumerate() {
        if number > 0 || chosen.topology.is_some() {
            writeln!(out)?;
        }
        good &= of_pool(given, &chosen.of(pool), false, out)?;
    }
    Ok(good)
}

/// Replays the trace once, and prints what was asked for.
fn of_pool(
    given: &Arguments,
    chosen: &Chosen,
    is_alone: bool,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let path = &chosen.trace;
    let mut trace = Played::open(chosen)?;
    let clock = trace.part.clock;
    let mut analysis = Analysis::new(given.kept());
    let server = chosen.server(trace.reader.header());
    let story = |&waiter| (waiter, Story::new(waiter, clock, server.clone()));
    let mut stories: Vec<_> = given.waiter.iter().map(story).collect();
    let mut good = trace.each(|view, part| {
        analysis.add(view, part.contains(view.step.at));
        stories.iter_mut().for_each(|(_, story)| story.add(view));
        Ok(())
    })?;
    // Of several pools, some may have been at rest.
    if is_alone {
        trace.expect_inside()?;
    }
    let mut screen = Screen::new(given.all);
    for (waiter, story) in &stories {
        if let Some(text) = story.tell(if given.all { usize::MAX } else { STORY }) {
            screen.print(&wrapped(&text), out)?;
        } else {
            tell(format_args!("cenote: {}: there is no request w{waiter}", path.display()));
            good = false;
        }
    }
    screen.end("requests", out)?;
    let findings = Findings::new(analysis, &trace.reader, clock, given.longer_than, server);
    good &= given.print(path, &findings, out)?;
    Ok(trace.end() && good)
}

impl Arguments {
    /// How many of the longest waits are kept.
    fn kept(&self) -> usize {
        self.slowest.unwrap_or(KEPT).max(KEPT)
    }

    /// Prints what was asked for of the findings. Returns whether it is there.
    fn print(
        &self,
        path: &Path,
        findings: &Findings,
        out: &mut impl Write,
    ) -> Result<bool, Failure> {
        let (mut good, lines) = (true, if self.all { usize::MAX } else { LINES });
        let asked = [
            self.slowest.map(|count| findings.slowest(count)),
            self.leaks.then(|| findings.leaks(lines)),
            self.clears.then(|| findings.clears(lines)),
        ];
        for text in asked.iter().flatten() {
            out.write_all(wrapped(text).as_bytes())?;
        }
        let mut screen = Screen::new(self.all);
        for &number in &self.clear {
            if let Some(text) = findings.clear(number) {
                screen.print(&wrapped(&text), out)?;
            } else {
                let (path, count) = (path.display(), findings.clear_count());
                tell(format_args!("cenote: {path}: there is no clear {number} of {count}"));
                good = false;
            }
        }
        screen.end("clears", out)?;
        let is_asked = asked.iter().any(Option::is_some) || !self.clear.is_empty();
        if self.json {
            writeln!(out, "{}", findings.json(KEPT))?;
        } else if !is_asked && self.waiter.is_empty() {
            out.write_all(wrapped(&findings.summary()).as_bytes())?;
        }
        Ok(good)
    }
}

/// Texts that were asked for by number: as many as a screen has room for, and at least one.
struct Screen {
    room: usize,
    printed: usize,
    left_out: usize,
}

impl Screen {
    fn new(all: bool) -> Self {
        Self { room: if all { usize::MAX } else { SCREEN }, printed: 0, left_out: 0 }
    }

    fn print(&mut self, text: &str, out: &mut impl Write) -> io::Result<()> {
        let lines = text.lines().count();
        if self.printed > 0 && lines > self.room {
            self.left_out += 1;
            return Ok(());
        }
        self.printed += 1;
        self.room = self.room.saturating_sub(lines);
        out.write_all(text.as_bytes())
    }

    fn end(&self, what: &str, out: &mut impl Write) -> io::Result<()> {
        match self.left_out {
            0 => Ok(()),
            left => writeln!(
                out,
                "{left} of {} {what} are left out: --all shows them",
                left + self.printed
            ),
        }
    }
}

/// The longest waits that are kept at least.
const KEPT: usize = 20;
/// Lines of a table, or of changes, without --all.
const LINES: usize = 20;
/// Lines of several waits or clears, without --all.
const SCREEN: usize = 40;
/// Connections and events in the story of a wait, without --all.
const STORY: usize = 10;
