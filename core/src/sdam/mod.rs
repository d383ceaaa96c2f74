//! What Server Discovery and Monitoring says about pools, as pure functions.
//!
//! No topology lives here: [`topology`](crate::topology) is a machine that keeps the descriptions of the servers.
//! When an application's connection fails a driver asks [`verdict()`], when a monitor's check fails it asks
//! [`monitor_verdict`], and carries out the [`Verdict`] under the lock of its topology: the
//! description first, then the pool.
//!
//! Order matters towards the pool too: the verdict's `Clear` is fed before the failed
//! connection's own input, so that `PoolCleared` comes before the `ConnectionClosed` it explains.

mod stale_primary;
mod state_change;
mod topology_version;
mod verdict;

pub use stale_primary::StalePrimary;
pub use state_change::StateChange;
pub use topology_version::TopologyVersion;
pub use verdict::{Check, Context, PoolVerdict, ServerVerdict, Verdict, monitor_verdict, verdict};
