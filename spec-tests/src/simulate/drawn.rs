//! A world of either kind.

use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;

use super::shrunk::{self, Evidence};
use super::{Failure, Lived, Plan, wire};

/// What a world is like that a seed has drawn, of either kind.
#[derive(Clone, Debug)]
pub enum Drawn {
    /// The pool's machine among stand-ins.
    Pool(Box<Plan>),
    /// With connections that are real conversations.
    Wire(Box<wire::Plan>),
}

impl Drawn {
    /// The world of a seed.
    pub fn new(seed: u64, steps: u64, is_on_wire: bool) -> Self {
        if is_on_wire {
            Self::Wire(Box::new(wire::Plan::new(seed, steps)))
        } else {
            Self::Pool(Box::new(Plan::new(seed, steps)))
        }
    }

    /// Where all of it comes from.
    pub const fn seed(&self) -> u64 {
        match self {
            Self::Pool(plan) => plan.seed,
            Self::Wire(plan) => plan.seed,
        }
    }

    /// Lives through it, or as far as somebody lets it, and says what there was in it.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn live(&self, has_model: bool, stop: &AtomicBool) -> Result<Lived, Failure> {
        match self {
            Self::Pool(plan) => super::live_until(plan, has_model, stop),
            Self::Wire(plan) => wire::live_until(plan, has_model, stop),
        }
    }

    /// Lives through it again, keeps every input of the pool, and shrinks them; `None` if nothing is
    /// wrong this time.
    ///
    /// # Errors
    ///
    /// Never, in practice: there is memory for the trace.
    pub fn evidence(&self, has_model: bool) -> io::Result<Option<Evidence>> {
        match self {
            Self::Pool(plan) => shrunk::evidence(plan, has_model),
            Self::Wire(plan) => shrunk::evidence_on_wire(plan, has_model),
        }
    }
}

/// Every parameter, a line each.
impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(plan) => plan.fmt(f),
            Self::Wire(plan) => plan.fmt(f),
        }
    }
}
