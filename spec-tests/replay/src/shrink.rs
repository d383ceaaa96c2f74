//! Removes inputs from a trace for as long as it still shows a property.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use cenote_core::pool::{Action, ActionSink, Input, Instant, PoolState};
use cenote_core::trace::Traced;

use super::clock::{Clock, NoClock};
use super::condition::{Condition, InvalidCondition, StepResult};
use super::history::{Discard, Entry, History};
use super::symbolic::{Clock as SymbolicClock, Names, Naming, Symbolic, Timeline, symbolic};

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
}

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
    shrink_while(history, Shown::Property(property))
}

/// The same for a property that shows beside the pool, such as a difference from a model.
pub fn shrink_beside(history: &History, begin: &BeginBeside<'_>) -> Option<History> {
    shrink_while(history, Shown::Beside(begin))
}

/// What is compared with the pool while a trace is replayed.
pub trait Beside {
    /// Feeds an input to the pool, and judges what it does: its actions, or what is wrong with them.
    ///
    /// # Errors
    ///
    /// The property has shown.
    fn feed(
        &mut self,
        pool: &mut PoolState<Traced>,
        at: Instant,
        input: Input<Traced>,
    ) -> Result<Vec<Action<Traced>>, String>;
}

/// Begins a comparison with a pool in this state; `None` if it cannot be compared.
pub type BeginBeside<'a> = dyn Fn(&PoolState<Traced>) -> Option<Box<dyn Beside>> + 'a;

/// What a shrunk trace has to show.
#[derive(Clone, Copy)]
enum Shown<'a> {
    Property(&'a Property),
    Beside(&'a BeginBeside<'a>),
}

fn shrink_while(history: &History, shown: Shown<'_>) -> Option<History> {
    let all = symbolic(history);
    let start = history.pool();
    let shrink = |timeline| {
        let runs = Runs { start: &start, all: &all, shown, timeline };
        let mut search = Search { runs, replayed: 0 };
        let everything: Vec<usize> = (0..all.len()).collect();
        let needed = search.shows(&everything)?;
        let groups = search.fewest_at_both_ends(groups(&all[..needed]));
        let kept = search.leave_out(groups);
        let kept = search.leave_out(kept.into_iter().map(|at| vec![at]).collect());
        Some(search.runs.resolved(&kept))
    };
    let as_it_was = [Timeline::Closed, Timeline::Open].into_iter().filter_map(shrink);
    let inputs = as_it_was.min_by_key(Vec::len)?;
    // Inputs that have to coincide with a deadline coincide with it in a shorter trace, too.
    let is_long = inputs.len() > SHORT;
    let at_deadlines = if is_long { shrink(Timeline::Due) } else { None };
    let inputs = at_deadlines.into_iter().chain([inputs]).min_by_key(Vec::len)?;
    Some(History { inputs, ..history.clone() })
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

struct Search<'a> {
    runs: Runs<'a>,
    /// The number of inputs that were replayed.
    replayed: usize,
}

impl Search<'_> {
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

    /// Leaves out chunks of groups, from the end to the front, ever smaller ones, as long as the
    /// rest shows the property.
    fn leave_out(&mut self, mut groups: Vec<Vec<usize>>) -> Vec<usize> {
        let mut size = groups.len().div_ceil(2).max(1);
        loop {
            let before = groups.len();
            let mut end = before;
            while end > 0 && self.replayed < REPLAYED_MAX {
                let begin = end.saturating_sub(size);
                let rest = groups[..begin].iter().chain(&groups[end..]).cloned();
                let without: Vec<_> = rest.collect();
                if self.shows(&in_order(&without)).is_some() {
                    groups = without;
                }
                end = begin;
            }
            let is_done = size == 1 && groups.len() == before;
            if is_done || self.replayed >= REPLAYED_MAX {
                // Inputs after the one that shows the property are not needed.
                let mut kept = in_order(&groups);
                kept.truncate(self.shows(&kept).unwrap_or(kept.len()));
                return kept;
            }
            size = size.div_ceil(2);
        }
    }

    /// The number of these inputs until the property shows.
    fn shows(&mut self, kept: &[usize]) -> Option<usize> {
        self.replayed += kept.len();
        self.runs.shows(kept)
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

/// Replays some of the inputs.
struct Runs<'a> {
    start: &'a PoolState<Traced>,
    all: &'a [Symbolic],
    shown: Shown<'a>,
    timeline: Timeline,
}

/// One replay.
struct Run {
    pool: PoolState<Traced>,
    names: Names,
    clock: SymbolicClock,
}

impl Runs<'_> {
    /// The number of these inputs until the property shows.
    fn shows(&self, kept: &[usize]) -> Option<usize> {
        match self.shown {
            Shown::Property(Property::Invariant) => {}
            Shown::Property(property) => return self.shows_quietly(kept, property),
            Shown::Beside(begin) => return self.shows_beside(kept, begin),
        }
        // The panic that is looked for may come anywhere.
        let mut taken = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut run = self.begin();
            for &at in kept {
                taken += 1;
                run.take(&self.all[at], &mut Discard);
                run.pool.check_invariants();
            }
        }));
        outcome.is_err().then_some(taken)
    }

    fn shows_beside(&self, kept: &[usize], begin: &BeginBeside<'_>) -> Option<usize> {
        let mut run = self.begin();
        let mut beside = begin(&run.pool)?;
        for (index, &at) in kept.iter().enumerate() {
            if run.take_beside(&self.all[at], &mut *beside).is_err() {
                return Some(index + 1);
            }
        }
        None
    }

    fn shows_quietly(&self, kept: &[usize], property: &Property) -> Option<usize> {
        let mut run = self.begin();
        let mut out = Sink { actions: Vec::new(), wants_events: wants_events(property) };
        for (index, &at) in kept.iter().enumerate() {
            out.actions.clear();
            let symbolic = &self.all[at];
            let Some(entry) = run.take(symbolic, &mut out) else { continue };
            let shown = match property {
                // An input that is invalid only because others were left out proves nothing.
                Property::Misuse => entry.refused && symbolic.refused,
                Property::Invariant => false,
                Property::Condition(condition) => {
                    let step = index as u64 + 1;
                    !entry.refused && run.meets(condition, step, &entry, &out.actions)
                }
            };
            if shown {
                return Some(index + 1);
            }
        }
        None
    }

    /// The inputs as they are in a run without the others.
    fn resolved(&self, kept: &[usize]) -> Vec<Entry> {
        let mut run = self.begin();
        let mut entries = Vec::new();
        for &at in kept {
            let taken = catch_unwind(AssertUnwindSafe(|| run.take(&self.all[at], &mut Discard)));
            entries.extend(taken.unwrap_or_default());
        }
        entries
    }

    fn begin(&self) -> Run {
        let pool = self.start.clone();
        let clock = SymbolicClock::new(self.timeline, pool.now());
        Run { pool, names: Names::default(), clock }
    }
}

impl Run {
    /// Feeds an input, if it is meaningful in this run.
    fn take(&mut self, symbolic: &Symbolic, out: &mut impl ActionSink<Traced>) -> Option<Entry> {
        let Self { pool, names, clock } = self;
        let mut input = symbolic.resolve(names, pool)?;
        let at = clock.tell(symbolic, &mut input, pool);
        let mut naming = Naming { names, out };
        let refused = pool.handle(at, input.clone(), &mut naming).is_err();
        Some(Entry { at, input, refused, place: symbolic.place.clone() })
    }

    /// As [`take`](Self::take), compared with something else.
    fn take_beside(&mut self, symbolic: &Symbolic, beside: &mut dyn Beside) -> Result<(), String> {
        let Self { pool, names, clock } = self;
        let Some(mut input) = symbolic.resolve(names, pool) else { return Ok(()) };
        let at = clock.tell(symbolic, &mut input, pool);
        let mut naming = Naming { names, out: &mut Discard };
        for action in beside.feed(pool, at, input)? {
            naming.act(action);
        }
        Ok(())
    }

    fn meets(
        &self,
        condition: &Condition,
        step: u64,
        entry: &Entry,
        actions: &[Action<Traced>],
    ) -> bool {
        let (at, snapshot) = (self.pool.now(), self.pool.snapshot());
        let result = StepResult { step, at, input: &entry.input, actions, snapshot: &snapshot };
        condition.holds(&result)
    }
}

fn wants_events(property: &Property) -> bool {
    matches!(property, Property::Condition(Condition::Event(_)))
}

struct Sink {
    actions: Vec<Action<Traced>>,
    wants_events: bool,
}

impl ActionSink<Traced> for Sink {
    fn act(&mut self, action: Action<Traced>) {
        self.actions.push(action);
    }

    fn wants_events(&self) -> bool {
        self.wants_events
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
