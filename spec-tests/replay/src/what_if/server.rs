//! Whether the server was the limit: more connections in use, but no more uses that end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use super::request::in_order;
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
    /// What a limit needs to be believed, and what it needs to be ruled out.
    pub const EVIDENCE: f64 = 5.0;

    /// The limit that explains the trace best; `None` if the trace does not show one.
    pub fn of(workload: &Workload) -> Option<Self> {
        let levels = Levels::of(workload, WINDOWS);
        let limits = (1..levels.most()).map(|limit| (limit, levels.evidence(limit)));
        let (connections, evidence) = limits.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let all = levels.0.iter().flatten();
        let seconds: f64 = all.clone().map(|level| level.alone(connections).as_secs_f64()).sum();
        let uses: f64 = all.map(|level| f64::from(level.uses)).sum();
        let per_second = f64::from(connections) * uses / seconds;
        (evidence > Self::EVIDENCE).then_some(Self { connections, per_second, evidence })
    }

    /// The smallest number of connections in use that may be the server's limit, if it was as fast all the time.
    pub(super) fn least(workload: &Workload) -> u32 {
        let levels = Levels::of(workload, 1);
        let most = levels.most();
        let mut limits = 1..most;
        limits.find(|&limit| levels.evidence(limit) > -Self::EVIDENCE).unwrap_or(most)
    }
}

/// How many connections were in use when the use of each request began, with its own; 0 of those that were not served.
pub(super) fn in_use_at_begin(workload: &Workload) -> Vec<u32> {
    let requests = &workload.requests;
    let mut in_use = vec![0; requests.len()];
    let mut ends = BinaryHeap::new();
    let begun =
        in_order(
            requests,
            |number, it| [Some((it.answered(), number)).filter(|_| it.was_served())],
        );
    for (began, number) in begun {
        while ends.peek().is_some_and(|Reverse(end)| *end <= began) {
            ends.pop();
        }
        ends.push(Reverse(requests[number as usize].ended().unwrap_or(workload.end)));
        in_use[number as usize] = ends.len() as u32;
    }
    in_use
}

/// The uses that began with a number of connections in use.
#[derive(Clone, Copy, Default)]
struct Level {
    in_use: u32,
    uses: u32,
    time: Duration,
}

impl Level {
    /// By how much longer they take because of a limit.
    fn growth(&self, limit: u32) -> f64 {
        f64::from(self.in_use.max(limit)) / f64::from(limit)
    }

    /// How long they would have taken without it.
    fn alone(&self, limit: u32) -> Duration {
        self.time.div_f64(self.growth(limit))
    }
}

/// Uses in a window, at least, and the largest number of windows.
const USES: usize = 200;
const WINDOWS: usize = 8;

/// One window in this many does not count: those with most evidence, in which the server's speed may have changed.
const TRIMMED: usize = 4;

/// For each window of a trace, by the number of connections in use.
struct Levels(Vec<Vec<Level>>);

impl Levels {
    /// Without the uses that ended with a stall or with a nested request.
    fn of(workload: &Workload, windows: usize) -> Self {
        let in_use = in_use_at_begin(workload);
        let mut uses: Vec<_> = workload.uses().collect();
        let outer: BTreeSet<_> = workload.nested.values().map(|(outer, _)| outer).collect();
        uses.retain(|it| workload.stalls.cut(*it).is_none() && !outer.contains(it));
        let count = (uses.len() / USES).clamp(1, windows);
        let windows = uses.chunks(uses.len().div_ceil(count).max(1)).map(|window| {
            let mut levels = BTreeMap::new();
            for &number in window {
                let in_use = in_use[number as usize];
                let level = levels.entry(in_use).or_insert(Level { in_use, ..Level::default() });
                level.uses += 1;
                level.time += workload.requests[number as usize].used();
            }
            levels.into_values().collect()
        });
        Self(windows.collect())
    }

    /// The largest number of connections in use.
    fn most(&self) -> u32 {
        self.0.iter().flatten().map(|level| level.in_use).max().unwrap_or(1)
    }

    /// The logarithm of the ratio of likelihoods of a server with this limit and one without. Uses that begin with n
    /// connections in use take random times, with the limit k longer by n/k if that is above 1. How fast the server is may
    /// change between windows.
    fn evidence(&self, limit: u32) -> f64 {
        let mut evidence: Vec<_> = self.0.iter().map(|levels| of_window(levels, limit)).collect();
        evidence.sort_by(f64::total_cmp);
        let counted = evidence.len() - evidence.len() / TRIMMED;
        evidence[..counted].iter().sum()
    }
}

fn of_window(levels: &[Level], limit: u32) -> f64 {
    let (mut uses, mut time, mut alone, mut growth) = (0.0, 0.0, 0.0, 0.0);
    for level in levels {
        uses += f64::from(level.uses);
        time += level.time.as_secs_f64();
        alone += level.alone(limit).as_secs_f64();
        growth += f64::from(level.uses) * level.growth(limit).ln();
    }
    if alone > 0.0 { uses * (time / alone).ln() - growth } else { 0.0 }
}
