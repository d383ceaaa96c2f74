//! What happened, in a few lines: requests by outcome and by what they waited for, leaks, clears, and the
//! longest waits.

use std::fmt::Write as _;
use std::io::Read;
use std::time::Duration;

use cenote_core::pool::Instant;
use cenote_core::trace::TraceHeader;

use super::analysis::{Analysis, Group, Members, Requests, Use};
use super::leaks::{Ended, Leaks};
use super::statistics::{Intervals, Quantiles, Sample};
use super::wait::{Counts, Failure, Obstacle, Outcome, Wait};
use crate::clock::Clock;
use crate::holders::{Activity, Holders};
use crate::step_reader::StepReader;
use crate::text::{counted, grouped, paragraph, span};
use crate::topology::{Reason, ServerHistory};

/// The result of an [`Analysis`].
#[derive(Clone, Debug)]
pub struct Findings {
    title: String,
    pub(super) address: Option<String>,
    pub(super) start: Instant,
    pub(super) steps: u64,
    pub(super) clock: Clock,
    pub(super) analysis: Analysis,
    pub(super) waiting: u64,
    /// Those of which the events do not tell the end, although later ones were served.
    pub(super) unended: u64,
    pub(super) groups: Vec<(Group, Members)>,
    pub(super) slowest: Vec<Wait>,
    pub(super) waits: Quantiles,
    /// The lengths of the uses that ended.
    pub(super) uses: Quantiles,
    pub(super) leaks: Leaks,
    max_pool_size: Option<u32>,
    max_connecting: u32,
    /// The connections that are being established at the end: since when, and the stage; the oldest first.
    pending: Vec<(Instant, String)>,
    /// What became of the server of the pool, if that is known.
    server: Option<ServerHistory>,
    /// By events: there is no trace that could tell more.
    is_told: bool,
}

/// What there is at the end of what was analysed.
pub(super) struct End<'a> {
    pub(super) title: String,
    pub(super) address: Option<String>,
    pub(super) start: Instant,
    pub(super) now: Instant,
    pub(super) steps: u64,
    pub(super) counts: Counts,
    pub(super) holders: &'a Holders,
    pub(super) unended: u64,
    /// From which time on a use is long: as asked, and by the pool's own threshold.
    pub(super) limits: (Option<Duration>, Option<Duration>),
    pub(super) is_told: bool,
}

impl Findings {
    /// What the analysis found in a trace that was read as far as it counts. Uses of more than `longer_than` count as long. With
    /// a server, clears and time-outs name the changes of the topology that they follow.
    pub fn new<R: Read>(
        analysis: Analysis,
        reader: &StepReader<R>,
        clock: Clock,
        longer_than: Option<Duration>,
        server: Option<ServerHistory>,
    ) -> Self {
        let (header, pool) = (reader.header(), reader.pool());
        let (options, now) = (pool.options(), pool.now());
        let end = End {
            title: title(header, &clock, reader.steps(), now),
            address: header.address.clone(),
            start: header.start,
            now,
            steps: reader.steps(),
            counts: Counts::of(&pool.snapshot(), options),
            holders: reader.holders(),
            unended: 0,
            limits: (longer_than, options.leak_detection_threshold),
            is_told: false,
        };
        Self::of(analysis, end, clock, server)
    }

    /// The same for what ends like this.
    pub(super) fn of(
        mut analysis: Analysis,
        end: End<'_>,
        clock: Clock,
        server: Option<ServerHistory>,
    ) -> Self {
        let End { title, address, start, now, steps, counts, holders, unended, limits, is_told } =
            end;
        let waiting = analysis.still_waiting(holders, now, counts);
        for wait in &waiting {
            analysis.slowest.add(wait.duration(), || wait.clone());
        }
        let durations = |sample: &Sample<(Instant, Duration)>| {
            Quantiles::of(sample.items().iter().map(|&(_, duration)| duration))
        };
        let (waits, uses) = (durations(&analysis.waits), durations(&analysis.uses));
        let ended = analysis.long_uses.take_sorted();
        let leaks = Leaks::new(
            holders.connections.iter().filter_map(|(&number, it)| Use::of(number, it, holders)),
            ended,
            Ended::of(&analysis.uses, uses.median()),
            limits,
            now,
        );
        for clear in &mut analysis.clears.all {
            clear.because =
                server.as_ref().and_then(|server| server.lost_at(clear.at, clear.follows));
        }
        let pending = holders.connections.iter().filter(|(_, it)| it.activity == Activity::Pending);
        let mut pending: Vec<_> =
            pending.map(|(&number, it)| (it.since, holders.stage(number, now))).collect();
        pending.sort();
        let mut groups: Vec<_> = std::mem::take(&mut analysis.groups).into_iter().collect();
        // Failures first, and the most frequent ones of these.
        groups.sort_by_key(|(group, members)| {
            (matches!(group, Group::Waited(_)), std::cmp::Reverse(members.count))
        });
        Self {
            title,
            address,
            start,
            steps,
            clock,
            waiting: waiting.len() as u64,
            unended,
            groups,
            slowest: analysis.slowest.take_sorted(),
            waits,
            uses,
            leaks,
            analysis,
            max_pool_size: counts.max,
            max_connecting: counts.max_connecting,
            pending,
            server,
            is_told,
        }
    }

    /// What happened, on one screen.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let of = if self.is_told { "events     " } else { "trace      " };
        paragraph(&mut text, of, &self.title);
        self.requests(&mut text);
        let shown = self.groups.iter().take(GROUPS);
        let mut has_failed = false;
        for (group, members) in shown {
            self.group(group, members, &mut text);
            // Requests that were served at last matter if none failed.
            let is_failed = matches!(group, Group::Failed(..));
            let cause = if has_failed && !is_failed { None } else { self.cause(group, members) };
            if let Some(cause) = cause {
                paragraph(&mut text, &format!("{:<11}-> ", ""), &cause);
            }
            has_failed |= is_failed;
        }
        let more = self.groups.len().saturating_sub(GROUPS);
        if more > 0 {
            let _ = writeln!(text, "{:<11}{more} more kinds of waits and failures", "");
        }
        paragraph(&mut text, "leaks      ", &self.leaks.line());
        paragraph(&mut text, "clears     ", &self.clears_line());
        if !self.slowest.is_empty() {
            let _ = write!(text, "\n{}", self.slowest(EXAMPLES));
        }
        text.push('\n');
        if self.is_told {
            paragraph(&mut text, "not told   ", NOT_TOLD);
        } else {
            paragraph(&mut text, "more       ", &self.more());
        }
        text
    }

    /// A table of the longest waits.
    pub fn slowest(&self, at_most: usize) -> String {
        if self.slowest.is_empty() {
            return "no request waited\n".to_owned();
        }
        let mut text = String::new();
        let columns = format!("{:<11}{:<9} {:<13} {:<13} ", "longest", "waited", "from", "outcome");
        paragraph(&mut text, &columns, "in the way in the end; requests ahead at first");
        for wait in self.slowest.iter().take(at_most) {
            let outcome = match &wait.outcome {
                Outcome::Served(number) => format!("got c{number}"),
                Outcome::Failed(failure) => failure.word().to_owned(),
                Outcome::Waiting => "waits".to_owned(),
            };
            let ahead = match wait.ahead {
                Some(ahead) if ahead > 0 => format!("; {} ahead", grouped(ahead)),
                Some(_) | None => String::new(),
            };
            let columns = format!(
                "  {:<8} {:<9} {:<13} {:<13} ",
                wait.waiter.to_string(),
                span(wait.duration()),
                self.clock.short(wait.asked),
                outcome
            );
            paragraph(&mut text, &columns, &format!("{}{ahead}", wait.in_the_way()));
        }
        text
    }

    /// Connections that were held for long: leaked or only slow.
    pub fn leaks(&self, at_most: usize) -> String {
        self.leaks.table(&self.clock, at_most)
    }

    /// The counts of each clear.
    pub fn clears(&self, at_most: usize) -> String {
        self.analysis.clears.table(&self.clock, at_most)
    }

    /// All about one clear, by number from 1.
    pub fn clear(&self, number: u64) -> Option<String> {
        self.analysis.clears.one(number, &self.clock)
    }

    /// The uses that look like leaks, and a line about each.
    pub fn leaked(&self) -> impl Iterator<Item = (Use, String)> {
        self.leaks.leaked().map(|leak| (leak.clone(), self.leaks.one(leak, &self.clock)))
    }

    /// How many clears there were.
    pub fn clear_count(&self) -> usize {
        self.analysis.clears.all.len()
    }

    fn requests(&self, text: &mut String) {
        let Requests { at_once, after_wait, failed } = self.analysis.counts;
        let all = at_once + after_wait + failed + self.waiting + self.unended;
        let mut line = format!(
            "{}: {} served at once, {} after a wait, {} failed",
            grouped(all),
            grouped(at_once),
            grouped(after_wait),
            grouped(failed)
        );
        if self.waiting > 0 {
            let _ = write!(line, ", {} waiting at the end", grouped(self.waiting));
        }
        let _ = write!(line, "; at most {} waited at once", grouped(self.analysis.waiting_max));
        paragraph(text, "requests   ", &line);
        if self.unended > 0 {
            let told = format!(
                "{} no end in the events, though later ones were served: the driver publishes none for them, as \
                 where callers gave up, or they wait still",
                counted(self.unended, "check-out has", "check-outs have")
            );
            paragraph(text, "no end     ", &told);
        }
        let quantiles = |name: &str, quantiles: &Quantiles, text: &mut String| {
            if let (Some(median), Some(high)) = (quantiles.median(), quantiles.at(99)) {
                let longest = quantiles.longest().map_or(String::new(), span);
                let told = format!(
                    "{} at the median, {} at the 99th percentile, {longest} at the longest",
                    span(median),
                    span(high)
                );
                paragraph(text, &format!("{name:<11}"), &told);
            }
        };
        quantiles("waits", &self.waits, text);
        quantiles("uses", &self.uses, text);
        if let Some(line) = self.analysis.stages.line() {
            paragraph(text, "connecting ", &line);
        }
        if self.analysis.refused > 0 {
            let told = format!(
                "{} refused by the pool: a bug of the program that recorded; `cenote replay --shrink misuse` finds it",
                counted(self.analysis.refused, "input was", "inputs were")
            );
            paragraph(text, "misuse     ", &told);
        }
        if self.analysis.lost > 0 {
            let lost = counted(self.analysis.lost, "input was", "inputs were");
            let _ = writeln!(text, "{:<11}{lost} not recorded", "gaps");
        }
    }

    /// Why the requests of a group failed, or what they waited for.
    pub(super) fn reason(&self, group: &Group, members: &Members) -> String {
        let wait = &members.longest;
        match group {
            Group::Failed(failure, obstacle) => failed(failure, *obstacle, wait),
            Group::Waited(obstacle) => wait.counts.tell(*obstacle),
        }
    }

    fn group(&self, group: &Group, members: &Members, text: &mut String) {
        let wait = &members.longest;
        let name = if matches!(group, Group::Failed(..)) { "failed" } else { "waited" };
        let what = self.reason(group, members);
        let (first, last) = (self.clock.short(members.first), self.clock.short(members.last));
        let when = if first == last { format!("at {first}") } else { format!("{first} to {last}") };
        let longest = match wait.duration() {
            Duration::ZERO => String::new(),
            longest => format!(", up to {}", span(longest)),
        };
        let told = format!("{} {what}{longest}; {when}", grouped(members.count));
        paragraph(text, &format!("{name:<11}"), &told);
    }

    /// The cause behind the limit, and the change of the topology that a time-out follows.
    pub(super) fn cause(&self, group: &Group, members: &Members) -> Option<String> {
        let cause = self.cause_in_pool(group, members);
        let Some(reason) = self.followed(group, members) else { return cause };
        let follows = format!(
            "follows a change of the topology: {} at {}",
            reason.text,
            self.clock.short(reason.at)
        );
        Some(cause.map_or_else(|| follows.clone(), |cause| format!("{cause}; {follows}")))
    }

    /// What the first of the requests follows that ran out of time.
    pub(super) fn followed(&self, group: &Group, members: &Members) -> Option<Reason> {
        let is_slow = matches!(group, Group::Failed(Failure::TimedOut | Failure::Shed, _));
        let waited = u64::try_from(members.longest.duration().as_nanos()).unwrap_or(u64::MAX);
        let from = Instant::from_nanos(members.first.as_nanos().saturating_sub(waited));
        self.server.as_ref().filter(|_| is_slow)?.before_wait(from, members.first)
    }

    fn cause_in_pool(&self, group: &Group, members: &Members) -> Option<String> {
        let obstacle = match group {
            Group::Failed(_, obstacle) => *obstacle,
            Group::Waited(obstacle) => Some(*obstacle),
        };
        // What few waited for explains itself.
        let all = match group {
            Group::Failed(..) => self.analysis.counts.failed,
            Group::Waited(_) => self.analysis.counts.after_wait,
        };
        // And so does what only waited for less than a use takes.
        let use_time = self.uses.median().unwrap_or_default();
        let is_short = matches!(group, Group::Waited(_)) && members.longest.duration() <= use_time;
        if members.count * 20 < all || is_short {
            return None;
        }
        let during = Intervals::of(members.intervals.items());
        match (group, obstacle) {
            (Group::Failed(Failure::Paused(Some(_)) | Failure::Cleared(_), _), _) => self.paused(),
            (_, Some(Obstacle::MaxPoolSize)) => Some(self.too_few(members, &during)),
            (_, Some(Obstacle::Establishments | Obstacle::OwnConnection)) => {
                Some(self.establishing(members, &during))
            }
            (_, Some(Obstacle::LateReply | Obstacle::Pacing | Obstacle::Queue) | None) => None,
        }
    }

    fn too_few(&self, members: &Members, during: &Intervals) -> String {
        let leaked = self.leaks.leaked_at(members.last);
        if leaked > 0 {
            let of = self.max_pool_size.map(|max| format!(" of {max}")).unwrap_or_default();
            let first = self.leaks.leaked().map(|open| open.since).min();
            let since =
                first.map_or(String::new(), |at| format!(" since {}", self.clock.short(at)));
            return format!(
                "a leak: {leaked}{of} connections were checked out{since} and not checked in; --leaks \
                 lists them"
            );
        }
        let unclear = self.leaks.tell_unclear(members.last);
        if let Some(told) = unclear.filter(|_| self.leaks.are_unclear(members.last)) {
            return told;
        }
        let uses = Compared::of(&self.analysis.uses, during);
        if let Some((then, otherwise)) = uses.slower() {
            return format!(
                "slow uses: half of them took more than {then} then, {otherwise} otherwise; look at the \
                 server and at the callers"
            );
        }
        if let Some(heavy) = self.leaks.tell_heavy(&self.analysis.uses, during) {
            return format!("{heavy}; look at the server and at the callers");
        }
        format!(
            "more work than connections: {}; half of the uses {}",
            self.rates(&self.analysis.arrivals, during),
            uses.tell("took more than")
        )
    }

    fn establishing(&self, members: &Members, during: &Intervals) -> String {
        let times = Compared::of(&self.analysis.establishments, during);
        if let Some((then, otherwise)) = times.slower() {
            return format!(
                "slow establishment: half took more than {then} then, {otherwise} otherwise; look at \
                 the network and the server"
            );
        }
        let median = times.then.median().or_else(|| times.otherwise.median());
        if let Some(stuck) = self.tell_stuck(median, members.last) {
            return format!("slow establishment: {stuck}; look at the network and the server");
        }
        let created = self.analysis.created.items().iter().filter(|&&at| during.contains(at));
        let created = created.count() as u64 * self.analysis.created.stride();
        let limit = median.filter(|median| !median.is_zero()).map(|median| {
            let rate = f64::from(self.max_connecting) / median.as_secs_f64();
            let rate = grouped(rate.round() as u64);
            format!(", so maxConnecting={} allows {rate} a second", self.max_connecting)
        });
        let (what, whose) = match created {
            0 => ("new connections: none was begun then".to_owned(), "those before"),
            1 => ("new connections: 1 was created then".to_owned(), "them"),
            many => (format!("many new connections: {} were created then", grouped(many)), "them"),
        };
        format!(
            "{what}, half of {whose} {}{}; {}",
            times.tell("took more than"),
            limit.unwrap_or_default(),
            self.rates(&self.analysis.arrivals, during)
        )
    }

    /// What has been established since then and still is at the end, if that takes much longer than establishments took.
    fn tell_stuck(&self, usual: Option<Duration>, by: Instant) -> Option<String> {
        let (since, stage) = self.pending.first().filter(|(since, _)| *since <= by)?;
        let age = self.leaks.end.saturating_since(*since);
        if usual.is_some_and(|usual| age <= SLOWER * usual) {
            return None;
        }
        let before = match usual {
            Some(usual) => format!("half of those before took more than {}", span(usual)),
            None => "none was established before".to_owned(),
        };
        let are = if self.pending.len() == 1 { "is" } else { "are" };
        Some(format!(
            "{} {are} being established when the trace ends, the oldest for {}{stage}; {before}",
            grouped(self.pending.len() as u64),
            span(age)
        ))
    }

    fn paused(&self) -> Option<String> {
        let mut causers: Vec<_> =
            self.analysis.clears.all.iter().filter(|clear| clear.failed() > 0).collect();
        causers.sort_by_key(|clear| std::cmp::Reverse(clear.failed()));
        let clear = causers.first()?;
        if let Some(service) = &clear.service {
            return Some(format!(
                "service {service} was cleared at {} ({}); --clear {} tells more",
                self.clock.short(clear.at),
                clear.cause,
                clear.number
            ));
        }
        let until = clear.ready.map_or("the end of the trace".to_owned(), |ready| {
            format!("{}, for {}", self.clock.short(ready), span(ready.saturating_since(clear.at)))
        });
        Some(format!(
            "the pool was cleared at {} ({}){} and paused until {until}; --clear {} tells more",
            self.clock.short(clear.at),
            clear.cause,
            clear.because.as_ref().map(|_| clear.because() + ",").unwrap_or_default(),
            clear.number
        ))
    }

    /// How many requests came in a second, in these intervals and otherwise.
    fn rates(&self, times: &Sample<Instant>, during: &Intervals) -> String {
        let inside = times.items().iter().filter(|&&at| during.contains(at)).count() as u64;
        let outside = times.items().len() as u64 - inside;
        let rate = |count: u64, time: Duration| {
            let count = (count * times.stride()) as f64;
            (time > SHORT).then(|| grouped((count / time.as_secs_f64()).round() as u64))
        };
        let counted =
            self.analysis.counted.map_or(Duration::ZERO, |(from, to)| to.saturating_since(from));
        let then = rate(inside, during.total());
        match (then, rate(outside, counted.saturating_sub(during.total()))) {
            (Some(then), Some(otherwise)) => {
                format!("{then} requests a second then, {otherwise} otherwise")
            }
            (Some(rate), None) | (None, Some(rate)) => format!("{rate} requests a second"),
            (None, None) => "in less than 10 ms".to_owned(),
        }
    }

    fn clears_line(&self) -> String {
        match self.analysis.clears.all.as_slice() {
            [] => "none".to_owned(),
            [one] => format!(
                "one at {} ({}){}; --clear {}",
                self.clock.short(one.at),
                one.cause,
                one.because(),
                one.number
            ),
            [first, .., last] => format!(
                "{}, {} to {}; --clears lists them",
                self.analysis.clears.all.len(),
                self.clock.short(first.at),
                self.clock.short(last.at)
            ),
        }
    }

    fn more(&self) -> String {
        let number = self.slowest.first().map_or("N".to_owned(), |wait| wait.waiter.0.to_string());
        format!("--waiter {number}: one wait; --slowest 20, --leaks, --clears")
    }
}

fn title(header: &TraceHeader, clock: &Clock, steps: u64, end: Instant) -> String {
    let address = header.address.as_deref().unwrap_or("an unknown address");
    let program = header.program.as_deref().unwrap_or("an unknown program");
    let length = span(end.saturating_since(header.start));
    let begin = clock.beginning().map(|it| format!(" from {}", it.replace(' ', "\u{a0}")));
    let begin = begin.unwrap_or_default();
    let steps = counted(steps, "step", "steps");
    format!("{address}, by {program}: {steps}, {length}{begin}")
}

fn failed(failure: &Failure, obstacle: Option<Obstacle>, wait: &Wait) -> String {
    let cause =
        |cause: &Option<String>| cause.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    let way = obstacle.map(|obstacle| wait.counts.tell(obstacle)).unwrap_or_default();
    match failure {
        Failure::TimedOut => format!("timed out, {way}"),
        Failure::QueueFull => format!("at once: the wait queue was full, {way}"),
        Failure::Shed => format!("shed on standing delay, {way}"),
        Failure::Untold => format!("for a reason that the events do not say, {way}"),
        Failure::Cancelled => format!("cancelled by their callers, {way}"),
        Failure::Paused(None) => "at once: the pool had never been ready".to_owned(),
        Failure::Paused(because) => format!("at once: the pool was paused{}", cause(because)),
        Failure::Cleared(because) => format!("cleared while they waited{}", cause(because)),
        Failure::NotEstablished(cause) => format!("not established: {cause}"),
        Failure::Closed => "the pool was closed".to_owned(),
    }
}

/// Durations in some intervals, and otherwise.
struct Compared {
    then: Quantiles,
    otherwise: Quantiles,
}

impl Compared {
    fn of(sample: &Sample<(Instant, Duration)>, during: &Intervals) -> Self {
        let side = |inside: bool| {
            let items = sample.items().iter().filter(move |(at, _)| during.contains(*at) == inside);
            Quantiles::of(items.map(|&(_, duration)| duration))
        };
        Self { then: side(true), otherwise: side(false) }
    }

    /// The medians, if there is enough of both and the first is much longer.
    fn slower(&self) -> Option<(String, String)> {
        let enough = self.then.count() >= ENOUGH && self.otherwise.count() >= ENOUGH;
        let (then, otherwise) = (self.then.median()?, self.otherwise.median()?);
        (enough && then > SLOWER * otherwise).then(|| (span(then), span(otherwise)))
    }

    fn tell(&self, verb: &str) -> String {
        match (self.then.median(), self.otherwise.median()) {
            (Some(then), Some(otherwise)) if self.otherwise.count() >= ENOUGH => {
                format!("{verb} {} then, {} otherwise", span(then), span(otherwise))
            }
            (Some(time), _) | (None, Some(time)) => format!("{verb} {}", span(time)),
            (None, None) => format!("{verb} an unknown time"),
        }
    }
}

const NOT_TOLD: &str = "events do not say which place in the program asked, how long it may wait, whether its caller gave \
                        up, and what a connection that is being opened waits for; w1 is the first request";

/// How many kinds of waits and failures are printed.
const GROUPS: usize = 6;
/// How many of the longest waits.
const EXAMPLES: usize = 5;
/// Fewer durations than this are not compared.
const ENOUGH: usize = 10;
/// Durations this many times as long are slow.
const SLOWER: u32 = 3;
/// In shorter times, nothing is counted per second.
const SHORT: Duration = Duration::from_millis(10);
