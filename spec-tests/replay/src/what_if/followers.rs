//! What comes so soon after something else that it is caused by it: the next try of a request that failed, and the end of a
//! use that waited for the end of a nested request.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cenote_core::pool::Instant;

use super::request::{Fate, Request, in_order};
use super::stalls::{AT_ONCE, Stalls};

/// By the number of a request, the one that followed it, and how long after.
pub(super) type Followers = BTreeMap<u32, (u32, Duration)>;

/// What passes at least between two readings of the clock of these times, which are in order.
pub(super) fn tick<T>(times: impl Iterator<Item = (Instant, T)>) -> Duration {
    let mut times = times.map(|(at, _)| at);
    let mut last = times.next();
    let apart = times.filter_map(|at| Some(at.saturating_since(last.replace(at)?)));
    apart.filter(|apart| !apart.is_zero()).min().unwrap_or_default()
}

/// By a clock that is slower everything is at once.
pub(super) const SLOWEST: Duration = Duration::from_micros(500);

/// Requests that failed, and were tried again.
pub(super) fn retries(requests: &[Request], stalls: &Stalls) -> Followers {
    let times = |_, it: &Request| [it.asked, it.answered()].map(|at| Some((at, ())));
    if tick(in_order(requests, times)) > SLOWEST {
        return Followers::new();
    }
    let failed = (0..).zip(requests).filter(|(_, it)| has_failed(it));
    let failed = failed.map(|(number, it)| (it.answered(), number)).collect();
    let asked = (0..).zip(requests).map(|(number, it)| (it.asked, number)).collect();
    of(failed, asked, stalls, |one, other| one != other)
}

/// Whether it may be tried again.
pub(super) fn has_failed(request: &Request) -> bool {
    matches!(request.fate, Fate::Failed | Fate::Cancelled)
}

/// How often each request that was tried again was tried before, and how often requests are in general.
pub(super) fn tries(retries: &Followers) -> (BTreeMap<u32, u32>, u32) {
    let (mut tries, mut counts) = (BTreeMap::new(), BTreeMap::new());
    for (failed, &(next, _)) in retries {
        let before = tries.get(failed).copied().unwrap_or(0) + 1;
        tries.insert(next, before);
        *counts.entry(before).or_insert(0_usize) += 1;
    }
    let usual = |of: usize| counts.iter().rev().find(|(_, count)| **count * RARE >= of);
    // Of chains that are long, no place has a large part of all.
    let first = counts.get(&1).copied().unwrap_or(0);
    let most = usual(retries.len()).or_else(|| usual(first)).map_or(0, |(tries, _)| *tries);
    (tries, most)
}

/// One in this many may be chance.
const RARE: usize = 20;

/// Requests that were made during a use that ended with them, and that use's request.
pub(super) fn nested(requests: &[Request], stalls: &Stalls) -> Followers {
    let ends: Vec<_> = ends(requests).collect();
    let request = |number: u32| &requests[number as usize];
    let uses = ends.iter().filter(|(_, number)| request(*number).was_served()).copied().collect();
    let mut nested = of(ends, uses, stalls, |inner, outer| {
        inner != outer && request(outer).answered() < request(inner).asked
    });
    // One level: what is nested waits for nothing that is.
    let inner: BTreeSet<_> = nested.keys().copied().collect();
    nested.retain(|_, (outer, _)| !inner.contains(outer));
    nested
}

/// When requests ended, in order.
pub(super) fn ends(requests: &[Request]) -> impl Iterator<Item = (Instant, u32)> {
    in_order(requests, |number, it| [it.ended().map(|at| (at, number))])
}

/// The effects that followed causes at once; none if chance explains how many.
fn of(
    mut causes: Vec<(Instant, u32)>,
    mut effects: Vec<(Instant, u32)>,
    stalls: &Stalls,
    may_follow: impl Fn(u32, u32) -> bool + Copy,
) -> Followers {
    effects.retain(|&(at, _)| stalls.at(at).is_none());
    effects.sort_unstable();
    causes.sort_unstable();
    // Those of a cause from one time after it until another one, in nanoseconds.
    let between = |&(at, cause): &(Instant, u32), from: i64, to: i64| {
        let time = |after: i64| Instant::from_nanos(at.as_nanos().saturating_add_signed(after));
        let place = |after| effects.partition_point(|&(effect, _)| effect < time(after));
        let may_follow = move |&&(_, effect): &&(Instant, u32)| may_follow(cause, effect);
        effects[place(from)..place(to)].iter().filter(may_follow)
    };
    // Those soon after a cause, and in two such times beside it.
    let soon = AT_ONCE.as_nanos() as i64;
    let (mut beside, mut delays) = (0.0, [0.0_f64; DELAYS as usize]);
    for cause in &causes {
        for (at, _) in between(cause, 0, soon) {
            let delay = at.saturating_since(cause.0).as_nanos() as i64;
            delays[(delay * DELAYS / soon) as usize] += 1.0;
        }
        // So many at once are chance, and take long.
        if delays.iter().sum::<f64>() > (MANY * causes.len()) as f64 {
            return Followers::new();
        }
        beside += between(cause, -5 * soon, -4 * soon).count() as f64 / 2.0;
        beside += between(cause, 4 * soon, 5 * soon).count() as f64 / 2.0;
    }
    // After the usual delay, a little more or less; other delays are chance.
    let usual =
        (0..DELAYS).max_by(|&one, &other| delays[one as usize].total_cmp(&delays[other as usize]));
    let (first, last) = usual.map_or((0, 1), |usual| ((usual - 1).max(0), (usual + 2).min(DELAYS)));
    let seen: f64 = delays.iter().sum();
    let usual: f64 = delays[first as usize..last as usize].iter().sum();
    let others = (seen - usual) * (last - first) as f64 / (DELAYS - last + first) as f64;
    let more = (seen - beside).min(usual - others);
    if more < 3.0 * seen.sqrt() + causes.len() as f64 / 10.0 {
        return Followers::new();
    }
    let (least, most) = (first * soon / DELAYS, last * soon / DELAYS);
    let mut is_taken = BTreeSet::new();
    let mut followers = Followers::new();
    for cause in &causes {
        let mut free = between(cause, least, most).filter(|(_, effect)| !is_taken.contains(effect));
        if let Some(&(at, effect)) = free.next() {
            is_taken.insert(effect);
            followers.insert(cause.1, (effect, at.saturating_since(cause.0)));
        }
    }
    followers
}

/// Effects soon after a cause, on average.
const MANY: usize = 32;

/// As many parts of the time soon after a cause are told apart.
const DELAYS: i64 = 20;
