//! A world of any kind.

use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;

use super::evidence::{self, Evidence};
use super::plan::Plan;
use super::{Failure, Report, deployment};

/// The kind of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldKind {
    /// A pool and its server, without a network.
    Direct,
    /// The same over virtual sockets.
    Wire,
    /// A client among several servers.
    Deployment,
}

/// A world of any kind, with the parameters that were drawn from its seed.
#[derive(Clone, Debug)]
pub enum SeededPlan {
    /// A pool and its server.
    Pool(Box<Plan>),
    /// A client among several servers.
    Deployment(Box<deployment::Plan>),
}

impl SeededPlan {
    /// The world of a seed.
    pub fn new(kind: WorldKind, seed: u64, steps: u64) -> Self {
        match kind {
            WorldKind::Direct => Self::Pool(Box::new(Plan::new(seed, steps))),
            WorldKind::Wire => Self::Pool(Box::new(Plan::new(seed, steps).on_wire())),
            WorldKind::Deployment => Self::Deployment(Box::new(deployment::Plan::new(seed, steps))),
        }
    }

    /// The seed of all random numbers in this world.
    pub const fn seed(&self) -> u64 {
        match self {
            Self::Pool(plan) => plan.seed,
            Self::Deployment(plan) => plan.seed,
        }
    }

    /// Runs the world to its end, or until `stop` is set.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn run(&self, has_model: bool, stop: &AtomicBool) -> Result<Report, Failure> {
        match self {
            Self::Pool(plan) => super::run_until(plan, has_model, stop),
            Self::Deployment(plan) => deployment::run_until(plan, has_model, stop),
        }
    }

    /// Runs the world again, records every input of the pool, and shrinks the recording; `None` if
    /// nothing fails this time, and for a client among several servers, which has several pools.
    ///
    /// # Errors
    ///
    /// I/O errors of writing the trace to memory, which do not occur in practice.
    pub fn evidence(&self, has_model: bool) -> io::Result<Option<Evidence>> {
        match self {
            Self::Pool(plan) => evidence::evidence(plan, has_model),
            Self::Deployment(_) => Ok(None),
        }
    }
}

/// Every parameter, one per line.
impl fmt::Display for SeededPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(plan) => plan.fmt(f),
            Self::Deployment(plan) => plan.fmt(f),
        }
    }
}
