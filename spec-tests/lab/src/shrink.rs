//! Removes inputs from a trace for as long as the machine is at fault.

use std::fmt;

use cenote_core::pool::PoolState;
use cenote_core::trace::Traced;
use cenote_replay::history::History;
use cenote_replay::shrink::{self, Judge, Property};

use crate::lockstep::judge;
use crate::model::Model;

/// What a trace shows by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An invariant of the machine is violated, or the machine panics.
    Invariant,
    /// The machine differs from the reference model, or its events do not add up.
    Model,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invariant => "a broken invariant",
            Self::Model => "a difference from the reference model",
        })
    }
}

/// A small trace that still shows a fault, and which. `None` if the complete one shows none, as one that does not begin
/// with a new pool, which the model cannot follow.
pub fn shrink(history: &History) -> Option<(Fault, History)> {
    let broken = shrink::shrink(history, &Property::Invariant);
    let broken = broken.map(|history| (Fault::Invariant, history));
    broken.or_else(|| {
        Some((Fault::Model, shrink::shrink_while(history, &|pool| begin(history, pool))?))
    })
}

fn begin(history: &History, pool: &PoolState<Traced>) -> Option<Judge<'static>> {
    let model = Model::new(pool.now(), pool.options().clone()).ok();
    let (mut model, _) = model.filter(|_| history.header.is_new)?;
    Some(Box::new(move |pool, entry, out| {
        match judge(pool, &mut model, entry.at, entry.input.clone()) {
            Ok(actions) => out.extend(actions.unwrap_or_default()),
            Err(_) => return true,
        }
        false
    }))
}
