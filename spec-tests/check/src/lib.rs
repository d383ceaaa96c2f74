//! Judges a stream of events: whether a pool that tells this keeps the rules.
//!
#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/testing.md)"))]
//!
//! What a pool did can be seen in its events alone: in which order they came, for each connection
//! and for all of it, and how many there were of each at any time. The rules are functions in a
//! table, one for each, with the id of what the specification says. They need nothing but the
//! events: those of any driver that writes such lines can be judged.
//!
//! ```
//! use cenote_check::Limits;
//!
//! let events = r#"
//! {"at": 0.0, "type": "ConnectionPoolCreated", "address": "a:1", "options": {"maxPoolSize": 1}}
//! {"at": 0.1, "type": "ConnectionPoolReady", "address": "a:1"}
//! {"at": 0.2, "type": "ConnectionCheckOutStarted", "address": "a:1"}
//! {"at": 0.2, "type": "ConnectionCreated", "address": "a:1", "connectionId": 1}
//! {"at": 0.3, "type": "ConnectionCheckedOut", "address": "a:1", "connectionId": 1, "durationMS": 100}
//! "#;
//! let report = cenote_check::check(events.as_bytes(), Limits::default())?;
//! assert_eq!(
//!     report.findings[0].to_string(),
//!     "line 6: T-10: connection 1 is checked out, but was not ready"
//! );
//! # Ok::<(), cenote_check::Unreadable>(())
//! ```
//!
//! # What is not checked
//!
//! Rules about counts and steps inside of the pool, which no event shows; a clear that comes too late,
//! which looks like a peer that closes idle connections; and the order of service, because requests
//! have no ids in events. Two changes of a pool are in no event: new options while it runs, and a fork
//! of its process. A test that does either adds a line about it ([`Line::options_changed`],
//! [`Line::reset_after_fork`]).
// No event shows T-03, T-04, T-11, T-12 and T-13.

#![forbid(unsafe_code)]

mod event_guard;
pub mod event_json;
mod events;
mod line;
mod log;
mod pool;
mod rules;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};
use std::sync::Arc;

use cenote_core::error::OneLine;
use thiserror::Error;

pub use self::event_guard::EventGuard;
pub use self::events::Events;
pub use self::line::{Kind, Line, LineError, Options};
use self::pool::Pool;

/// What the pool may do at most, where it is not what the options of its ConnectionPoolCreated say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `maxPoolSize`; 0 is no limit.
    pub max: Option<u32>,
    /// `maxConnecting`.
    pub connecting: Option<u32>,
}

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The number of the line, from 1; that of the last one for what is missing at the end.
    pub line: u64,
    /// The id of the rule.
    pub rule: &'static str,
    /// What is wrong.
    pub what: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where rules are broken, in the order of the lines: the first [`MAX_FINDINGS`] of them, and the first of each
    /// rule.
    pub findings: Vec<Finding>,
    /// How often each rule is broken.
    pub rules: BTreeMap<&'static str, u64>,
    /// How many there are in all.
    pub broken: u64,
    /// Events that were judged.
    pub events: u64,
    /// Pools that were created.
    pub pools: u64,
    /// Connections that were created.
    pub connections: u64,
    /// Check-outs that were started.
    pub check_outs: u64,
}

/// One mistake in a pool can break a rule at each event that follows.
pub const MAX_FINDINGS: usize = 1000;

/// What cannot be judged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Reading failed.
    #[error("line {line}: {reason}")]
    Io {
        /// The number of the line, from 1.
        line: u64,
        /// Why.
        reason: io::Error,
    },
    /// A line is no event.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// Why.
        reason: LineError,
    },
    /// Neither events nor a log that tells of them.
    #[error(
        "there are no events in JSON, one a line, nor messages of a driver's log of the component `connection`; \
         line {line}: {reason}"
    )]
    NoEvents {
        /// The number of the first line.
        line: u64,
        /// Why it is no event.
        reason: LineError,
    },
    /// There is nothing in it.
    #[error("there are no events")]
    Empty,
}

/// Judges lines of JSON, one event each, or the log of a driver: see [`Events`]. Empty lines mean nothing.
///
/// # Errors
///
/// What cannot be read, with the number of its line.
pub fn check(lines: impl BufRead, limits: Limits) -> Result<Report, Unreadable> {
    let mut checker = Checker::new(limits);
    for event in Events::new(lines) {
        let (number, event) = event?;
        checker.tell_from(number, &event);
    }
    match checker.report.events {
        0 => Err(Unreadable::Empty),
        _ => Ok(checker.finish()),
    }
}

/// Judges events as they come, of any number of pools with an address each.
#[derive(Debug, Default)]
pub struct Checker {
    limits: Limits,
    pools: BTreeMap<Arc<str>, Pool>,
    line: u64,
    report: Report,
}

impl Checker {
    /// Nothing has been told yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The next event.
    pub fn tell(&mut self, event: &Line) {
        self.tell_from(self.line + 1, event);
    }

    fn tell_from(&mut self, number: u64, event: &Line) {
        self.line = number;
        self.report.count(event);
        if !self.pools.contains_key(&event.address) {
            self.pools.insert(event.address.clone(), Pool::new(self.limits));
        }
        let Some(pool) = self.pools.get_mut(&event.address) else { return };
        for (rule, what) in rules::broken_by(pool, event) {
            self.report.found(Finding { line: number, rule, what });
        }
        pool.apply(event);
    }

    /// What was found up to now.
    #[must_use]
    pub const fn so_far(&self) -> &Report {
        &self.report
    }

    /// There are no more events. A pool that said that it is closed must have come to its end;
    /// of others the stream may be a part only.
    #[must_use]
    pub fn finish(mut self) -> Report {
        for pool in self.pools.values() {
            for (rule, what) in rules::broken_at_the_end(pool) {
                self.report.found(Finding { line: self.line, rule, what });
            }
        }
        self.report
    }
}

impl Report {
    /// Whether no rule is broken.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.broken == 0
    }

    /// A line for each rule that is broken, the most often broken one first: the first finding, and how often there is
    /// another one. Then what was judged.
    #[must_use]
    pub fn by_rule(&self) -> impl fmt::Display + '_ {
        ByRule(self)
    }

    fn count(&mut self, line: &Line) {
        self.events += u64::from(line.kind.is_event());
        self.pools += u64::from(line.kind == Kind::ConnectionPoolCreated);
        self.connections += u64::from(line.kind == Kind::ConnectionCreated);
        self.check_outs += u64::from(line.kind == Kind::ConnectionCheckOutStarted);
    }

    fn write_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { broken, events, pools, connections, check_outs, .. } = self;
        write!(
            f,
            "{events} events, {pools} pools, {connections} connections, {check_outs} check-outs: "
        )?;
        match broken {
            0 => writeln!(f, "no rule is broken"),
            _ => writeln!(f, "rules are broken {broken} times"),
        }
    }

    fn found(&mut self, finding: Finding) {
        self.broken += 1;
        let times = self.rules.entry(finding.rule).or_default();
        *times += 1;
        if *times == 1 || self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, rule, what } = self;
        write!(f, "line {line}: {rule}: {}", OneLine::text(what))
    }
}

/// What was found, a line each, and what was judged.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        self.write_counts(f)
    }
}

/// See [`Report::by_rule`].
struct ByRule<'a>(&'a Report);

impl fmt::Display for ByRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let mut rules: Vec<_> = report.rules.iter().collect();
        rules.sort_by_key(|(_, times)| Reverse(**times));
        for (rule, times) in rules {
            let first = report.findings.iter().find(|finding| finding.rule == *rule);
            first.map_or(Ok(()), |first| write!(f, "{first}"))?;
            match times - 1 {
                0 => writeln!(f)?,
                1 => writeln!(f, " (and once more)")?,
                more => writeln!(f, " (and {more} times more)")?,
            }
        }
        report.write_counts(f)
    }
}

/// The README's example, compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
