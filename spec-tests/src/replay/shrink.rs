//! Taking inputs away from a trace for as long as it still shows something.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use cenote_core::pool::{Action, ActionSink, PoolState};
use cenote_core::trace::Traced;

use super::condition::{Condition, Moment, NoCondition};
use super::history::{Entry, History};
use super::symbolic::{Names, Naming, Symbolic, name_started, symbolic};

/// What a trace shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Property {
    /// An input is refused.
    Misuse,
    /// An invariant of the machine does not hold, or it panics.
    Invariant,
    /// A condition holds after some step.
    Condition(Condition),
}

impl FromStr for Property {
    type Err = NoCondition;

    fn from_str(text: &str) -> Result<Self, NoCondition> {
        match text {
            "misuse" => Ok(Self::Misuse),
            "invariant" => Ok(Self::Invariant),
            _ => {
                let named = crate::event_json::TYPES.contains(&text);
                let text = if named { format!("event={text}") } else { text.to_owned() };
                text.parse().map(Self::Condition)
            }
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse => f.write_str("a refused input"),
            Self::Invariant => f.write_str("a broken invariant"),
            Self::Condition(condition) => write!(f, "{condition:?}"),
        }
    }
}

/// The smallest trace that was found which still shows the property; `None` if not even the whole
/// one does. Each candidate is replayed from the start, so the time is that of a few hundred replays
/// of ever shorter traces.
pub fn shrink(history: &History, property: &Property) -> Option<History> {
    let all = symbolic(history);
    let start = history.pool();
    let mut kept: Vec<usize> = (0..all.len()).collect();
    kept.truncate(shows(&start, &all, &kept, property)?);
    let mut size = kept.len().div_ceil(2).max(1);
    loop {
        let removed = remove_chunks(&start, &all, &mut kept, property, size);
        if size == 1 {
            if !removed {
                break;
            }
        } else {
            size = size.div_ceil(2);
        }
    }
    let inputs = resolved(&start, &all, &kept);
    Some(History { inputs, ..history.clone() })
}

/// Tries to do without each chunk of so many, from the end to the front.
fn remove_chunks(
    start: &PoolState<Traced>,
    all: &[Symbolic],
    kept: &mut Vec<usize>,
    property: &Property,
    size: usize,
) -> bool {
    let mut removed = false;
    let mut end = kept.len();
    while end > 0 {
        let begin = end.saturating_sub(size);
        let without: Vec<usize> =
            kept[..begin].iter().chain(&kept[end.min(kept.len())..]).copied().collect();
        if let Some(length) = shows(start, all, &without, property) {
            *kept = without;
            // Whatever comes after the step that shows it is not needed.
            kept.truncate(length);
            removed = true;
        }
        end = begin.min(kept.len());
    }
    removed
}

/// How many of these inputs it takes until the property shows.
fn shows(
    start: &PoolState<Traced>,
    all: &[Symbolic],
    kept: &[usize],
    property: &Property,
) -> Option<usize> {
    let run = || run(start.clone(), all, kept, property);
    if *property == Property::Invariant {
        // A panic is what is looked for, and where it comes is not known beforehand.
        let mut taken = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run_checked(start.clone(), all, kept, &mut taken);
        }));
        return outcome.is_err().then_some(taken);
    }
    run()
}

fn run(
    mut pool: PoolState<Traced>,
    all: &[Symbolic],
    kept: &[usize],
    property: &Property,
) -> Option<usize> {
    let (mut names, mut started) = (Names::default(), Vec::new());
    let mut actions = Sink { actions: Vec::new(), wants_events: wants_events(property) };
    for (index, &at) in kept.iter().enumerate() {
        let symbolic = &all[at];
        let Some(input) = symbolic.resolve(&names) else { continue };
        actions.actions.clear();
        let told = input.clone();
        let mut naming = Naming { names: &mut names, started: &mut started, out: &mut actions };
        let refused = pool.handle(symbolic.at, input, &mut naming).is_err();
        name_started(&mut names, &mut started, &pool);
        let shown = match property {
            // One that only its surroundings make senseless proves nothing.
            Property::Misuse => refused && symbolic.refused,
            Property::Invariant => false,
            Property::Condition(condition) => {
                !refused
                    && condition.holds(&Moment {
                        step: index as u64 + 1,
                        at: pool.now(),
                        input: &told,
                        actions: &actions.actions,
                        snapshot: &pool.snapshot(),
                    })
            }
        };
        if shown {
            return Some(index + 1);
        }
    }
    None
}

fn run_checked(mut pool: PoolState<Traced>, all: &[Symbolic], kept: &[usize], taken: &mut usize) {
    let (mut names, mut started) = (Names::default(), Vec::new());
    for &at in kept {
        *taken += 1;
        let Some(input) = all[at].resolve(&names) else { continue };
        let out = &mut super::history::Nobody;
        let mut naming = Naming { names: &mut names, started: &mut started, out };
        let _ = pool.handle(all[at].at, input, &mut naming);
        name_started(&mut names, &mut started, &pool);
        pool.check_invariants();
    }
}

/// The inputs that are left, as they are in a run of their own.
fn resolved(start: &PoolState<Traced>, all: &[Symbolic], kept: &[usize]) -> Vec<Entry> {
    let mut pool = start.clone();
    let (mut names, mut started) = (Names::default(), Vec::new());
    let mut entries = Vec::new();
    for &at in kept {
        let symbolic = &all[at];
        let Some(input) = symbolic.resolve(&names) else { continue };
        let out = &mut super::history::Nobody;
        let mut naming = Naming { names: &mut names, started: &mut started, out };
        let handle = AssertUnwindSafe(|| pool.handle(symbolic.at, input.clone(), &mut naming));
        let refused = catch_unwind(handle).is_ok_and(|outcome| outcome.is_err());
        name_started(&mut names, &mut started, &pool);
        entries.push(Entry { at: symbolic.at, input, refused });
    }
    entries
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
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    history.inputs.iter().for_each(|entry| *counts.entry(entry.input.name()).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let told: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    told.join(", ")
}
