//! A pool at one moment, as plain data: the counts, each connection, each request.

use core::fmt;
use core::time::Duration;

use super::id::{ConnId, ServiceId, WaiterId};
use super::input::Purpose;
use super::status::Status;
use super::time::Instant;

/// The counts, the state and the generation of a pool, at one moment.
///
/// `Display` is one line with fixed columns:
///
/// ```text
/// ready  gen 0 | total 3/100 min 0 | idle 1 | in use 2 | pending 0/2 | waiting 0
/// ```
///
/// If idle connections are pending a response, ` | pending response 1` follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Snapshot {
    /// The state of the pool.
    pub status: Status,
    /// The pool's generation; services have their own in load-balanced mode.
    pub generation: u64,
    /// Pending, available and in use together.
    pub total: u32,
    /// Available connections: `db.client.connection.count` with state `idle`. Those in
    /// [`pending_response`](Self::pending_response) are among them.
    pub available: u32,
    /// How many of the available connections have to receive a late reply before they can be used,
    /// whether that is being read or not.
    pub pending_response: u32,
    /// Connections in use: `db.client.connection.count` with state `used`. A connection whose late
    /// reply is being read for a request is among them.
    pub in_use: u32,
    /// Connections being established.
    pub pending: u32,
    /// Requests in the wait queue; those that own a connection, pending or draining, have left it.
    pub waiting: u64,
    /// Requests that own a connection, pending or draining. With the wait queue they are all requests
    /// without an outcome.
    pub owners: u64,
    /// The effective `maxPoolSize`; `None` is without limit.
    pub max_pool_size: Option<u32>,
    /// The effective `minPoolSize`: what is [predicted](super::PoolOptions::predictive_min_pool_size), if that is more.
    pub min_pool_size: u32,
    /// The effective `maxConnecting`.
    pub max_connecting: u32,
    /// Whether the pool is in load-balanced mode.
    pub load_balanced: bool,
    /// Connections in use by cursors.
    pub in_use_by_cursors: u32,
    /// Connections in use by transactions.
    pub in_use_by_transactions: u32,
    /// Connections in use by anything else.
    pub in_use_by_others: u32,
    /// How many connections there have ever been.
    pub connections_created: u64,
    /// How often `now` ran backwards and was held where it was.
    pub clock_regressions: u64,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<6} gen {} | total {}/", self.status, self.generation, self.total)?;
        match self.max_pool_size {
            Some(max) => write!(f, "{max}")?,
            None => f.write_str("-")?,
        }
        write!(
            f,
            " min {} | idle {} | in use {} | pending {}/{} | waiting {}",
            self.min_pool_size,
            self.available,
            self.in_use,
            self.pending,
            self.max_connecting,
            self.waiting
        )?;
        match self.pending_response {
            0 => Ok(()),
            pending_response => write!(f, " | pending response {pending_response}"),
        }
    }
}

/// One connection, as it is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Its id.
    pub id: ConnId,
    /// Its state.
    pub state: ConnectionState,
    /// Whether it is of an older generation than its pool or service.
    pub stale: bool,
    /// Its service, in load-balanced mode and from its hello on.
    pub service: Option<ServiceId>,
    /// Since when it exists.
    pub created: Instant,
    /// Since when it has been in its state.
    pub since: Instant,
    /// For how long it has existed.
    pub age: Duration,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Being established.
    Pending {
        /// The request that it was started for, if there is one and it still wants it.
        owner: Option<WaiterId>,
        /// Whether hello is done, as reported by the shell.
        handshaken: bool,
    },
    /// Waiting in the pool.
    Available,
    /// Waiting in the pool, and a late reply has to be read before it can be used.
    PendingResponse {
        /// The request id of the command whose reply is due.
        request_id: i32,
    },
    /// A late reply is being read.
    Draining {
        /// The request id of the command whose reply is due.
        request_id: i32,
        /// The request that gets the connection then, if there is one.
        owner: Option<WaiterId>,
    },
    /// Checked out.
    InUse {
        /// What for.
        purpose: Purpose,
        /// Whether it was interrupted and only waits to be checked in.
        interrupted: bool,
    },
}

/// One request that has not had its outcome, as it is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterInfo {
    /// Its id.
    pub id: WaiterId,
    /// Since when it waits.
    pub started: Instant,
    /// For how long it has waited.
    pub age: Duration,
    /// When it stops waiting, if it does; a request that owns a pending connection has only the
    /// deadline that its caller gave.
    pub deadline: Option<Instant>,
    /// What it was asked for.
    pub purpose: Purpose,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WaitsFor {
    /// The connection that was started for it.
    Establishment(ConnId),
    /// The late reply that has to be read before it gets this connection.
    PendingResponse(ConnId),
    /// `maxPoolSize` is reached: a connection has to be checked in.
    Connection,
    /// `maxConnecting` is reached: an establishment has to end, or a connection to come back.
    Permit,
    /// No limit is reached, but [`overload_backoff`](super::PoolOptions::overload_backoff) or
    /// [`adaptive_connecting`](super::PoolOptions::adaptive_connecting) establishes none now: time has to pass, an
    /// establishment to end, or a connection to come back.
    Pacing,
}
