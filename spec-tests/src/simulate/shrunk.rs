//! The trace of a world that went wrong, with what has nothing to do with it taken away.

use std::io;

use cenote_core::pool::{Input, Instant};
use cenote_core::trace::{Cause, Traced};

use super::plan::Plan;
use super::subject::Watch;
use super::world::World;
use super::{Failure, live_through};
use crate::lockstep::{Tagged, map_input};
use crate::replay::history::{Entry, History};
use crate::replay::record;
use crate::replay::shrink::{self, Property};

/// A trace that shows what went wrong.
#[derive(Debug)]
pub struct Evidence {
    /// What happened, up to the input that went wrong.
    pub history: History,
    /// What it was shrunk to, if it shows by itself: what only whoever feeds the pool can see, such as
    /// somebody who was forgotten, needs all of it.
    pub property: Option<Property>,
}

/// Lives through the world again, keeps every input, and shrinks them.
///
/// # Errors
///
/// Never, in practice: there is memory for the trace.
pub fn evidence(plan: &Plan, has_model: bool) -> io::Result<Option<Evidence>> {
    let watch = Watch { has_model, keeps_inputs: true };
    let Ok(mut world) = World::new(plan, watch) else { return Ok(None) };
    let outcome: Result<u64, Failure> = live_through(&mut world);
    if outcome.is_ok() {
        return Ok(None);
    }
    let bytes = record::beginning(&plan.options, Vec::new())?;
    let (mut history, _) = History::read(bytes.as_slice()).map_err(io::Error::other)?;
    let kept = world.subject.kept.take().unwrap_or_default();
    history.inputs = kept.into_iter().map(|(at, input)| entry(at, input)).collect();
    for property in [Property::Invariant, Property::Model] {
        if let Some(history) = shrink::shrink(&history, &property) {
            return Ok(Some(Evidence { history, property: Some(property) }));
        }
    }
    Ok(Some(Evidence { history, property: None }))
}

fn entry(at: Instant, input: Input<Tagged>) -> Entry {
    let told =
        |cause: u64| Cause { text: Some(format!("cause {cause}").into()), ..Cause::default() };
    let input: Input<Traced> = map_input(input, |id| id, |_| (), told);
    Entry { at, input, refused: false }
}
