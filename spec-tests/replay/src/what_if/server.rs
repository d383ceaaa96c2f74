//! Whether the server was the limit: more connections in use, but no more uses that end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use cenote_core::pool::Instant;

use super::workload::Workload;

/// A number of connections in use above which the server of a trace finished no more uses in the same time. By Little's law
/// each use then takes longer in proportion, so that a larger pool only moves the wait to the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerLimit {
    /// The number of connections in use.
    pub connections: u32,
    /// Uses that ended in a second, with that many connections in use or more.
    pub per_second: f64,
    /// By how much a server with this limit explains the trace better than one without: the logarithm of the ratio of
    /// likelihoods.
    pub evidence: f64,
}

impl ServerLimit {
    /// What a limit needs to be believed.
    pub const EVIDENCE: f64 = 5.0;

    /// The limit that explains the trace best; `None` if the trace does not show one.
    ///
    /// While n connections are in use, a server without a limit finishes uses at a rate in proportion to n, and one with
    /// the limit k at a rate in proportion to the smaller of n and k. How fast the server is may change between windows of
    /// the trace. Uses that did not end do not count: they look like leaks. Uses of one length end together, as if they had a
    /// limit; so they have to take longer above it, too.
    pub fn of(workload: &Workload) -> Option<Self> {
        let windows = windows(workload);
        let most = windows.iter().map(Vec::len).max()?.saturating_sub(1);
        let (connections, evidence) = (1..most)
            .map(|limit| (limit, evidence(&windows, limit)))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let at_limit = windows.iter().filter_map(|levels| levels.get(connections..)).flatten();
        let (mut ended, mut seconds) = (0, 0.0);
        for level in at_limit {
            ended += level.ended;
            seconds += level.time.as_secs_f64();
        }
        (evidence > Self::EVIDENCE && is_slower(workload, connections)).then(|| Self {
            connections: connections as u32,
            per_second: f64::from(ended) / seconds,
            evidence,
        })
    }
}

/// Whether uses that begin with more connections in use take longer.
fn is_slower(workload: &Workload, limit: usize) -> bool {
    let mut lengths = [Vec::new(), Vec::new()];
    let mut ends = BinaryHeap::new();
    let mut served: Vec<_> = workload.requests.iter().filter(|it| it.was_served()).collect();
    served.sort_unstable_by_key(|request| request.answered());
    for request in served {
        let (began, Some(ended)) = (request.answered(), request.ended()) else { continue };
        while ends.peek().is_some_and(|Reverse(end)| *end <= began) {
            ends.pop();
        }
        ends.push(Reverse(ended));
        lengths[usize::from(ends.len() > limit)].push(ended.saturating_since(began));
    }
    let [median_below, median_above] = lengths.map(|mut lengths| {
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied()
    });
    median_below
        .zip(median_above)
        .is_none_or(|(below, above)| !below.is_zero() && above > below * 6 / 5)
}

/// With a number of connections in use.
#[derive(Clone, Copy, Default)]
struct Level {
    time: Duration,
    ended: u32,
}

/// Uses in a window, at least, and the largest number of windows.
const USES: usize = 200;
const WINDOWS: usize = 8;

/// One window in this many does not count: those with most evidence, in which the server's speed may have changed.
const TRIMMED: usize = 4;

/// For each window, by the number of connections in use.
fn windows(workload: &Workload) -> Vec<Vec<Level>> {
    let mut changes = Vec::with_capacity(workload.requests.len() * 2);
    for request in &workload.requests {
        if let (true, Some(ended)) = (request.was_served(), request.ended()) {
            // Each ends after it began, even if it took no time.
            let began = request.answered();
            changes.extend([(began, true), (ended.max(began + Duration::from_nanos(1)), false)]);
        }
    }
    changes.sort_unstable();
    let count = (changes.len() / 2 / USES).clamp(1, WINDOWS);
    let length = workload.duration().as_nanos() as u64 / count as u64 + 1;
    let window =
        |at: Instant| (at.saturating_since(workload.start).as_nanos() as u64 / length) as usize;
    let mut windows = vec![vec![Level::default()]; count];
    let (mut now, mut in_use) = (workload.start, 0);
    for (at, begins) in changes {
        // A stretch that reaches into the next window counts for the one in which it ends.
        let levels = &mut windows[window(at).min(count - 1)];
        if levels.len() <= in_use {
            levels.resize(in_use + 1, Level::default());
        }
        levels[in_use].time += at.saturating_since(now);
        now = at;
        if begins {
            in_use += 1;
        } else {
            levels[in_use].ended += 1;
            in_use -= 1;
        }
    }
    windows
}

/// The logarithm of the ratio of likelihoods of a server with this limit and one without.
fn evidence(windows: &[Vec<Level>], limit: usize) -> f64 {
    let of = |levels: &Vec<Level>| likelihood(levels, limit) - likelihood(levels, usize::MAX);
    let mut evidence: Vec<_> = windows.iter().map(of).collect();
    evidence.sort_by(f64::total_cmp);
    let counted = evidence.len() - evidence.len() / TRIMMED;
    evidence[..counted].iter().sum()
}

/// The logarithm of the likelihood that uses end when they did, if the rate is in proportion to the smaller of the number in
/// use and the limit, and otherwise random; but for what does not depend on the limit.
fn likelihood(levels: &[Level], limit: usize) -> f64 {
    let (mut weighted, mut time, mut ended) = (0.0, 0.0, 0.0);
    for (in_use, level) in levels.iter().enumerate().skip(1) {
        let busy = in_use.min(limit) as f64;
        weighted += f64::from(level.ended) * busy.ln();
        time += level.time.as_secs_f64() * busy;
        ended += f64::from(level.ended);
    }
    if time > 0.0 { weighted - ended * time.ln() } else { 0.0 }
}
