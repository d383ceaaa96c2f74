//! Connections that were held for long: leaked, or only slow.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::pool::Instant;

use super::analysis::Use;
use crate::clock::Clock;
use crate::text::{counted, span};

/// The long uses of a trace.
#[derive(Clone, Debug)]
pub(super) struct Leaks {
    /// Uses longer than this.
    pub(super) limit: Duration,
    /// Where that limit is from.
    pub(super) source: &'static str,
    /// In use at the end of the trace, longest first.
    pub(super) held: Vec<Use>,
    /// Checked in, longest first.
    pub(super) slow: Vec<Use>,
    pub(super) end: Instant,
    longest_use: Option<Duration>,
}

impl Leaks {
    /// From the uses that are open at the `end`, the longest ones that ended, and the quantiles of all
    /// that ended. The limit is the one that was asked for, or the trace's own, or 20 times the median.
    pub(super) fn new(
        open: impl Iterator<Item = Use>,
        ended: Vec<Use>,
        (median, longest_use): (Option<Duration>, Option<Duration>),
        (asked, threshold): (Option<Duration>, Option<Duration>),
        end: Instant,
    ) -> Self {
        let (limit, source) = match (asked, threshold.filter(|limit| !limit.is_zero()), median) {
            (Some(asked), _, _) => (asked, "as asked"),
            (None, Some(threshold), _) => (threshold, "the trace's leakDetectionThreshold"),
            (None, None, Some(median)) => (LEAK_FACTOR * median, "20 times the median use"),
            (None, None, None) => (Duration::ZERO, "no use ended"),
        };
        let mut held: Vec<_> = open.filter(|open| open.held(end) > limit).collect();
        held.sort_by_key(|open| (open.since, open.connection));
        let slow = ended.into_iter().filter(|ended| ended.held(end) > limit).collect();
        Self { limit, source, held, slow, end, longest_use }
    }

    /// Those that look leaked: they were held for longer than every use that ended.
    pub(super) fn leaked(&self) -> impl Iterator<Item = &Use> {
        self.held.iter().filter(|open| self.looks_leaked(open))
    }

    pub(super) fn looks_leaked(&self, open: &Use) -> bool {
        self.longest_use.is_none_or(|longest| open.held(self.end) > longest)
    }

    /// How many of them were held at this time.
    pub(super) fn leaked_at(&self, at: Instant) -> usize {
        self.leaked().filter(|open| open.since <= at).count()
    }

    /// Where most of the leaked ones were checked out.
    pub(super) fn places(&self) -> String {
        let mut counts = BTreeMap::<&str, usize>::new();
        for place in self.leaked().filter_map(|open| open.place.as_deref()) {
            *counts.entry(place).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|&(place, count)| (Reverse(count), place));
        let listed: Vec<_> =
            counts.iter().take(PLACES).map(|(place, count)| format!("{place} ({count})")).collect();
        let more = if counts.len() > PLACES { ", …" } else { "" };
        if listed.is_empty() {
            return String::new();
        }
        format!("; checked out at {}{more}", listed.join(", "))
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        let limit = format!("{} ({})", span(self.limit), self.source);
        let (leaked, held) = (self.leaked().count(), self.held.len());
        if held + self.slow.len() == 0 {
            return format!("none: no connection was held for more than {limit}");
        }
        let mut text = match leaked {
            0 => "none".to_owned(),
            count => {
                let listed = self.leaked().take(LISTED).map(|it| format!("c{}", it.connection));
                let more = if count > LISTED { ", …" } else { "" };
                let listed: Vec<_> = listed.collect();
                format!(
                    "{} not checked in, held for longer than any use that ended: {}{more}{}",
                    counted(count as u64, "connection", "connections"),
                    listed.join(", "),
                    self.places()
                )
            }
        };
        if held > leaked {
            let _ = write!(text, "; {} in use at the end for more than {limit}", held - leaked);
        }
        if !self.slow.is_empty() {
            let slow = counted(self.slow.len() as u64, "was", "were");
            let _ = write!(text, "; {slow} only slow, held for more than {limit} and checked in");
        }
        text
    }

    /// A line for each of them, up to this many.
    pub(super) fn table(&self, clock: &Clock, at_most: usize) -> String {
        let limit = format!("{} ({})", span(self.limit), self.source);
        let mut text = String::new();
        let (leaked, other): (Vec<_>, Vec<_>) =
            self.held.iter().partition(|open| self.looks_leaked(open));
        let titles = [
            ("look leaked: not checked in, and held for longer than any use that ended", leaked),
            ("in use at the end, but not for longer than the longest use that ended", other),
            ("only slow: checked in", self.slow.iter().collect()),
        ];
        let (mut is_empty, mut left) = (true, at_most);
        for (title, uses) in titles.into_iter().filter(|(_, uses)| !uses.is_empty()) {
            is_empty = false;
            let _ = writeln!(text, "{} {title}", uses.len());
            for one in uses.iter().take(left) {
                let _ = writeln!(text, "{}", self.one(one, clock));
            }
            let more = uses.len().saturating_sub(left);
            if more > 0 {
                let _ = writeln!(text, "  and {more} more: --all lists them");
            }
            left = left.saturating_sub(uses.len());
        }
        if is_empty {
            let _ = writeln!(text, "no connection was held for more than {limit}");
        } else {
            let _ =
                writeln!(text, "listed are uses of more than {limit}; --longer-than changes that");
        }
        text
    }

    pub(super) fn one(&self, it: &Use, clock: &Clock) -> String {
        let holder = it.holder.map_or("an unknown request".to_owned(), |id| id.to_string());
        let place = it.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
        let (held, name) = (span(it.held(self.end)), format!("c{}", it.connection));
        let since = match it.step {
            0 => "before the trace".to_owned(),
            step => format!("{}, step {step}", clock.both(it.since)),
        };
        let mut line =
            format!("  {name:<6} by {holder}{place}, checked out at {since}, held for {held}");
        if let Some(reported) = it.reported {
            let _ = write!(line, ", reported at {}", clock.short(reported));
        }
        if let Some((until, errored)) = it.until {
            let how = if errored { "with an error" } else { "healthy" };
            let _ = write!(line, ", checked in {how} at {}", clock.short(until));
        }
        line
    }
}

/// Without another limit, a use that is this many times as long as the median is long.
const LEAK_FACTOR: u32 = 20;
const LISTED: usize = 8;
/// Places that are named.
const PLACES: usize = 3;
