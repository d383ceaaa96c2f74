//! Steps through a trace interactively, forwards and backwards.

use std::io::{self, BufRead, Write};

use cenote_core::pool::PoolState;
use cenote_core::trace::{Step, Traced};

use super::clock::Clock;
use super::condition::Condition;
use super::history::{History, feed};
use super::holders::{Activity, Holders};
use super::step_reader::View;
use super::text;

const HELP: &str = "\
next [N]      take N steps (n; an empty line takes one)
back [N]      go N steps back (b)
go STEP       go to a step (g)
until COND    go to the next step at which waiting>100, event=…, input=…, at=… holds (u)
since COND    go back to the last step at which COND held
state         the counts (s)
connections   each connection, and the request that holds it (c)
waiters       each request that waits (w)
help          this (h)
quit          quit (q)";

/// A position in the history of a pool, and the pool and its holders at that position.
#[derive(Debug)]
pub struct Stepper<'a> {
    history: &'a History,
    clock: Clock,
    /// Clones of both at regular positions, so that going back does not need a replay from the start.
    keyframes: Vec<(PoolState<Traced>, Holders)>,
    at: usize,
    pool: PoolState<Traced>,
    holders: Holders,
}

/// What commands step through.
pub trait Steps {
    /// How many steps were taken.
    fn at(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// Does what a command says.
    ///
    /// # Errors
    ///
    /// I/O errors of the output.
    fn answer(&mut self, command: &str, argument: &str, out: &mut impl Write) -> io::Result<()>;
}

/// Reads commands, one per line, and answers each until the input ends. `prompt` is for interactive
/// use, and not for pipes.
///
/// # Errors
///
/// I/O errors of the input and the output.
pub fn converse(
    steps: &mut impl Steps,
    commands: impl BufRead,
    mut out: impl Write,
    prompt: bool,
) -> io::Result<()> {
    writeln!(out, "{} steps; `help` lists the commands", steps.count())?;
    let mut lines = commands.lines();
    loop {
        if prompt {
            write!(out, "{} > ", steps.at())?;
            out.flush()?;
        }
        let Some(line) = lines.next().transpose()? else {
            // After Ctrl-D, the cursor is still on the line of the prompt.
            return if prompt { writeln!(out) } else { Ok(()) };
        };
        let (command, argument) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match command {
            "quit" | "q" => return Ok(()),
            _ => steps.answer(command, argument.trim(), &mut out)?,
        }
    }
}

impl Steps for Stepper<'_> {
    fn at(&self) -> usize {
        self.at
    }

    fn count(&self) -> usize {
        self.history.inputs.len()
    }

    fn answer(&mut self, command: &str, argument: &str, out: &mut impl Write) -> io::Result<()> {
        let count = if argument.is_empty() { Ok(1) } else { argument.parse::<usize>() };
        match (command, count) {
            ("next" | "n" | "", Ok(count)) => self.next(count, out),
            ("back" | "b", Ok(count)) => self.go(self.at.saturating_sub(count), out),
            ("go" | "g", Ok(step)) if !argument.is_empty() => self.go(step, out),
            ("until" | "u", _) => self.search(argument, true, out),
            ("since", _) => self.search(argument, false, out),
            ("state" | "s", _) => writeln!(out, "{}  {}", self.pool.now(), self.pool.snapshot()),
            ("connections" | "c", _) => self.connections(out),
            ("waiters" | "w", _) => self.waiters(out),
            ("help" | "h" | "?", _) => writeln!(out, "{HELP}"),
            ("next" | "n" | "back" | "b" | "go" | "g", _) => {
                writeln!(out, "`{argument}` is not a number of steps")
            }
            _ => writeln!(out, "`{command}` is not a command; `help` lists them"),
        }
    }
}

impl<'a> Stepper<'a> {
    /// Begins before the first step; wall-clock times are those of the clock.
    pub fn new(history: &'a History, clock: Clock) -> Self {
        let pool = history.pool();
        let holders = Holders::of(&pool);
        let keyframes = vec![(pool.clone(), holders.clone())];
        Self { history, clock, keyframes, at: 0, pool, holders }
    }

    fn next(&mut self, count: usize, out: &mut impl Write) -> io::Result<()> {
        if self.at == self.history.inputs.len() {
            return writeln!(out, "the end");
        }
        for _ in 0..count {
            let Some(line) = self.step() else { return writeln!(out, "the end") };
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn go(&mut self, step: usize, out: &mut impl Write) -> io::Result<()> {
        let target = step.min(self.history.inputs.len());
        if target == 0 {
            self.jump(0);
            return writeln!(out, "      0  {}  {}", self.pool.now(), self.pool.snapshot());
        }
        self.jump(target - 1);
        let line = self.step().unwrap_or_default();
        writeln!(out, "{line}")
    }

    /// Goes to the position after this many inputs, from the nearest clone before it.
    fn jump(&mut self, to: usize) {
        if to < self.at {
            let frame = (to / KEYFRAME).min(self.keyframes.len() - 1);
            (self.pool, self.holders) = self.keyframes[frame].clone();
            self.at = frame * KEYFRAME;
        }
        while self.at < to && self.take(|_| ()).is_some() {}
    }

    /// Takes one step and returns its line.
    fn step(&mut self) -> Option<String> {
        let clock = self.clock;
        self.take(|view| text::step(view, &clock))
    }

    fn take<T>(&mut self, show: impl FnOnce(&View<'_>) -> T) -> Option<T> {
        let entry = self.history.inputs.get(self.at)?;
        let (before, mut actions) = (self.pool.snapshot(), Vec::new());
        let _ = feed(&mut self.pool, entry, &mut actions);
        self.at += 1;
        let step = Step::new(self.at as u64, entry.at, entry.input.clone(), entry.refused);
        let mut step = step.with_place(entry.place.clone());
        step.follows = entry.follows;
        let step = &step;
        let (holders, pool) = (&self.holders, &self.pool);
        let shown = show(&View { step, actions: &actions, before, holders, pool });
        self.holders.follow(step, before.waiting, &actions, &self.pool);
        if self.at.is_multiple_of(KEYFRAME) && self.keyframes.len() == self.at / KEYFRAME {
            self.keyframes.push((self.pool.clone(), self.holders.clone()));
        }
        Some(shown)
    }

    fn search(&mut self, argument: &str, forwards: bool, out: &mut impl Write) -> io::Result<()> {
        let condition = argument.parse::<Condition>().map_err(|error| error.to_string());
        let resolve = |it: Condition| it.resolve(&self.clock).map_err(|error| error.to_string());
        let condition = match condition.and_then(resolve) {
            Ok(condition) => condition,
            Err(error) => return writeln!(out, "{error}"),
        };
        let found = if forwards { self.find_next(&condition) } else { self.find_last(&condition) };
        match found {
            Some(step) => self.go(step, out),
            None if forwards => writeln!(out, "the condition does not hold again before the end"),
            None => writeln!(out, "the condition did not hold before"),
        }
    }

    /// The next matching step; stays at its position if there is none.
    fn find_next(&mut self, condition: &Condition) -> Option<usize> {
        let here = self.at;
        while let Some(holds) = self.take(|view| condition.holds_for(view)) {
            if holds {
                return Some(self.at);
            }
        }
        self.jump(here);
        None
    }

    fn find_last(&mut self, condition: &Condition) -> Option<usize> {
        let here = self.at;
        let mut last = None;
        self.jump(0);
        while self.at + 1 < here {
            if self.take(|view| condition.holds_for(view))? {
                last = Some(self.at);
            }
        }
        self.jump(here);
        last
    }

    fn connections(&self, out: &mut impl Write) -> io::Result<()> {
        for connection in self.pool.connections() {
            let held = self.holders.connections.get(&connection.id.number());
            let holder = match held.map(|held| held.activity) {
                Some(Activity::InUse(holder @ Some(_))) => {
                    format!(", held by {}", self.holders.name(holder))
                }
                Some(_) | None => String::new(),
            };
            writeln!(out, "{}{holder}", text::connection(&connection))?;
        }
        writeln!(out, "{} connections", self.pool.snapshot().total)
    }

    fn waiters(&self, out: &mut impl Write) -> io::Result<()> {
        let mut count = 0;
        for waiter in self.pool.waiters() {
            writeln!(out, "{}", text::waiter(&waiter))?;
            count += 1;
        }
        writeln!(out, "{count} requests without an outcome")
    }
}

const KEYFRAME: usize = 1_000;
