//! Worlds with a network: the state machines of the pool, of establishing connections and of the monitor, over
//! virtual sockets to the mock server's state machine.
//!
//! Packets are delayed and cut, with or without a proxy; the network loses one direction of some connections, is
//! cut and reconnected; the server has all faults that the mock server supports. Callers send commands and read
//! replies. As in a client, only the monitor and SDAM's verdicts mark the pool ready and clear it. TLS is left
//! out, because its state machines are not part of this project; tests on real sockets cover each of its stages.
//!
//! Checked as in a [world without a network](super), and in addition: no credential is in any event, log line,
//! trace, error or `Debug` output; each heartbeat that starts has one end, and the monitor has at most two
//! sockets; the pool of a server that is seen is ready; after all faults ended, the monitor sees the server in
//! time; no socket is left at the end, neither at the client nor at the server; and a replay of the recorded
//! trace ends in the same state.

mod anomalies;
mod callers;
mod client_sockets;
mod conversation;
mod error;
mod monitor;
mod network;
mod observation;
mod plan;
mod proxy;
mod scanner;
mod secrets;
mod server;
mod transport;
mod trouble;

#[cfg(test)]
mod tests;

pub use self::plan::{Login, Parameters, Plan};
pub(super) use self::transport::Wire;
pub use self::trouble::Trouble;
use super::{Failure, NEVER_STOPPED, Report, run_until};

/// Runs a world with a network. The inputs in the report are those of all state machines.
///
/// # Errors
///
/// The first violation, or a panic of a state machine.
pub fn run(plan: &Plan, has_model: bool) -> Result<Report, Failure> {
    run_until::<Wire>(plan, has_model, &NEVER_STOPPED)
}
