use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cenote_core::client::ServerStatus;
use cenote_replay::text::{counted, grouped, span};
use indicatif::{ProgressBar, ProgressStyle};

use super::deployment::pools;
use super::tally::Counts;
use crate::command::output::{printable, tell};

/// What is told on standard error while the work goes on: two lines that change in a terminal, and
/// elsewhere a plain one now and then.
pub(super) struct Progress {
    bar: ProgressBar,
    goal: Goal,
    pace: Mutex<Pace>,
}

/// When it is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) time: Option<Duration>,
    pub(super) operations: Option<NonZeroU64>,
}

/// How fast it goes.
struct Pace {
    /// Operations at times of the last second.
    samples: VecDeque<(Instant, u64)>,
    told: Instant,
}

/// The interval of progress lines where standard error is no terminal.
const SELDOM: Duration = Duration::from_secs(2);

/// What is left of a second.
const SAMPLES: usize = 10;

impl Progress {
    pub(super) fn new(goal: Goal) -> Self {
        let bar = ProgressBar::new(Goal::WHOLE);
        let lines = match goal {
            Goal { time: None, operations: None } => "{spinner:.cyan} {prefix}\n  {wide_msg}",
            Goal { .. } => "{spinner:.cyan} {bar:24.cyan/238} {prefix}\n  {wide_msg}",
        };
        let style = ProgressStyle::with_template(lines);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━━╌"));
        let pace = Pace { samples: VecDeque::new(), told: Instant::now() };
        Self { bar, goal, pace: Mutex::new(pace) }
    }

    /// How it goes.
    pub(super) fn show(&self, now: Duration, counts: Counts, servers: &[ServerStatus]) {
        let done = counts.good + counts.failed + counts.given_up.iter().sum::<u64>();
        let Ok(mut pace) = self.pace.lock() else { return };
        let speed = pace.speed(done);
        let line = format!(
            "{:>5.1} s  {} operations  {} a second  {} failed",
            now.as_secs_f64(),
            grouped(counts.good),
            grouped(speed),
            grouped(counts.failed)
        );
        if !self.bar.is_hidden() {
            self.bar.set_position((self.goal.part(now, done) * Goal::WHOLE as f64).round() as u64);
            self.bar.set_prefix(line);
            self.bar.set_message(pools(servers));
            self.bar.tick();
        } else if pace.told.elapsed() >= SELDOM {
            pace.told = Instant::now();
            tell(format_args!("{line}  {}", pools(servers)));
        }
    }

    /// Something that is worth a line of its own.
    pub(super) fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            tell(line);
        } else {
            self.bar.println(printable(line).to_string());
        }
    }

    /// Nothing of it is left in a terminal, but for what was said.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = |count: NonZeroU64| counted(count.get(), "operation", "operations");
        match (self.time.map(span), self.operations.map(operations)) {
            (Some(time), Some(operations)) => write!(f, "{time} or {operations}"),
            (Some(limit), None) | (None, Some(limit)) => f.write_str(&limit),
            (None, None) => f.write_str("as long as it may"),
        }
    }
}

impl Goal {
    const WHOLE: u64 = 1000;

    /// How much of it is done, after that time and with that many operations: from 0, also without a limit, to 1.
    pub(super) fn part(self, time: Duration, operations: u64) -> f64 {
        let of_time = self.time.map_or(0.0, |all| time.as_secs_f64() / all.as_secs_f64());
        let of_operations = self.operations.map_or(0.0, |all| operations as f64 / all.get() as f64);
        of_time.max(of_operations).min(1.0)
    }
}

impl Pace {
    /// Operations a second, of late.
    fn speed(&mut self, done: u64) -> u64 {
        let now = Instant::now();
        let (then, before) = *self.samples.front().unwrap_or(&(now, done));
        self.samples.push_back((now, done));
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        let millis = u64::try_from((now - then).as_millis()).unwrap_or(u64::MAX);
        (done - before).saturating_mul(1000).checked_div(millis).unwrap_or_default()
    }
}
