//! The trace of a world that went wrong, with what has nothing to do with it taken away.

use std::io;

use cenote_core::pool::{Input, PoolOptions, PoolTypes};
use cenote_core::trace::{Cause, Traced};

use super::plan::Plan;
use super::subject::{Fed, Watch};
use super::world::World;
use super::{Failure, Lived, NEVER, create, live_through, wire};
use crate::lockstep::map_input;
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
pub(super) fn evidence(plan: &Plan, has_model: bool) -> io::Result<Option<Evidence>> {
    let watch = Watch { has_model, keeps_inputs: true };
    let Ok(mut world) = create(|| World::new(plan, watch, &NEVER)) else { return Ok(None) };
    let outcome: Result<Lived, Failure> = live_through(&mut world);
    let kept = outcome.err().and_then(|_| world.subject.kept.take());
    // What differs is told apart by its number.
    let told =
        |cause: u64| Cause { text: Some(format!("cause {cause}").into()), ..Cause::default() };
    kept.map(|kept| shrink(&plan.options, kept, told)).transpose()
}

/// The same for a world on the wire, of whose pool the trace is.
///
/// # Errors
///
/// As [`evidence`].
pub(super) fn evidence_on_wire(plan: &wire::Plan, has_model: bool) -> io::Result<Option<Evidence>> {
    let watch = Watch { has_model, keeps_inputs: true };
    let Ok(mut world) = create(|| wire::World::new(plan, watch, &NEVER)) else { return Ok(None) };
    live_on_wire(plan, &mut world)
}

pub(super) fn live_on_wire(
    plan: &wire::Plan,
    world: &mut wire::World<'_>,
) -> io::Result<Option<Evidence>> {
    let outcome: Result<Lived, Failure> = wire::live_through(world);
    let kept = outcome.err().and_then(|_| world.subject.kept.take());
    kept.map(|kept| shrink(&plan.options, kept, |why| why.traced())).transpose()
}

fn shrink<S: PoolTypes>(
    options: &PoolOptions,
    kept: Vec<Fed<S>>,
    told: impl Fn(S::Cause) -> Cause,
) -> io::Result<Evidence> {
    let bytes = record::beginning(options, Vec::new())?;
    let (mut history, _) = History::read(bytes.as_slice()).map_err(io::Error::other)?;
    let entry = |(at, input): Fed<S>| {
        let input: Input<Traced> = map_input(input, |id| id, |_| (), &told);
        Entry { at, input, refused: false }
    };
    history.inputs = kept.into_iter().map(entry).collect();
    for property in [Property::Invariant, Property::Model] {
        if let Some(history) = shrink::shrink(&history, &property) {
            return Ok(Evidence { history, property: Some(property) });
        }
    }
    Ok(Evidence { history, property: None })
}
