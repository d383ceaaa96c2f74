//! Removes inputs from a trace for as long as it still shows a property.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use cenote_core::pool::{Action, PoolState, WithoutEvents};
use cenote_core::trace::Traced;

use super::clock::{Clock, NoClock};
use super::condition::{Condition, InvalidCondition, StepResult};
use super::filter::Names;
use super::history::{Entry, History, feed};
use super::symbolic::{Clock as SymbolicClock, Roles, Symbolic, Timeline, symbolic};

/// A property of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Property {
    /// An input is refused.
    Misuse,
    /// An invariant of the machine is violated, or the machine panics.
    Invariant,
    /// A condition holds after some step.
    Condition(Condition),
}

impl Property {
    /// With a wall-clock time as the time of the trace.
    ///
    /// # Errors
    ///
    /// If the trace has no wall-clock time, and the property has one.
    pub fn resolve(self, clock: &Clock) -> Result<Self, NoClock> {
        match self {
            Self::Condition(condition) => condition.resolve(clock).map(Self::Condition),
            Self::Misuse | Self::Invariant => Ok(self),
        }
    }

    fn judge(&self) -> Judge<'_> {
        let mut step = 0;
        match self {
            // An input that is invalid only because others were left out proves nothing.
            Self::Misuse => Box::new(|pool, entry, out| {
                feed(pool, entry, &mut WithoutEvents(out)).is_err() && entry.refused
            }),
            // The panic that is looked for may come anywhere.
            Self::Invariant => Box::new(|pool, entry, out| {
                let fed = AssertUnwindSafe(|| {
                    let _ = feed(pool, entry, &mut WithoutEvents(out));
                    pool.check_invariants();
                });
                catch_unwind(fed).is_err()
            }),
            Self::Condition(condition) => Box::new(move |pool, entry, out| {
                step += 1;
                let fed = if matches!(condition, Condition::Named(Names::Events, _)) {
                    feed(pool, entry, out)
                } else {
                    feed(pool, entry, &mut WithoutEvents(&mut *out))
                };
                let (at, input, snapshot) = (pool.now(), &entry.input, pool.snapshot());
                let result = StepResult { step, at, input, actions: out, snapshot };
                fed.is_ok() && condition.holds(&result)
            }),
        }
    }
}

/// Feeds an input to a pool, with `refused` as it was recorded; collects what the pool does, and says whether the property
/// shows.
pub type Judge<'a> =
    Box<dyn FnMut(&mut PoolState<Traced>, &Entry, &mut Vec<Action<Traced>>) -> bool + 'a>;

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "misuse" => Ok(Self::Misuse),
            "invariant" => Ok(Self::Invariant),
            _ => {
                let named = cenote_check::event_json::TYPES.contains(&text);
                let text = if named { format!("event={text}") } else { text.to_owned() };
                let condition = text.parse().map(Self::Condition);
                let or = "; or misuse, invariant, or the name of an event";
                condition.map_err(|error: InvalidCondition| format!("{error}{or}"))
            }
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse => f.write_str("a refused input"),
            Self::Invariant => f.write_str("a broken invariant"),
            Self::Condition(condition) => write!(f, "{condition}"),
        }
    }
}

/// A small trace that still shows the property; `None` if the complete one does not.
///
/// Each candidate is replayed from the start. So candidates come first that may remove almost
/// everything with few, short replays: a few groups from the front and a few from the end. Then
/// halves, quarters and so on of the groups are left out, and finally single inputs. All of that is
/// done once as if omitted inputs took no time, and once with gaps; if that was not enough, once
/// with those inputs that came at a deadline moved to a deadline again. After some ten million
/// inputs, the best trace so far is returned.
pub fn shrink(history: &History, property: &Property) -> Option<History> {
    shrink_while(history, &|_| Some(property.judge()))
}

/// The same for a property that shows beside the pool, such as a difference from a model: `begin` gets the pool at the
/// beginning of each replay, and returns `None` if it cannot be judged.
pub fn shrink_while<'a>(
    history: &History,
    begin: &dyn Fn(&PoolState<Traced>) -> Option<Judge<'a>>,
) -> Option<History> {
    let all = symbolic(history);
    let start = history.pool();
    let shrink = |timeline| {
        let mut search = Search { start: &start, all: &all, begin, timeline, replayed: 0 };
        let everything: Vec<usize> = (0..all.len()).collect();
        let needed = search.shows(&everything)?;
        let groups = search.fewest_at_both_ends(groups(&all[..needed]));
        let kept = search.leave_out(groups);
        let kept = search.leave_out(kept.into_iter().map(|at| vec![at]).collect());
        Some(search.resolved(&kept))
    };
    let as_it_was = [Timeline::Closed, Timeline::Open].into_iter().filter_map(shrink);
    let inputs = as_it_was.min_by_key(Vec::len)?;
    // Inputs that have to coincide with a deadline coincide with it in a shorter trace, too.
    let is_long = inputs.len() > SHORT;
    let at_deadlines = if is_long { shrink(Timeline::Due) } else { None };
    let inputs = at_deadlines.into_iter().chain([inputs]).min_by_key(Vec::len)?;
    Some(History { inputs, ..history.clone() })
}

/// The number of steps until the property shows.
pub fn shows(history: &History, property: &Property) -> Option<usize> {
    let (start, mut judge, mut actions) = (history.pool(), property.judge(), Vec::new());
    let mut pool = start;
    let mut shows = |entry: &Entry| {
        actions.clear();
        judge(&mut pool, entry, &mut actions)
    };
    history.inputs.iter().position(&mut shows).map(|index| index + 1)
}

/// The inputs of each group, groups in the order of their first inputs.
fn groups(all: &[Symbolic]) -> Vec<Vec<usize>> {
    let mut groups = Vec::<Vec<usize>>::new();
    let mut places = BTreeMap::new();
    for (index, symbolic) in all.iter().enumerate() {
        let place = *places.entry(symbolic.group(index)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(index);
    }
    groups
}

struct Search<'a, 'j> {
    start: &'a PoolState<Traced>,
    all: &'a [Symbolic],
    begin: &'a dyn Fn(&PoolState<Traced>) -> Option<Judge<'j>>,
    timeline: Timeline,
    /// The number of inputs that were replayed.
    replayed: usize,
}

impl Search<'_, '_> {
    /// The fewest groups from the front and from the end that show the property, in powers of two.
    fn fewest_at_both_ends(&mut self, groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let count = groups.len();
        let sizes = || std::iter::successors(Some(1), |size| Some(size * 2));
        for total in sizes().take_while(|&total| total < count) {
            for back in sizes().take_while(|&back| back <= total) {
                let front = &groups[..total - back];
                let chosen: Vec<_> = front.iter().chain(&groups[count - back..]).cloned().collect();
                if self.shows(&in_order(&chosen)).is_some() {
                    return chosen;
                }
            }
        }
        groups
    }

    /// The inputs of as few of the groups as still show the property.
    fn leave_out(&mut self, groups: Vec<Vec<usize>>) -> Vec<usize> {
        let mut kept = in_order(&leave_out(groups, |rest| {
            (self.replayed < REPLAYED_MAX).then(|| self.shows(&in_order(rest)).is_some())
        }));
        // Inputs after the one that shows the property are not needed.
        kept.truncate(self.shows(&kept).unwrap_or(kept.len()));
        kept
    }

    /// The number of these inputs until the property shows.
    fn shows(&mut self, kept: &[usize]) -> Option<usize> {
        self.replayed += kept.len();
        let mut run = Run::new(self.start, self.timeline);
        let mut judge = (self.begin)(&run.pool)?;
        let mut shows = |&at: &usize| {
            let taken = run.take(&self.all[at], |pool, entry, out| judge(pool, entry, out));
            taken.is_some_and(|(_, shows)| shows)
        };
        kept.iter().position(&mut shows).map(|index| index + 1)
    }

    /// The inputs as they are in a run without the others.
    fn resolved(&self, kept: &[usize]) -> Vec<Entry> {
        let mut run = Run::new(self.start, self.timeline);
        let refused = |pool: &mut PoolState<Traced>, entry: &Entry, out: &mut Vec<_>| {
            let fed = AssertUnwindSafe(|| feed(pool, entry, &mut WithoutEvents(out)).is_err());
            catch_unwind(fed).unwrap_or(false)
        };
        let taken = kept.iter().filter_map(|&at| run.take(&self.all[at], refused));
        taken.map(|(entry, refused)| Entry { refused, ..entry }).collect()
    }
}

/// Leaves out chunks, from the end to the front, ever smaller ones, as long as the rest shows what it is to show; `None`
/// ends the search.
pub(crate) fn leave_out<T: Clone>(
    mut all: Vec<T>,
    mut shows: impl FnMut(&[T]) -> Option<bool>,
) -> Vec<T> {
    let mut size = all.len().div_ceil(2).max(1);
    loop {
        let before = all.len();
        let mut end = before;
        while end > 0 {
            let begin = end.saturating_sub(size);
            let rest = [&all[..begin], &all[end..]].concat();
            match shows(&rest) {
                Some(true) => all = rest,
                Some(false) => {}
                None => return all,
            }
            end = begin;
        }
        if size == 1 && all.len() == before {
            return all;
        }
        size = size.div_ceil(2);
    }
}

fn in_order(groups: &[Vec<usize>]) -> Vec<usize> {
    let mut kept: Vec<usize> = groups.iter().flatten().copied().collect();
    kept.sort_unstable();
    kept
}

/// A trace of this length is readable.
const SHORT: usize = 12;

/// The limit of replayed inputs: about 15 seconds.
const REPLAYED_MAX: usize = 15_000_000;

/// A replay of some of the inputs.
struct Run {
    pool: PoolState<Traced>,
    roles: Roles,
    clock: SymbolicClock,
    actions: Vec<Action<Traced>>,
}

impl Run {
    fn new(start: &PoolState<Traced>, timeline: Timeline) -> Self {
        let clock = SymbolicClock::new(timeline, start.now());
        Self { pool: start.clone(), roles: Roles::default(), clock, actions: Vec::new() }
    }

    /// Feeds an input, if it is meaningful in this run; also returns what feeding it says.
    fn take(
        &mut self,
        symbolic: &Symbolic,
        feed: impl FnOnce(&mut PoolState<Traced>, &Entry, &mut Vec<Action<Traced>>) -> bool,
    ) -> Option<(Entry, bool)> {
        let mut entry = symbolic.resolve(&self.roles, &self.pool)?;
        self.clock.set(symbolic, &mut entry, &self.pool);
        self.actions.clear();
        let told = feed(&mut self.pool, &entry, &mut self.actions);
        self.actions.iter().for_each(|action| self.roles.note(action));
        Some((entry, told))
    }
}

/// The kinds of inputs and their counts, most frequent first.
pub fn summary(history: &History) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    history.inputs.iter().for_each(|entry| *counts.entry(entry.input.name()).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let told: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    told.join(", ")
}
