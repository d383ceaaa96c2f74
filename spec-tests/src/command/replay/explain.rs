//! Explains a trace: a summary, one wait, the longest waits, leaks, clears.

use std::io::{self, Write};
use std::path::Path;

use cenote_replay::explain::{Analysis, Findings, Story};

use super::Arguments;
use super::played::Played;
use crate::command::Failure;
use crate::command::input::at;
use crate::command::output::{tell, wrapped};

/// Replays the trace once, and prints what was asked for.
pub(super) fn explain(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    let path = &arguments.trace;
    let mut trace = Played::open(arguments, path)?;
    let clock = trace.part.clock;
    let mut analysis = Analysis::new(arguments.slowest.unwrap_or(KEPT).max(KEPT));
    let server = arguments.server(trace.reader.header());
    let story = |waiter| Story::new(waiter, clock, server.clone());
    let mut stories: Vec<_> =
        arguments.waiter.iter().map(|&waiter| (waiter, story(waiter))).collect();
    let (mut is_inside, start) = (false, trace.reader.header().start);
    let mut end = start;
    let mut good = trace.each(|view, part| {
        let counts = part.contains(view.step.at);
        (is_inside, end) = (is_inside || counts, view.step.at);
        analysis.add(view, counts);
        stories.iter_mut().for_each(|(_, story)| story.add(view));
        Ok(())
    })?;
    // Of several pools, some may have been at rest.
    let is_alone = arguments.traces == [arguments.trace.clone()];
    if is_alone && !is_inside && (arguments.from.is_some() || arguments.to.is_some()) {
        let [start, end] = [start, end].map(|time| clock.both(time));
        return Err(at(path)(format!(
            "nothing happened in that time: the trace is from {start} to {end}"
        )));
    }
    let mut screen = Screen::new(arguments.all);
    for (waiter, story) in &stories {
        if let Some(text) = story.tell(if arguments.all { usize::MAX } else { STORY }) {
            screen.print(&wrapped(&text), out)?;
        } else {
            tell(format_args!("cenote: {}: there is no request w{waiter}", path.display()));
            good = false;
        }
    }
    screen.end("requests", out)?;
    let findings = Findings::new(analysis, &trace.reader, clock, arguments.longer_than, server);
    good &= print_findings(arguments, path, &findings, out)?;
    Ok(trace.end() && good)
}

/// What was asked for of the findings. Returns whether it is there.
pub(super) fn print_findings(
    arguments: &Arguments,
    path: &Path,
    findings: &Findings,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let (mut good, lines) = (true, if arguments.all { usize::MAX } else { LINES });
    if let Some(count) = arguments.slowest {
        out.write_all(wrapped(&findings.slowest(count)).as_bytes())?;
    }
    if arguments.leaks {
        out.write_all(wrapped(&findings.leaks(lines)).as_bytes())?;
    }
    if arguments.clears {
        out.write_all(wrapped(&findings.clears(lines)).as_bytes())?;
    }
    let mut screen = Screen::new(arguments.all);
    for &number in &arguments.clear {
        if let Some(text) = findings.clear(number) {
            screen.print(&wrapped(&text), out)?;
        } else {
            let count = findings.clear_count();
            tell(format_args!("cenote: {}: there is no clear {number} of {count}", path.display()));
            good = false;
        }
    }
    screen.end("clears", out)?;
    if arguments.wants_summary() && arguments.json {
        writeln!(out, "{}", findings.json(KEPT))?;
    } else if arguments.wants_summary() {
        out.write_all(wrapped(&findings.summary()).as_bytes())?;
    }
    out.flush()?;
    Ok(good)
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
pub(super) const KEPT: usize = 20;
/// Lines of a table, without --all.
const LINES: usize = 20;
/// Lines of several waits or clears, without --all.
const SCREEN: usize = 40;
/// Connections and events in the story of a wait, without --all.
const STORY: usize = 10;
