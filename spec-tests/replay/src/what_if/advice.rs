//! The smallest pool that keeps a goal.

use std::fmt;
use std::time::Duration;

use super::fit::{Fit, Loop};
use super::goal::{Goal, Stop};
use super::known::Known;
use super::outcome::Outcome;
use super::server::ServerLimit;
use super::settings::{Change, Setting};
use super::workload::Workload;
use super::{Assumptions, Prediction};

/// The callers that a pool is advised for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situation {
    /// The minute with the most requests, instead of the whole trace.
    pub is_busiest_minute: bool,
    /// How many times as many callers.
    pub load: f64,
}

impl Situation {
    /// The trace, and its busiest minute with as many callers, a fifth more, and half as many more.
    pub const ALL: [Self; 4] = [
        Self { is_busiest_minute: false, load: 1.0 },
        Self { is_busiest_minute: true, load: 1.0 },
        Self { is_busiest_minute: true, load: 1.2 },
        Self { is_busiest_minute: true, load: 1.5 },
    ];
}

/// `busiest minute × 1.2`
impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_busiest_minute { "busiest minute" } else { "the trace" })?;
        if self.load > 1.0 { write!(f, " × {}", self.load) } else { Ok(()) }
    }
}

/// What a situation needs.
#[derive(Clone, Debug)]
pub enum Need {
    /// These options keep the goal, at this price.
    Pool {
        /// `maxPoolSize`, `maxConnecting` and `minPoolSize`.
        change: Change,
        /// What would have happened.
        prediction: Prediction,
    },
    /// The goal needs more connections in use than the server serves at once.
    Server(ServerLimit),
    /// Not even a pool without a limit keeps the goal, as when the establishment of a connection takes longer.
    NoPool {
        /// What would have happened with a pool that has no limit.
        prediction: Prediction,
    },
}

/// What pools keep a goal.
#[derive(Clone, Debug)]
pub struct Advice {
    /// For each of [`Situation::ALL`].
    pub needs: Vec<(Situation, Need)>,
    /// The server's limit, if the trace shows one.
    pub server: Option<ServerLimit>,
}

const MINUTE: Duration = Duration::from_secs(60);

/// How often what the trace does not show is drawn; fewer times than for a prediction, because dozens of pools are tried.
const DRAWS: u64 = 3;

/// No pool has this many times as many requests as one without a limit: callers that come back do so later from a smaller
/// one, unless they fail, which speaks against the goal.
const MORE_REQUESTS: u64 = 2;

/// So many are established at once at most.
const CONNECTING_MAX: u32 = 64;

impl Workload {
    /// The smallest pools that keep a goal, in each of [`Situation::ALL`]: first the smallest `maxPoolSize`; then the
    /// `maxConnecting` of the trace, or the smallest that is enough; then the smallest `minPoolSize`.
    pub fn advise(&self, goal: Goal, by: Loop, seed: u64) -> Advice {
        let server = ServerLimit::of(self);
        let minute = self.busiest(MINUTE);
        let mut needs: Vec<(Situation, Need)> = Vec::new();
        for situation in Situation::ALL {
            let busiest = minute.as_ref().filter(|_| situation.is_busiest_minute);
            // A trace of less than a minute is its own busiest one.
            let same =
                needs.iter().find(|(other, _)| busiest.is_none() && other.load == situation.load);
            let need = match same {
                Some((_, need)) => need.clone(),
                None => busiest.unwrap_or(self).need(goal, (by, situation.load, seed), server),
            };
            needs.push((situation, need));
        }
        Advice { needs, server }
    }

    fn need(
        &self,
        goal: Goal,
        (by, load, seed): (Loop, f64, u64),
        server: Option<ServerLimit>,
    ) -> Need {
        let callers = Assumptions::new(self, by, &Fit::of(self));
        let assumptions = Assumptions { load, draws: DRAWS, seed, ..callers };
        let need = Search { known: self.known(&assumptions), goal, assumptions }.need();
        match (need, server) {
            (Need::Pool { change, .. }, Some(limit)) if size(&change) > limit.connections => {
                Need::Server(limit)
            }
            (need, _) => need,
        }
    }
}

fn size(change: &Change) -> u32 {
    change.value(Setting::MaxPoolSize).unwrap_or(0)
}

struct Search<'a> {
    known: Known<'a>,
    goal: Goal,
    assumptions: Assumptions,
}

impl Search<'_> {
    fn need(&self) -> Need {
        let unlimited = self.predict(&sized(0, CONNECTING_MAX, 0));
        let most = unlimited.range(|outcome| outcome.peak).1.max(1);
        // With all of them established from the beginning.
        let stop = Stop::new(self.goal, unlimited.range(Outcome::requests).1 * MORE_REQUESTS);
        let keeps = |size, connecting, least| self.keeps(&sized(size, connecting, least), stop);
        if !keeps(most, CONNECTING_MAX, most) {
            return Need::NoPool { prediction: unlimited };
        }
        let size = smallest(1, most, |size| keeps(size, CONNECTING_MAX, size));
        let recorded = Setting::MaxConnecting.of(self.known.workload.options());
        let recorded = u32::try_from(recorded).unwrap_or(CONNECTING_MAX).min(CONNECTING_MAX);
        let doubled = |connecting: &u32| Some(connecting * 2).filter(|&it| it <= CONNECTING_MAX);
        let connecting = |least: u32| {
            let mut all = std::iter::successors(Some(recorded), doubled);
            all.find(|&connecting| keeps(size, connecting, least))
        };
        let change = match connecting(0) {
            Some(connecting) => sized(size, connecting, 0),
            None => {
                let connecting = connecting(size).unwrap_or(CONNECTING_MAX);
                let least = smallest(1, size, |least| keeps(size, connecting, least));
                sized(size, connecting, least)
            }
        };
        let prediction = self.predict(&change);
        Need::Pool { change, prediction }
    }

    /// Whether more than half of the draws keep the goal: no more of them are made than are needed to tell.
    fn keeps(&self, change: &Change, stop: Option<Stop>) -> bool {
        let (mut kept, mut lost) = (0, 0);
        for outcome in self.known.draws(change, &self.assumptions, stop) {
            *(if self.goal.is_kept(&outcome) { &mut kept } else { &mut lost }) += 1;
            if kept.max(lost) * 2 > DRAWS {
                break;
            }
        }
        kept > lost
    }

    fn predict(&self, change: &Change) -> Prediction {
        self.known.predict(change, &self.assumptions)
    }
}

fn sized(size: u32, connecting: u32, least: u32) -> Change {
    Change::default()
        .with(Setting::MaxPoolSize, size)
        .with(Setting::MaxConnecting, connecting)
        .with(Setting::MinPoolSize, least)
}

/// The smallest number that is enough, if the largest is, and every number above one that is.
fn smallest(least: u32, most: u32, is_enough: impl Fn(u32) -> bool) -> u32 {
    let (mut least, mut most) = (least, most);
    while least < most {
        let middle = least + (most - least) / 2;
        if is_enough(middle) { most = middle } else { least = middle + 1 }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_found() {
        for enough in 1..=20 {
            assert_eq!(smallest(1, 20, |number| number >= enough), enough);
        }
    }
}
