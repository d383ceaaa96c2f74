//! Worlds in which connections are real conversations: the pool's machine, those that establish
//! connections, and the monitor's, over virtual sockets to the endpoint's brain.
//!
//! Bytes take their time, in whatever cut, through a proxy or not; the network loses a direction of
//! some connections, is cut in two and whole again; the server has all the troubles that the endpoint
//! can have. Callers send commands and read replies. Nothing here decides about a pool: what marks it
//! ready and clears it are the monitor's machine and SDAM's verdicts, as in a client. TLS is not part
//! of it: its machines are not ours, and every stage of it is met on real sockets.
//!
//! Judged as in the [other kind of world](super), and besides: no credential is in any event, log line,
//! trace, error or `Debug` output; each heartbeat that starts has one end, and the monitor has two
//! sockets at most; a server that is seen has a pool that is ready; once all is well the monitor sees
//! the server within its time; no socket is left at the end, at the server either; and the trace, as a
//! shell records it, goes the same way again.

mod cause;
mod network;
mod plan;
mod proxy;
mod secrets;
mod talk;
mod trouble;
mod witness;
mod world;

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

pub use self::plan::{Login, Plan};
pub use self::trouble::Trouble;
pub(super) use self::world::World;
use super::subject::Watch;
use super::{Failure, Lived, NEVER, caught, create};

/// Lives through a world, and says what there was in it; inputs are those of the pool's machine, the
/// monitor's, and those that establish connections.
///
/// # Errors
///
/// The first thing that is wrong. A panic of a machine is told as one.
pub fn live(plan: &Plan, has_model: bool) -> Result<Lived, Failure> {
    live_until(plan, has_model, &NEVER)
}

pub(super) fn live_until(
    plan: &Plan,
    has_model: bool,
    stop: &AtomicBool,
) -> Result<Lived, Failure> {
    let watch = Watch { has_model, keeps_inputs: false };
    live_through(&mut create(|| World::new(plan, watch, stop))?)
}

pub(super) fn live_through(world: &mut World<'_>) -> Result<Lived, Failure> {
    let outcome = caught(|| world.run());
    let fed = world.witness.inputs;
    match outcome {
        Ok(is_whole) => Ok(Lived { inputs: fed, met: world.met.clone(), is_whole }),
        Err(complaint) => Err(Failure { complaint, fed }),
    }
}
