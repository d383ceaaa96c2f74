//! Explores every sequence of inputs up to a depth, on small pools.
//!
//! Random runs find likely bugs; this finds all up to a depth. From a new pool, every step that a
//! shell could take, valid or not, is taken and checked as in [`lockstep`](crate::lockstep); then
//! the same from every new state, until the depth is reached.
//!
//! **Distinct.** Two states are the same if they answer every future alike, except for a shift of
//! time and of the numbers of connections and requests: [`Model::write_key`] says what counts, and
//! in addition the present options and the number of requests that may still come. So times count
//! as distances from now, a generation as current or stale, a closed connection only as "one
//! exists". Slots count, because the machine's behaviour could depend on them; the next free slot
//! does not, so the number of states may depend on the order of the search by a few in a million.
//! Keys are compared by 64 bits of hash: among ten million states, the probability that two share a
//! hash is about 3 in a million; then one of them is skipped.
//!
//! **Endings.** From every state that is found, the environment behaves: it answers what is pending, returns what is
//! out, reads late replies, and lets time pass. Then every request has its answer, the minimum is reached, and a close
//! leaves nothing.
//!
//! A reported failure has the shortest path in its configuration.
//!
//! [`Model::write_key`]: crate::model::Model::write_key

mod ending;
mod search;
mod steps;

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions, ReuseOrder};

use crate::lockstep::Failure;

/// A pool to explore, and the steps that it may take.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The name in the report.
    pub name: &'static str,
    /// The pool's options.
    pub options: PoolOptions,
    /// Options that may be set, and from which the first ones may be set again.
    pub other_options: Vec<PoolOptions>,
    /// The largest number of check-outs in one run.
    pub requests: u64,
    /// The callers' deadlines, in nanoseconds from now.
    pub deadlines: Vec<Option<u64>>,
    /// Whether time passes. If not, everything happens at once, and fewer states differ.
    pub timed: bool,
    /// The number of services, in load-balanced mode.
    pub services: u8,
}

/// The result of one configuration.
#[derive(Debug)]
pub struct Line {
    /// The configuration's name.
    pub name: &'static str,
    /// The length of the sequences that were checked completely.
    pub depth: u32,
    /// The number of distinct states.
    pub states: u64,
    /// The number of accepted inputs.
    pub transitions: u64,
    /// The number of refused inputs.
    pub refusals: u64,
    /// The shortest sequence that fails.
    pub failure: Option<Box<Failure>>,
}

/// The results of an exploration.
#[derive(Debug)]
pub struct Report {
    /// One line for each configuration, in their order.
    pub lines: Vec<Line>,
}

/// Explores each configuration up to a depth, with this many threads. The report does not depend on
/// their number.
pub fn explore(configurations: &[Configuration], depth: u32, threads: usize) -> Report {
    explore_until(configurations, depth, threads, &AtomicBool::new(false))
}

/// As [`explore`], until `stop` is set: each line says which depth was completed, and
/// configurations that were not begun have no line.
pub fn explore_until(
    configurations: &[Configuration],
    depth: u32,
    threads: usize,
    stop: &AtomicBool,
) -> Report {
    let todo = Mutex::new((0..configurations.len()).rev().collect::<Vec<_>>());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, configurations.len().max(1)) {
            scope.spawn(|| {
                while let Some(index) = pop(&todo).filter(|_| !stop.load(Ordering::Relaxed)) {
                    let line = search::search(&configurations[index], depth, stop);
                    lock(&done).push((index, line));
                }
            });
        }
    });
    let mut lines = done.into_inner().expect("no thread panicked");
    lines.sort_by_key(|(index, _)| *index);
    Report { lines: lines.into_iter().map(|(_, line)| line).collect() }
}

fn pop(todo: &Mutex<Vec<usize>>) -> Option<usize> {
    lock(todo).pop()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no thread panicked")
}

impl Report {
    /// The number of distinct states in all configurations.
    pub fn states(&self) -> u64 {
        self.lines.iter().map(|line| line.states).sum()
    }

    /// The number of inputs that were checked, accepted and refused.
    pub fn judged(&self) -> u64 {
        self.lines.iter().map(|line| line.transitions + line.refusals).sum()
    }

    /// The failures.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.lines.iter().filter_map(|line| line.failure.as_deref())
    }
}

/// A table, followed by the scripts of failures.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<36} {:>5} {:>12} {:>12} {:>12}",
            "configuration", "depth", "states", "transitions", "refusals"
        )?;
        for line in &self.lines {
            let Line { name, depth, states, transitions, refusals, failure } = line;
            write!(f, "{name:<36} {depth:>5} {states:>12} {transitions:>12} {refusals:>12}")?;
            writeln!(f, "{}", if failure.is_some() { "  FAILED" } else { "" })?;
        }
        let (transitions, refusals): (u64, u64) = self
            .lines
            .iter()
            .fold((0, 0), |(a, b), line| (a + line.transitions, b + line.refusals));
        writeln!(
            f,
            "{:<36} {:>5} {:>12} {transitions:>12} {refusals:>12}",
            "all",
            "",
            self.states()
        )?;
        for line in &self.lines {
            if let Some(failure) = &line.failure {
                writeln!(f, "\n{}: {failure}", line.name)?;
            }
        }
        Ok(())
    }
}

impl Configuration {
    /// Pools of size 0 (unlimited), 1 and 2, with and without a load balancer, with and without
    /// time, with and without late replies. Those with the most states come first, to balance the load of two threads.
    pub fn standard() -> Vec<Self> {
        vec![
            Self::new("no limit, life 3 ns, held 2 ns", {
                small(0).with_max_lifetime(nanos(3)).with_leak_detection_threshold(nanos(2))
            })
            .timed(&[None]),
            Self::new("balanced, no limit, min 1, timed", {
                let options = small(0).with_load_balanced(true).with_min_pool_size(1);
                options.with_max_idle_time(nanos(1))
            })
            .balanced()
            .timed(&[None, Some(1)])
            .asked(3),
            Self::new("no limit, min 1, idle and wait 2 ns", {
                let options = small(0).with_min_pool_size(1).with_max_connecting(1);
                options.with_max_idle_time(nanos(2)).with_wait_queue_timeout(nanos(2))
            })
            .timed(&[None, Some(1)]),
            Self::new("max 2, min 1, all limits on time", {
                let options = small(2).with_min_pool_size(1).with_max_connecting(1);
                let options =
                    options.with_max_idle_time(nanos(2)).with_leak_detection_threshold(nanos(1));
                options.with_wait_queue_timeout(nanos(3)).with_unanswered_threshold(nanos(2))
            })
            .timed(&[None, Some(1)]),
            Self::new("max 1", small(1)),
            Self::new("max 2, connecting 1, options change", small(2).with_max_connecting(1))
                .changing(vec![
                    small(1).with_max_connecting(2),
                    small(2).with_maintenance(Maintenance::Never),
                ]),
            Self::new("no limit, min 2, oldest first", {
                small(0).with_min_pool_size(2).with_reuse_order(ReuseOrder::LeastRecentlyUsed)
            }),
            Self::new("balanced, max 2", small(2).with_load_balanced(true)).balanced(),
            Self::new("max 1, wait 2 ns, deadlines", small(1).with_wait_queue_timeout(nanos(2)))
                .timed(&[None, Some(0), Some(1)]),
            Self::new("max 1, at most 1 waits", small(1).with_max_wait_queue_size(1))
                .changing(vec![small(2).with_max_connecting(1).with_max_wait_queue_size(2)]),
            Self::new("max 1, shed above 1 ns for 2 ns", {
                small(1).with_codel_target(nanos(1)).with_codel_interval(nanos(2))
            })
            .timed(&[None, Some(2)])
            .asked(3),
            Self::new("no limit, adaptive", {
                small(0).with_max_connecting(2).with_adaptive_connecting(true)
            })
            .timed(&[None])
            .asked(3),
            Self::new("max 2, min 1, backoff 1 ns", {
                let options = small(2).with_min_pool_size(1).with_overload_backoff(nanos(1));
                options.with_maintenance(Maintenance::PauseAfterFailure(nanos(1)))
            })
            .timed(&[None])
            .asked(3),
            Self::new("max 2, min 1, idle 1 ns", {
                small(2).with_min_pool_size(1).with_max_idle_time(nanos(1))
            })
            .timed(&[None]),
            Self::new("max 1, idle 1 ns, no maintenance", {
                let options = small(1).with_max_idle_time(nanos(1)).with_min_pool_size(1);
                options.with_maintenance(Maintenance::Never)
            })
            .timed(&[None])
            .changing(vec![small(1).with_max_lifetime(nanos(2))]),
            Self::new("max 2, late replies", {
                let options = small(2).with_max_connecting(1).with_wait_queue_timeout(nanos(2));
                options.with_experimental_pending_response(true)
            })
            .timed(&[None, Some(1)])
            .asked(3),
            Self::new("balanced, max 2, late replies", {
                small(2).with_load_balanced(true).with_experimental_pending_response(true)
            })
            .balanced()
            .asked(3),
        ]
    }

    fn new(name: &'static str, options: PoolOptions) -> Self {
        Self {
            name,
            options,
            other_options: Vec::new(),
            requests: 4,
            deadlines: vec![None],
            timed: false,
            services: 0,
        }
    }

    fn balanced(mut self) -> Self {
        self.services = 2;
        self
    }

    fn changing(mut self, to: Vec<PoolOptions>) -> Self {
        self.other_options = to;
        self
    }

    fn timed(mut self, deadlines: &[Option<u64>]) -> Self {
        self.timed = true;
        self.deadlines = deadlines.to_vec();
        self
    }

    /// Fewer requests, in configurations whose state space would otherwise be much larger than the
    /// others.
    fn asked(mut self, requests: u64) -> Self {
        self.requests = requests;
        self
    }

    fn keeps_late_replies(&self) -> bool {
        self.all_options().any(|options| options.experimental_pending_response == Some(true))
    }

    fn all_options(&self) -> impl Iterator<Item = &PoolOptions> {
        std::iter::once(&self.options).chain(&self.other_options)
    }
}

fn small(max: u32) -> PoolOptions {
    let pause = Maintenance::PauseAfterFailure(nanos(2));
    PoolOptions::default().with_max_pool_size(max).with_maintenance(pause)
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}
