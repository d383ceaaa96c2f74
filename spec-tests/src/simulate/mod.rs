//! Worlds by seed: a pool among callers, a server and a monitor, in virtual time, with everything that
//! can go wrong, judged at every step.
//!
//! A world has two parts. In the first there is trouble: the server refuses, stalls, resets, the
//! callers go away, hold for ever or bring back what is broken, clocks stand still, run backwards and
//! jump, timers come early and late, options change, the process forks, and whoever embeds the pool
//! makes mistakes. Then all gets well, and what was asked for has to be answered, the minimum to be
//! there and nothing to be pending, within bounded time. At the end the pool is closed, and nothing may
//! be left.
//!
//! Judged after every input: the machine's own invariants; that each request has one outcome and each
//! payload is in one place; that the sum of it all is what the pool says of itself; the rules of event
//! streams ([`check`](cenote_check)); that nobody waits past his time and the timer leaves nothing due;
//! that a refused input leaves no trace; and, if asked for, the reference model
//! ([`model`](crate::model)), in every detail.

mod books;
mod chance;
mod clock;
mod drawn;
mod habits;
mod met;
mod mistake;
mod plan;
mod shrunk;
mod subject;
pub mod wire;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use cenote_core::pool::{Input, Instant};

use self::subject::Watch;
use self::world::World;
use crate::lockstep::{Tagged, panic_message};

pub use self::chance::Latency;
pub use self::drawn::Drawn;
pub use self::habits::Habits;
pub use self::met::Met;
pub use self::plan::{Plan, TimeFaults, Trouble};
pub use self::shrunk::Evidence;

/// What went wrong in a world.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What, in words.
    pub complaint: String,
    /// After how many inputs.
    pub fed: u64,
}

/// What there was in a world in which nothing went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lived {
    /// How many inputs.
    pub inputs: u64,
    /// What can go wrong, and did.
    pub met: Met,
    /// It came to its end, and nobody stopped it before.
    pub is_whole: bool,
}

/// Nobody stops what has this flag.
static NEVER: AtomicBool = AtomicBool::new(false);

/// All that the pool is told in a world in which nothing goes wrong, and when.
///
/// # Errors
///
/// As [`live`].
pub fn inputs_of(plan: &Plan) -> Result<Vec<(Instant, Input<Tagged>)>, Failure> {
    let watch = Watch { has_model: false, keeps_inputs: true };
    let mut world = create(|| World::new(plan, watch, &NEVER))?;
    live_through(&mut world)?;
    Ok(world.subject.kept.take().unwrap_or_default())
}

/// Lives through a world, and says what there was in it.
///
/// # Errors
///
/// The first thing that is wrong. A panic of the machine is told as one.
pub fn live(plan: &Plan, has_model: bool) -> Result<Lived, Failure> {
    live_until(plan, has_model, &NEVER)
}

fn live_until(plan: &Plan, has_model: bool, stop: &AtomicBool) -> Result<Lived, Failure> {
    let watch = Watch { has_model, keeps_inputs: false };
    live_through(&mut create(|| World::new(plan, watch, stop))?)
}

fn live_through(world: &mut World<'_>) -> Result<Lived, Failure> {
    let outcome = caught(|| world.run());
    let fed = world.subject.fed;
    match outcome {
        Ok(is_whole) => Ok(Lived { inputs: fed, met: world.met.clone(), is_whole }),
        Err(complaint) => Err(Failure { complaint, fed }),
    }
}

/// A world in which nothing has happened yet.
fn create<W>(world: impl FnOnce() -> Result<W, String>) -> Result<W, Failure> {
    caught(world).map_err(|complaint| Failure { complaint, fed: 0 })
}

/// A panic of a machine is a complaint.
fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        Err(format!("a machine panicked: {}", panic_message(panic.as_ref())))
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} inputs: {}", self.fed, self.complaint)
    }
}
