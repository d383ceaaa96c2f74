//! The trace of a world that failed, shrunk to the inputs that are needed for the failure.

use std::io;

use cenote_core::pool::{Input, PoolOptions};
use cenote_core::trace::{Cause, JournalOptions, Traced};

use super::plan::Plan;
use super::subject::{Fed, Judges};
use super::world::World;
use super::{NEVER_STOPPED, create, run_world};
use crate::lockstep::map_input;
use crate::shrink::{self, Fault};
use cenote_replay::history::{Entry, History};
use cenote_replay::record;
use cenote_replay::traffic::Scene;

/// A trace that shows a failure.
#[derive(Debug)]
pub struct Evidence {
    /// All inputs, up to the one that failed.
    pub history: History,
    /// The failure that the trace shows by itself, and to which it was shrunk. `None` if only the world
    /// can see the failure, such as a request that was never answered: then the trace is complete.
    pub fault: Option<Fault>,
}

/// Runs the world again, records every input, and shrinks the recording.
///
/// # Errors
///
/// I/O errors of writing the trace to memory, which do not occur in practice.
pub(super) fn evidence(plan: &Plan, has_model: bool) -> io::Result<Option<Evidence>> {
    let judges = Judges { has_model, keeps_inputs: true };
    let Ok(mut world) = create(|| World::new(plan, judges, &NEVER_STOPPED)) else {
        return Ok(None);
    };
    let outcome = run_world(&mut world);
    let kept = outcome.err().and_then(|_| world.subject.kept.take());
    kept.map(|kept| shrink(&plan.options, kept)).transpose()
}

fn shrink(options: &PoolOptions, kept: Vec<Fed>) -> io::Result<Evidence> {
    let scene = Scene { options: options.clone(), ..Scene::new(0, 1) };
    let bytes = record::traffic(scene, 0, JournalOptions::default(), Vec::new())?;
    let (mut history, _) = History::read(bytes.as_slice()).map_err(io::Error::other)?;
    // Causes are told apart by their numbers.
    let traced = |cause| Cause { text: Some(format!("cause {cause}").into()), ..Cause::default() };
    let entry = |(at, input): Fed| {
        let input: Input<Traced> = map_input(input, |id| id, |_| (), traced);
        Entry { at, input, refused: false, place: None, follows: None }
    };
    history.inputs = kept.into_iter().map(entry).collect();
    Ok(match shrink::shrink(&history) {
        Some((fault, history)) => Evidence { history, fault: Some(fault) },
        None => Evidence { history, fault: None },
    })
}
