//! Worlds of several servers: the machines of the topology, of a monitor and a pool for each server, SDAM's verdicts and
//! server selection, composed as a client composes them.
//!
//! The servers are a small cluster (`cluster`), which holds elections, is split, reconfigured, crashes, restarts and
//! recovers; some of them answer hello wrongly. The network delays messages, and is cut off. Connections are established
//! and used without bytes: replies to hello are documents, and everything else is a timer. That is several times as fast
//! as [on the wire](super::Transport::Wire), whose conversations find nothing that is about several servers.
//!
//! Checked after every input: the topology against SDAM's tables (`model`), written once more; the promises to
//! embedders and event subscribers (`judge`); each pool as in a [world of one server](super); that a server that is
//! described as usable has a ready pool (`agreement`); and that no server is checked in a loop (`checks`). After all
//! faults have ended, the description has to agree with the cluster within bounded time, and every caller has to be
//! served (`recovery`).

mod agreement;
mod callers;
mod checks;
mod client;
mod cluster;
mod connections;
mod judge;
mod model;
mod monitors;
mod network;
mod plan;
mod recovery;
mod server;
mod shrink;
mod story;
mod verdicts;
mod world;

use std::sync::atomic::AtomicBool;

pub use self::cluster::{Change, WrongAnswer};
pub use self::plan::{Deployment, MemberKind, Plan};
use self::world::World;
use super::{Failure, NEVER_STOPPED, Report, caught, create};

/// Runs a world of several servers. The inputs in the report are those of all machines.
///
/// # Errors
///
/// The first violation, or a panic of a machine.
pub fn run(plan: &Plan, has_model: bool) -> Result<Report, Failure> {
    run_until(plan, has_model, &NEVER_STOPPED)
}

pub(super) fn run_until(
    plan: &Plan,
    has_model: bool,
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    let mut world = create(|| World::new(plan, has_model, stop))?;
    let outcome = caught(|| world.run());
    let inputs = world.inputs;
    match outcome {
        Ok(is_whole) => Ok(Report { inputs, coverage: world.coverage.clone(), is_whole }),
        Err(complaint) => Err(shrink::explain(plan, has_model, Failure { complaint, inputs })),
    }
}
