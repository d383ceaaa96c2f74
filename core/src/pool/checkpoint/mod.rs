//! The whole of a state but for its payloads, as plain data: from here a replay can begin.

mod capture;
mod fingerprint;
mod restore;
mod validate;

use alloc::vec::Vec;

use super::id::{ConnId, ServiceId, WaiterId};
use super::input::Purpose;
use super::options::PoolOptions;
use super::state::demand::Demand;
use super::state::pacing::Pacing;
use super::status::Status;
use super::time::Instant;

pub use restore::PayloadSource;
pub use validate::InvalidCheckpoint;

/// Everything that a pool remembers, except payloads.
///
/// Taken with [`checkpoint`] or [`checkpoint_into`], turned back into a
/// machine with [`restore`]. The restored machine has the same
/// [fingerprint], and the same inputs have the same consequences.
///
/// ```
/// use cenote_core::pool::{NoPayload, Input, Instant, PoolOptions, PoolState};
///
/// let mut pool = PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {})?;
/// pool.handle(Instant::from_nanos(5), Input::Ready, &mut |_| {})?;
/// let restored = PoolState::<NoPayload>::restore(&pool.checkpoint(), &mut ())?;
/// assert_eq!(restored.fingerprint(), pool.fingerprint());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`checkpoint`]: super::PoolState::checkpoint
/// [`checkpoint_into`]: super::PoolState::checkpoint_into
/// [`restore`]: super::PoolState::restore
/// [fingerprint]: super::PoolState::fingerprint
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolCheckpoint {
    /// The options as they were set last.
    pub options: PoolOptions,
    /// The state.
    pub status: Status,
    /// The pool's generation.
    pub generation: u64,
    /// Whether the pool as a whole was ever cleared. What with is a payload.
    pub was_cleared: bool,
    /// Until when the minimum is left alone after a failed establishment.
    pub populate_after: Option<Instant>,
    /// Since when the oldest wait is not below the target of shedding.
    pub standing_since: Option<Instant>,
    /// What is remembered of establishing and using connections.
    pub pacing: Pacing,
    /// What a predictive minimum follows.
    pub demand: Option<Demand>,
    /// Connections up to this number were inherited through a fork.
    pub inherited: u64,
    /// Pending connections up to this number were reported as unanswered.
    pub reported: u64,
    /// The id of the last request; `None` before the first.
    pub last_waiter: Option<WaiterId>,
    /// The number of the connection that was created last; 0 before the first.
    pub last_connection: u64,
    /// The time of the last input.
    pub now: Instant,
    /// How often `now` ran backwards.
    pub clock_regressions: u64,
    /// Whether requests that own a pending connection wait for it beyond their callers' deadlines, and stale connections
    /// that are pending go on when the pool is ready again: in replays of traces before version 3.
    pub old_rules: bool,
    /// How often a service was cleared.
    pub service_clears: u64,
    /// The services behind a load balancer, in the order of their ids.
    pub services: Vec<ServiceCheckpoint>,
    /// The connections: pending, available, in use, in use and reported, pending a response, draining
    /// for a request, and draining for none, each kind in its order of time.
    pub connections: Vec<ConnectionCheckpoint>,
    /// The slots without a connection, in the order in which they will be used.
    pub free_slots: Vec<u32>,
    /// The requests without an outcome, in the order of their ids. Those that own a pending
    /// connection come before those that wait, except for those that wait again after a drain
    /// failed.
    pub requests: Vec<RequestCheckpoint>,
}

/// A service behind a load balancer, in a [`PoolCheckpoint`]; it has at least one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceCheckpoint {
    /// Its id.
    pub id: ServiceId,
    /// Its generation.
    pub generation: u64,
    /// Whether it was ever cleared.
    pub was_cleared: bool,
    /// The number of clears after the most recent one that may have been of this service.
    pub clears: u64,
}

/// One connection in a [`PoolCheckpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCheckpoint {
    /// Its id.
    pub id: ConnId,
    /// The generation of the pool, or of its service, to which it belongs.
    pub generation: u64,
    /// Its service, in load-balanced mode and from its hello on.
    pub service: Option<ServiceId>,
    /// Since when it exists.
    pub created: Instant,
    /// The end of its lifetime, from its establishment on and if there is one.
    pub expires: Option<Instant>,
    /// Whether that end came while it was not available, so that no timer waits for it any more.
    pub expiry_met: bool,
    /// What it does.
    pub state: ConnectionStateCheckpoint,
}

/// What a connection does, in a [`PoolCheckpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionStateCheckpoint {
    /// Being established; the request that owns it, if there is one, names it.
    Pending {
        /// Whether hello is done, as far as the shell told.
        handshaken: bool,
    },
    /// Waiting in the pool.
    Available {
        /// Since when.
        since: Instant,
    },
    /// Checked out.
    InUse {
        /// Since when.
        since: Instant,
        /// What for.
        purpose: Purpose,
        /// Whether it was interrupted and only waits to be checked in.
        interrupted: bool,
        /// Whether it was reported as a possible leak.
        reported: bool,
    },
    /// Waiting in the pool, and a late reply has to be read before it can be used.
    PendingResponse {
        /// Since when it is in the pool.
        since: Instant,
        /// The request id of the command whose reply is due.
        request_id: i32,
        /// When bytes were read, or else when it was checked in.
        last_read: Instant,
    },
    /// A late reply is being read.
    Draining {
        /// Since when.
        since: Instant,
        /// Since when a request waits for it, if one does; that request names it.
        announced: Option<Instant>,
        /// The request id of the command whose reply is due.
        request_id: i32,
        /// When bytes were read, or else when it was checked in.
        last_read: Instant,
    },
}

/// One request without an outcome, in a [`PoolCheckpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCheckpoint {
    /// Its id.
    pub id: WaiterId,
    /// Since when it waits.
    pub started: Instant,
    /// When it stops waiting, if it does.
    pub deadline: Option<Instant>,
    /// Whether its caller set that deadline, so that it covers establishment, too.
    pub deadline_is_callers: bool,
    /// What it was asked for.
    pub purpose: Purpose,
    /// The pending connection that was started for it, or the draining one that it waits for; `None`
    /// while it waits in the queue.
    pub owns: Option<ConnId>,
}

/// An empty checkpoint of no pool in particular, for
/// [`checkpoint_into`](super::PoolState::checkpoint_into).
impl Default for PoolCheckpoint {
    fn default() -> Self {
        Self {
            options: PoolOptions::default(),
            status: Status::Paused,
            generation: 0,
            was_cleared: false,
            populate_after: None,
            standing_since: None,
            pacing: Pacing::default(),
            demand: None,
            inherited: 0,
            reported: 0,
            last_waiter: None,
            last_connection: 0,
            now: Instant::ORIGIN,
            clock_regressions: 0,
            old_rules: false,
            service_clears: 0,
            services: Vec::new(),
            connections: Vec::new(),
            free_slots: Vec::new(),
            requests: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
