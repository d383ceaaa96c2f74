//! Simulated worlds: a pool among callers, a server and a monitor, in virtual time, with every kind of fault,
//! reproducible from a seed. What connects the pool with its server is a [parameter](Transport): nothing but timers,
//! or real conversations over virtual sockets.
//!
//! A world has two parts. First, faults occur: the server refuses, stalls and resets connections; callers
//! cancel, leak connections and return broken ones; clocks stand still, run backwards and jump; timers fire
//! early and late; the client is stopped for seconds; options change; the process forks; the embedder misuses
//! the API. Then all faults end, and within bounded time every request has to be answered, the pool has to
//! reach its minimum size, and nothing may be pending. Finally the pool is closed, and nothing may be left.
//!
//! Checked after every input: the pool's own invariants; that each request gets one outcome and each payload
//! is in one place; that the sums match the pool's snapshot; the rules of event streams
//! ([`check`](cenote_check)); that no request waits past its deadline and the timer leaves nothing due; that
//! a refused input changes nothing; and, if requested, every detail against the reference model
//! ([`model`](crate::model)).

mod accounting;
mod caller_profile;
mod clock;
mod coverage;
pub mod deployment;
mod evidence;
mod latency;
mod misuse;
mod plan;
mod seeded_plan;
mod subject;
mod trouble;
mod wire;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use cenote_core::pool::{Input, Instant};

use self::subject::Judges;
use self::world::World;
use crate::lockstep::{Tagged, panic_message};

pub use self::caller_profile::CallerProfile;
pub use self::coverage::Coverage;
pub use self::evidence::Evidence;
pub use self::latency::Latency;
pub use self::plan::{Plan, TimeFaults, Transport};
pub use self::seeded_plan::{SeededPlan, WorldKind};
pub use self::trouble::Trouble;
pub use self::wire::Conversations;

/// A violation in a world.
#[derive(Clone, Debug)]
pub struct Failure {
    /// A description of the violation.
    pub complaint: String,
    /// The number of inputs before it.
    pub inputs: u64,
}

/// What happened in a world without a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The number of inputs.
    pub inputs: u64,
    /// The situations that occurred.
    pub coverage: Coverage,
    /// The world ran to its end and was not stopped before.
    pub is_whole: bool,
}

static NEVER_STOPPED: AtomicBool = AtomicBool::new(false);

/// All inputs of the pool in a world without a violation, with their times.
///
/// # Errors
///
/// As [`run`].
pub fn inputs_of(plan: &Plan) -> Result<Vec<(Instant, Input<Tagged>)>, Failure> {
    let judges = Judges { has_model: false, keeps_inputs: true };
    let mut world = create(|| World::new(plan, judges, &NEVER_STOPPED))?;
    run_world(&mut world)?;
    Ok(world.subject.kept.take().unwrap_or_default())
}

/// Runs a world.
///
/// # Errors
///
/// The first violation, or a panic of the pool.
pub fn run(plan: &Plan, has_model: bool) -> Result<Report, Failure> {
    run_until(plan, has_model, &NEVER_STOPPED)
}

fn run_until(plan: &Plan, has_model: bool, stop: &AtomicBool) -> Result<Report, Failure> {
    let judges = Judges { has_model, keeps_inputs: false };
    run_world(&mut create(|| World::new(plan, judges, stop))?)
}

fn run_world(world: &mut World<'_>) -> Result<Report, Failure> {
    let outcome = caught(|| world.run());
    let inputs = world.subject.fed;
    match outcome {
        Ok(is_whole) => Ok(Report { inputs, coverage: world.coverage.clone(), is_whole }),
        Err(complaint) => Err(Failure { complaint, inputs }),
    }
}

fn create<W>(world: impl FnOnce() -> Result<W, String>) -> Result<W, Failure> {
    caught(world).map_err(|complaint| Failure { complaint, inputs: 0 })
}

/// Turns a panic into a complaint.
fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        Err(format!("a state machine panicked: {}", panic_message(panic.as_ref())))
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} inputs: {}", self.inputs, self.complaint)
    }
}
