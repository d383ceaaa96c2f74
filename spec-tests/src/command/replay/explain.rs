//! Explains a trace: a summary, one wait, the longest waits, leaks, clears.

use std::io::{self, Write};
use std::ops::ControlFlow;

use cenote_replay::explain::{Analysis, Findings, Story};
use cenote_replay::step_reader::StepReader;

use super::print::{holds, none_refused};
use super::{Arguments, Unplayable, ended_early, open, part};
use crate::command::output::tell;

/// Replays the trace once, and prints what was asked for.
pub(super) fn explain(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Unplayable> {
    let path = &arguments.trace;
    let unplayable = |source| Unplayable::Trace { path: path.clone(), source };
    let mut watch = StepReader::new(open(path, &arguments.beginning)?).map_err(unplayable)?;
    let part = part(arguments, watch.header())?;
    let clock = part.clock;
    let mut analysis = Analysis::new(arguments.slowest.unwrap_or(EXAMPLES).max(EXAMPLES));
    let server = arguments.server(watch.header());
    let story = |waiter| Story::new(waiter, clock).following(server.clone());
    let mut stories: Vec<_> =
        arguments.waiter.iter().map(|&waiter| (waiter, story(waiter))).collect();
    let mut has_met = false;
    let outcome = watch.each(|view| {
        let at = view.step.at.as_nanos();
        let counts = part.from.is_none_or(|from| at >= from) && part.to.is_none_or(|to| at <= to);
        analysis.add(view, counts);
        stories.iter_mut().for_each(|(_, story)| story.add(view));
        has_met = part.until.as_ref().is_some_and(|until| holds(until, view));
        if has_met { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let mut good = match outcome {
        Ok(_) => true,
        Err(error) if !arguments.lenient && !error.is_difference() => {
            return Err(unplayable(error));
        }
        Err(error) => ended_early(arguments, path, error)?,
    };
    if arguments.until.is_some() && !has_met {
        tell("cenote: the condition of --until never holds");
        good = false;
    }
    let lines = if arguments.all { usize::MAX } else { LINES };
    let mut screen = Screen::new(arguments.all);
    for (waiter, story) in &stories {
        if let Some(text) = story.tell(if arguments.all { usize::MAX } else { STORY }) {
            screen.print(&text, out)?;
        } else {
            tell(format_args!("cenote: {}: there is no request w{waiter}", path.display()));
            good = false;
        }
    }
    screen.end("requests", out)?;
    let options = watch.pool().options().clone();
    let findings = Findings::new(analysis, watch.header(), clock, &options, arguments.longer_than);
    let findings = findings.following(server);
    if let Some(count) = arguments.slowest {
        out.write_all(findings.slowest(count).as_bytes())?;
    }
    if arguments.leaks {
        out.write_all(findings.leaks(lines).as_bytes())?;
    }
    if arguments.clears {
        out.write_all(findings.clears(lines).as_bytes())?;
    }
    let mut screen = Screen::new(arguments.all);
    for &number in &arguments.clear {
        if let Some(text) = findings.clear(number) {
            screen.print(&text, out)?;
        } else {
            let count = findings.clear_count();
            tell(format_args!("cenote: {}: there is no clear {number} of {count}", path.display()));
            good = false;
        }
    }
    screen.end("clears", out)?;
    let refused = findings.refused();
    if arguments.wants_summary() && arguments.json {
        writeln!(out, "{}", findings.json(EXAMPLES))?;
    } else if arguments.wants_summary() {
        out.write_all(findings.summary().as_bytes())?;
    }
    out.flush()?;
    Ok(none_refused(path, refused) && good)
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
const EXAMPLES: usize = 20;
/// Lines of a table, without --all.
const LINES: usize = 20;
/// Lines of several waits or clears, without --all.
const SCREEN: usize = 40;
/// Connections and events in the story of a wait, without --all.
const STORY: usize = 10;
