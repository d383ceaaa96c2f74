//! Connections that were held for long: leaked, or only slow.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::pool::Instant;

use super::analysis::Use;
use super::statistics::{Intervals, Sample};
use crate::clock::Clock;
use crate::text::{counted, grouped, span};

/// The long uses of a trace.
#[derive(Clone, Debug)]
pub(super) struct Leaks {
    /// Uses longer than this.
    pub(super) limit: Duration,
    /// Where that limit is from.
    pub(super) source: &'static str,
    /// The trace's leakDetectionThreshold.
    threshold: Option<Duration>,
    /// In use at the end of the trace, longest first.
    pub(super) open: Vec<Use>,
    /// The longest that were checked in, longest first.
    ended: Vec<Use>,
    pub(super) end: Instant,
    uses: Ended,
}

/// The uses that ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    median: Option<Duration>,
    /// When those of a sample began, in order.
    begins: Vec<Instant>,
    /// How many of all one of the sample stands for.
    stride: u64,
}

impl Ended {
    /// From when each of a sample ended, and how long it was.
    pub(super) fn of(sample: &Sample<(Instant, Duration)>, median: Option<Duration>) -> Self {
        let mut begins: Vec<_> =
            sample.items().iter().map(|&(end, length)| begin(end, length)).collect();
        begins.sort_unstable();
        Self { median, begins, stride: sample.stride() }
    }

    /// How many of them began after this time.
    fn begun_after(&self, at: Instant) -> u64 {
        let earlier = self.begins.partition_point(|&begin| begin <= at);
        (self.begins.len() - earlier) as u64 * self.stride
    }
}

impl Leaks {
    /// From the uses that are open at the `end`, the longest ones that ended, and what all that ended have in common. The
    /// limit is the one that was asked for, or the trace's own, or 20 times the median.
    pub(super) fn new(
        open: impl Iterator<Item = Use>,
        ended: Vec<Use>,
        uses: Ended,
        (asked, threshold): (Option<Duration>, Option<Duration>),
        end: Instant,
    ) -> Self {
        let threshold = threshold.filter(|limit| !limit.is_zero());
        let (limit, source) = match (asked, threshold, uses.median) {
            (Some(asked), _, _) => (asked, "as asked"),
            (None, Some(threshold), _) => (threshold, "the trace's leakDetectionThreshold"),
            (None, None, Some(median)) => (LEAK_FACTOR * median, "20 times the median use"),
            (None, None, None) => (Duration::ZERO, "no use ended"),
        };
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|open| (open.since, open.connection));
        Self { limit, source, threshold, open, ended, end, uses }
    }

    /// Those in use at the end that were held for long.
    pub(super) fn held(&self) -> impl Iterator<Item = &Use> {
        self.open.iter().filter(|open| open.held(self.end) > self.limit)
    }

    /// Those that were checked in, and held for long.
    pub(super) fn slow(&self) -> impl Iterator<Item = &Use> {
        self.ended.iter().filter(|ended| ended.held(self.end) > self.limit)
    }

    /// Those that look leaked.
    pub(super) fn leaked(&self) -> impl Iterator<Item = &Use> {
        self.open.iter().filter(|open| self.looks_leaked(open))
    }

    /// A use that is open looks leaked if it was held for longer than every use that ended, and if so many have begun after
    /// it and ended that those beside it cannot be its kind: when a server becomes slow, few do. Or if it is many times as
    /// long as the program says that a use ever is.
    pub(super) fn looks_leaked(&self, open: &Use) -> bool {
        let held = open.held(self.end);
        let is_too_long = self.threshold.is_some_and(|threshold| held > LONG * threshold);
        let came_back = self.uses.begun_after(open.since) >= TURNS * self.open.len() as u64;
        self.is_longest(open) && held > self.usual() && (came_back || is_too_long)
    }

    /// Uses are hardly ever longer.
    fn usual(&self) -> Duration {
        LEAK_FACTOR * self.uses.median.unwrap_or_default()
    }

    fn is_longest(&self, open: &Use) -> bool {
        self.ended.first().is_none_or(|longest| open.held(self.end) > longest.held(self.end))
    }

    /// Those in use at the end that were checked out by then.
    fn open_since(&self, by: Instant) -> impl Iterator<Item = &Use> {
        self.open.iter().filter(move |open| open.since <= by)
    }

    /// Slow or leaked, of those that were checked out by then: held for longer than every use that ended, and for much longer
    /// than usual, but that is all that the trace shows.
    fn unclear(&self, by: Instant) -> impl Iterator<Item = &Use> {
        self.open_since(by).filter(|open| {
            self.is_longest(open) && !self.looks_leaked(open) && open.held(self.end) > self.usual()
        })
    }

    /// Whether half of those that were checked out by then are slow or leaked, or more.
    pub(super) fn are_unclear(&self, by: Instant) -> bool {
        2 * self.unclear(by).count() >= self.open_since(by).count()
    }

    /// How many there are that are slow or leaked, and for how long they were held.
    pub(super) fn tell_unclear(&self, by: Instant) -> Option<String> {
        let held: Vec<_> = self.unclear(by).map(|open| open.held(self.end)).collect();
        let (oldest, youngest) = (held.first()?, held.last()?);
        let count = counted(held.len() as u64, "use is open", "uses are open");
        let times = if span(*oldest) == span(*youngest) {
            span(*oldest)
        } else {
            format!("{} to {}", span(*youngest), span(*oldest))
        };
        let ended =
            if self.ended.is_empty() { ", and none ended" } else { ", longer than any that ended" };
        let places = places(self.unclear(by));
        Some(format!(
            "{count} when the trace ends, for {times}{ended}{places}: slow or leaked; it ends too early \
             to tell"
        ))
    }

    /// The uses of more than 20 times the median, if they held most of the time of the connections in these intervals.
    pub(super) fn tell_heavy(
        &self,
        sample: &Sample<(Instant, Duration)>,
        during: &Intervals,
    ) -> Option<String> {
        let usual = LEAK_FACTOR * self.uses.median?;
        let ended = sample.items().iter();
        let ended = ended.map(|&(end, length)| (begin(end, length), end, self.uses.stride));
        let open = self.open.iter().map(|open| (open.since, self.end, 1));
        let (mut all, mut heavy) = (Share::default(), Share::default());
        for (from, to, count) in ended.chain(open) {
            let then = during.overlap(from, to);
            if then.is_zero() {
                continue;
            }
            all.add(then, count);
            if to.saturating_since(from) > usual {
                heavy.add(then, count);
            }
        }
        if heavy.count == 0 || heavy.time < HEAVY * all.time {
            return None;
        }
        let longest = self.ended.iter().chain(&self.open).filter(|it| {
            let to = it.until.map_or(self.end, |(until, _)| until);
            it.held(self.end) > usual && !during.overlap(it.since, to).is_zero()
        });
        Some(format!(
            "slow uses: {} of {} held {:.0} % of the connections' time then{}",
            grouped(heavy.count),
            grouped(all.count),
            100.0 * heavy.time / all.time,
            places(longest)
        ))
    }

    /// How many of the leaked ones were held at this time.
    pub(super) fn leaked_at(&self, at: Instant) -> usize {
        self.leaked().filter(|open| open.since <= at).count()
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        let limit = format!("{} ({})", span(self.limit), self.source);
        let (leaked, held, slow) =
            (self.leaked().count(), self.held().count(), self.slow().count());
        let unclear = self.tell_unclear(self.end);
        let mut text = match (leaked, &unclear) {
            (0, None) if held + slow == 0 => {
                return format!("none: no connection was held for more than {limit}");
            }
            (0, None) => "none".to_owned(),
            (0, Some(unclear)) => unclear.clone(),
            (count, _) => {
                let listed = self.leaked().take(LISTED).map(|it| format!("c{}", it.connection));
                let more = if count > LISTED { ", …" } else { "" };
                let listed: Vec<_> = listed.collect();
                format!(
                    "{} not checked in, held for longer than any use that ended: {}{more}{}",
                    counted(count as u64, "connection", "connections"),
                    listed.join(", "),
                    places(self.leaked())
                )
            }
        };
        if let Some(unclear) = unclear.filter(|_| leaked > 0) {
            let _ = write!(text, "; {unclear}");
        } else if held > leaked + self.unclear(self.end).count() {
            let _ = write!(text, "; {} in use at the end for more than {limit}", held - leaked);
        }
        if slow > 0 {
            let slow = counted(slow as u64, "was", "were");
            let _ = write!(text, "; {slow} only slow, held for more than {limit} and checked in");
        }
        text
    }

    /// A line for each of them, up to this many.
    pub(super) fn table(&self, clock: &Clock, at_most: usize) -> String {
        let limit = format!("{} ({})", span(self.limit), self.source);
        let mut text = String::new();
        let (leaked, other): (Vec<_>, Vec<_>) =
            self.held().partition(|open| self.looks_leaked(open));
        let (unclear, other): (Vec<_>, Vec<_>) =
            other.into_iter().partition(|open| self.is_longest(open));
        let titles = [
            ("look leaked: not checked in, and held for longer than any use that ended", leaked),
            (
                "slow or leaked: in use at the end, and held for longer than any use that ended",
                unclear,
            ),
            ("in use at the end, but not for longer than the longest use that ended", other),
            ("only slow: checked in", self.slow().collect()),
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
/// Uses that hold this part of the connections' time are the cause of waits.
const HEAVY: f64 = 0.75;
/// So many times the threshold: longer than any use.
const LONG: u32 = 10;
/// So many uses for each connection in use at the end, which began after a use and ended, tell that it is leaked.
const TURNS: u64 = 20;
const LISTED: usize = 8;
/// Places that are named.
const PLACES: usize = 3;

/// When a use began that ended then, and was so long.
fn begin(end: Instant, length: Duration) -> Instant {
    let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(end.as_nanos().saturating_sub(length))
}

/// Uses, and the time that they held connections, in seconds.
#[derive(Default)]
struct Share {
    count: u64,
    time: f64,
}

impl Share {
    fn add(&mut self, held: Duration, count: u64) {
        self.count += count;
        self.time += held.as_secs_f64() * count as f64;
    }
}

/// Where most of these were checked out.
fn places<'u>(uses: impl Iterator<Item = &'u Use>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for place in uses.filter_map(|it| it.place.as_deref()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn used(connection: u64, since: u64, until: Option<u64>, place: &str) -> Use {
        let (since, until) = (at(since), until.map(|until| (at(until), false)));
        let place = Some(place.into());
        Use { connection, holder: None, place, since, step: 1, until, reported: None }
    }

    /// Of a pool in whose first `busy` milliseconds a use of 4 ms ended in each, and some others did.
    fn leaks(
        busy: u64,
        others: &[Use],
        open: &[Use],
        end: u64,
    ) -> (Leaks, Sample<(Instant, Duration)>) {
        let mut sample = Sample::default();
        let mut ended: Vec<_> =
            (4..busy).map(|ms| used(ms, ms - 4, Some(ms), "fast.rs:1")).collect();
        ended.extend_from_slice(others);
        ended.sort_by_key(|it| Reverse(it.held(at(end))));
        for it in &ended {
            sample.add((it.until.expect("it ended").0, it.held(at(end))));
        }
        let uses = Ended::of(&sample, Some(Duration::from_millis(4)));
        (Leaks::new(open.iter().cloned(), ended, uses, (None, None), at(end)), sample)
    }

    /// A dump at the first time-out: what is slow has not ended yet.
    #[test]
    fn uses_that_became_slow_together_are_not_called_leaked() {
        let open: Vec<_> = (1..=10).map(|n| used(n, 9_990 + n, None, "orders.rs:22")).collect();
        let (leaks, _) = leaks(10_000, &[], &open, 10_302);
        assert_eq!(leaks.leaked().count(), 0);
        let told = "10 uses are open when the trace ends, for 302 ms to 311 ms, longer than any that ended; \
                    checked out at orders.rs:22 (10): slow or leaked; it ends too early to tell";
        assert_eq!(leaks.tell_unclear(at(10_200)).as_deref(), Some(told));
        assert_eq!(leaks.tell_unclear(at(9_000)), None, "waits before have another cause");
        assert_eq!(leaks.line(), told);
    }

    #[test]
    fn leaked_ones_are_told_from_those_beside_them() {
        let leaked = [2_000, 4_000, 6_000, 8_000];
        let leaked = leaked.into_iter().zip(1..).map(|(at, n)| used(n, at, None, "report.rs:88"));
        let beside = (5..=10).map(|n| used(n, 9_990 + n, None, "orders.rs:22"));
        let open: Vec<_> = beside.chain(leaked).collect();
        let (leaks, _) = leaks(10_000, &[], &open, 10_200);
        let line = leaks.line();
        let told = "4 connections not checked in, held for longer than any use that ended: c1, c2, c3, c4; \
                    checked out at report.rs:88 (4); 6 uses are open when the trace ends, for 200 ms";
        assert!(line.starts_with(told), "{line}");
    }

    #[test]
    fn few_uses_that_hold_most_of_the_time_are_named() {
        let slow: Vec<_> =
            (0..10).map(|n| used(n, 1_000 * n, Some(1_000 * n + 9_000), "orders.rs:22")).collect();
        let (leaks, sample) = leaks(10_000, &slow, &[], 20_000);
        let told = leaks.tell_heavy(&sample, &Intervals::of(&[(at(0), at(20_000))]));
        assert_eq!(told, None, "they held 69 %");
        let told = leaks.tell_heavy(&sample, &Intervals::of(&[(at(9_000), at(20_000))]));
        let heavy = "slow uses: 9 of 1,008 held 92 % of the connections' time then; checked out at \
                     orders.rs:22 (9)";
        assert_eq!(told.as_deref(), Some(heavy));
        assert_eq!(leaks.tell_heavy(&sample, &Intervals::of(&[(at(30_000), at(40_000))])), None);
    }
}
