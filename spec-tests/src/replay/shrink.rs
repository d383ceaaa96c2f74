//! Taking inputs away from a trace for as long as it still shows something.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use cenote_core::pool::{Action, ActionSink, ConnId, PoolState};
use cenote_core::trace::Traced;

use crate::lockstep;
use crate::model::Model;

use super::condition::{Condition, Moment, NoCondition};
use super::history::{Entry, History, Nobody};
use super::symbolic::{Clock, Names, Naming, Symbolic, Timeline, name_started, symbolic};

/// What a trace shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Property {
    /// An input is refused.
    Misuse,
    /// An invariant of the machine does not hold, or it panics.
    Invariant,
    /// The machine does other than the reference model, or its events do not add up. For traces
    /// that begin with the pool.
    Model,
    /// A condition holds after some step.
    Condition(Condition),
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "misuse" => Ok(Self::Misuse),
            "invariant" => Ok(Self::Invariant),
            "model" => Ok(Self::Model),
            _ => {
                let named = crate::event_json::TYPES.contains(&text);
                let text = if named { format!("event={text}") } else { text.to_owned() };
                let condition = text.parse().map(Self::Condition);
                let or = "; or misuse, invariant, model, or the name of an event";
                condition.map_err(|error: NoCondition| format!("{error}{or}"))
            }
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse => f.write_str("a refused input"),
            Self::Invariant => f.write_str("a broken invariant"),
            Self::Model => f.write_str("what the reference model would not do"),
            Self::Condition(condition) => write!(f, "{condition}"),
        }
    }
}

/// A small trace that still shows the property; `None` if not even the whole one does.
///
/// Each candidate is replayed from the start. So first comes what may get rid of almost everything
/// with few and short replays: a few stories from the front and a few from the end. Then halves,
/// quarters, … of the stories are left out, and at last of single inputs. All of that once as if what
/// is left out took no time, and once with gaps; and if that was not enough, once with everything that
/// came when something was due at such a moment again. After some ten million inputs it makes do with what
/// it has.
pub fn shrink(history: &History, property: &Property) -> Option<History> {
    let all = symbolic(history);
    let start = history.pool();
    let shrink = |timeline| {
        let is_new = history.header.is_new;
        let runs = Runs { start: &start, all: &all, property, timeline, is_new };
        let mut search = Search { runs, replayed: 0 };
        let everything: Vec<usize> = (0..all.len()).collect();
        let shown = search.shows(&everything)?;
        let stories = search.fewest_at_both_ends(stories(&all[..shown]));
        let kept = search.leave_out(stories);
        let kept = search.leave_out(kept.into_iter().map(|at| vec![at]).collect());
        Some(search.runs.resolved(&kept))
    };
    let as_it_was = [Timeline::Closed, Timeline::Open].into_iter().filter_map(shrink);
    let inputs = as_it_was.min_by_key(Vec::len)?;
    // What has to come at one moment with the end of something comes there in a shorter trace, too.
    let is_long = inputs.len() > SHORT;
    let at_deadlines = if is_long { shrink(Timeline::Due) } else { None };
    let inputs = at_deadlines.into_iter().chain([inputs]).min_by_key(Vec::len)?;
    Some(History { inputs, ..history.clone() })
}

/// The inputs of each story, stories in the order in which they begin.
fn stories(all: &[Symbolic]) -> Vec<Vec<usize>> {
    let mut stories = Vec::<Vec<usize>>::new();
    let mut places = BTreeMap::new();
    for (index, symbolic) in all.iter().enumerate() {
        let place = *places.entry(symbolic.story(index)).or_insert(stories.len());
        if place == stories.len() {
            stories.push(Vec::new());
        }
        stories[place].push(index);
    }
    stories
}

struct Search<'a> {
    runs: Runs<'a>,
    /// Inputs so far.
    replayed: usize,
}

impl Search<'_> {
    /// As few stories from the front and from the end as show it, in powers of two.
    fn fewest_at_both_ends(&mut self, stories: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let count = stories.len();
        let sizes = || std::iter::successors(Some(1), |size| Some(size * 2));
        for total in sizes().take_while(|&total| total < count) {
            for back in sizes().take_while(|&back| back <= total) {
                let front = &stories[..total - back];
                let chosen: Vec<_> =
                    front.iter().chain(&stories[count - back..]).cloned().collect();
                if self.shows(&in_order(&chosen)).is_some() {
                    return chosen;
                }
            }
        }
        stories
    }

    /// Leaves out chunks of so many stories, from the end to the front, ever smaller ones, for as
    /// long as what is left shows it.
    fn leave_out(&mut self, mut stories: Vec<Vec<usize>>) -> Vec<usize> {
        let mut size = stories.len().div_ceil(2).max(1);
        loop {
            let before = stories.len();
            let mut end = before;
            while end > 0 && self.replayed < REPLAYED_MAX {
                let begin = end.saturating_sub(size);
                let rest = stories[..begin].iter().chain(&stories[end..]).cloned();
                let without: Vec<_> = rest.collect();
                if self.shows(&in_order(&without)).is_some() {
                    stories = without;
                }
                end = begin;
            }
            let is_done = size == 1 && stories.len() == before;
            if is_done || self.replayed >= REPLAYED_MAX {
                // Whatever comes after the input that shows it is not needed.
                let mut kept = in_order(&stories);
                kept.truncate(self.shows(&kept).unwrap_or(kept.len()));
                return kept;
            }
            size = size.div_ceil(2);
        }
    }

    /// How many of these inputs it takes until the property shows.
    fn shows(&mut self, kept: &[usize]) -> Option<usize> {
        self.replayed += kept.len();
        self.runs.shows(kept)
    }
}

fn in_order(stories: &[Vec<usize>]) -> Vec<usize> {
    let mut kept: Vec<usize> = stories.iter().flatten().copied().collect();
    kept.sort_unstable();
    kept
}

/// So few inputs can be read.
const SHORT: usize = 12;

/// About a quarter of a minute.
const REPLAYED_MAX: usize = 15_000_000;

/// Replays of some of the inputs.
struct Runs<'a> {
    start: &'a PoolState<Traced>,
    all: &'a [Symbolic],
    property: &'a Property,
    timeline: Timeline,
    /// The pool was new at the start.
    is_new: bool,
}

/// One of them.
struct Run {
    pool: PoolState<Traced>,
    names: Names,
    started: Vec<ConnId>,
    clock: Clock,
}

impl Runs<'_> {
    /// How many of these inputs it takes until the property shows.
    fn shows(&self, kept: &[usize]) -> Option<usize> {
        match self.property {
            Property::Invariant => {}
            Property::Model => return self.differs_from_model(kept),
            Property::Misuse | Property::Condition(_) => return self.shows_quietly(kept),
        }
        // A panic is what is looked for, and where it comes is not known beforehand.
        let mut taken = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut run = self.begin();
            for &at in kept {
                taken += 1;
                run.take(&self.all[at], &mut Nobody);
                run.pool.check_invariants();
            }
        }));
        outcome.is_err().then_some(taken)
    }

    fn differs_from_model(&self, kept: &[usize]) -> Option<usize> {
        let mut run = self.begin();
        let model = Model::new(run.pool.now(), run.pool.options().clone());
        let (mut model, _) = model.ok().filter(|_| self.is_new)?;
        for (index, &at) in kept.iter().enumerate() {
            if run.take_beside(&self.all[at], &mut model).is_err() {
                return Some(index + 1);
            }
        }
        None
    }

    fn shows_quietly(&self, kept: &[usize]) -> Option<usize> {
        let mut run = self.begin();
        let mut out = Sink { actions: Vec::new(), wants_events: wants_events(self.property) };
        for (index, &at) in kept.iter().enumerate() {
            out.actions.clear();
            let symbolic = &self.all[at];
            let Some(entry) = run.take(symbolic, &mut out) else { continue };
            let shown = match self.property {
                // One that only its surroundings make senseless proves nothing.
                Property::Misuse => entry.refused && symbolic.refused,
                Property::Invariant | Property::Model => false,
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

    /// The inputs as they are in a run of their own.
    fn resolved(&self, kept: &[usize]) -> Vec<Entry> {
        let mut run = self.begin();
        let mut entries = Vec::new();
        for &at in kept {
            let taken = catch_unwind(AssertUnwindSafe(|| run.take(&self.all[at], &mut Nobody)));
            entries.extend(taken.unwrap_or_default());
        }
        entries
    }

    fn begin(&self) -> Run {
        let pool = self.start.clone();
        let clock = Clock::new(self.timeline, pool.now());
        Run { pool, names: Names::default(), started: Vec::new(), clock }
    }
}

impl Run {
    /// Feeds an input, if it means anything here.
    fn take(&mut self, symbolic: &Symbolic, out: &mut impl ActionSink<Traced>) -> Option<Entry> {
        let Self { pool, names, started, clock } = self;
        let mut input = symbolic.resolve(names, pool)?;
        let at = clock.tell(symbolic, &mut input, pool);
        let mut naming = Naming { names, started, out };
        let refused = pool.handle(at, input.clone(), &mut naming).is_err();
        name_started(names, started, pool);
        Some(Entry { at, input, refused })
    }

    /// As [`take`](Self::take), judged.
    fn take_beside(
        &mut self,
        symbolic: &Symbolic,
        model: &mut Model<Traced>,
    ) -> Result<(), String> {
        let Self { pool, names, started, clock } = self;
        let Some(mut input) = symbolic.resolve(names, pool) else { return Ok(()) };
        let at = clock.tell(symbolic, &mut input, pool);
        let mut naming = Naming { names, started, out: &mut Nobody };
        for action in lockstep::judge(pool, model, at, input)?.unwrap_or_default() {
            naming.act(action);
        }
        name_started(names, started, pool);
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
        let moment = Moment { step, at, input: &entry.input, actions, snapshot: &snapshot };
        condition.holds(&moment)
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

/// Kinds of inputs and how often each comes, most frequent first: what a trace consists of.
pub fn summary(history: &History) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    history.inputs.iter().for_each(|entry| *counts.entry(entry.input.name()).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let told: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    told.join(", ")
}
