//! `cenote-core`'s pool without sockets, under virtual time.
//!
//! Nothing depends on luck: a wait of ten seconds takes no time, and a scenario that passes once always
//! passes.
//!
//! ```text
//! pool        implements the trait of this crate, and owns the time
//! ├ actions   carries out the actions of the state machine
//! └ server    the simulated server
//! ```

mod actions;
mod pool;
mod server;

pub use self::pool::{SimulatedConnection, SimulatedPool};
pub use self::server::{Answer, SimulatedServer};
use crate::target::{Setup, Target};

/// `cenote-core`'s state machine in a simulated shell, under virtual time. It needs no server: the
/// simulated one replies to `hello` after 1 ms, unless it hits the fail point of the scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulation;

impl Target for Simulation {
    type Pool = SimulatedPool;

    fn name(&self) -> &'static str {
        "core"
    }

    fn open(&self, setup: Setup) -> Result<SimulatedPool, String> {
        SimulatedPool::new(setup)
    }
}
