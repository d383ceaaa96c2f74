//! Looking at a pool: counts in one line, and on request each connection and each waiter.

use core::fmt;
use core::time::Duration;

use super::action::PoolTypes;
use super::connections::{Connection, Doing};
use super::id::{ConnId, ServiceId, WaiterId};
use super::input::Purpose;
use super::lists::List;
use super::state::{PoolState, Status};
use super::time::Instant;
use super::wait_queue::Summary;

/// The counts, the state and the generation of a pool, at one moment.
///
/// `Display` is one line with fixed columns:
///
/// ```text
/// ready  gen 0 | total 3/100 min 0 | idle 1 | in use 2 | pending 0/2 | waiting 0
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Snapshot {
    /// The state (PS-15 … PS-17).
    pub status: Status,
    /// The pool's generation; services have their own in load-balanced mode.
    pub generation: u64,
    /// Pending, available and in use together (PS-20).
    pub total: u32,
    /// Available connections: `db.client.connection.count` with state `idle`.
    pub available: u32,
    /// Connections in use: `db.client.connection.count` with state `used`.
    pub in_use: u32,
    /// Connections being established.
    pub pending: u32,
    /// Requests in the wait queue; those that own a pending connection have left it.
    pub waiting: u64,
    /// The effective `maxPoolSize`; `None` is without limit.
    pub max_pool_size: Option<u32>,
    /// The effective `minPoolSize`.
    pub min_pool_size: u32,
    /// The effective `maxConnecting`.
    pub max_connecting: u32,
    /// Whether the pool is in load-balanced mode.
    pub load_balanced: bool,
    /// Connections in use by cursors (LB-06).
    pub in_use_by_cursors: u32,
    /// Connections in use by transactions (LB-06).
    pub in_use_by_transactions: u32,
    /// Connections in use by anything else (LB-06).
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
        )
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Paused => "paused",
            Self::Ready => "ready",
            Self::Closed => "closed",
        })
    }
}

/// One connection, as it is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Its id.
    pub id: ConnId,
    /// What it does.
    pub state: ConnectionState,
    /// Whether it is of an older generation than its pool or service.
    pub stale: bool,
    /// Its service, in load-balanced mode and from its hello on.
    pub service: Option<ServiceId>,
    /// Since when it exists.
    pub created: Instant,
    /// Since when it does what it does.
    pub since: Instant,
    /// For how long it has existed.
    pub age: Duration,
}

/// What a connection does (CO-13 … CO-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Being established.
    Pending {
        /// The request that it was started for, if there is one and it still wants it.
        owner: Option<WaiterId>,
        /// Whether hello is done, as far as the shell told.
        handshaken: bool,
    },
    /// Waiting in the pool.
    Available,
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
    /// What stands in its way.
    pub waits_for: WaitsFor,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitsFor {
    /// The connection that was started for it.
    Establishment(ConnId),
    /// `maxPoolSize` is reached: somebody has to check a connection in.
    Connection,
    /// `maxConnecting` is reached: an establishment has to end, or a connection to come back.
    Permit,
}

impl<S: PoolTypes> PoolState<S> {
    /// The counts, the state and the generation. Costs the same whatever the pool's size, and does
    /// not allocate.
    pub fn snapshot(&self) -> Snapshot {
        let limit = self.options.max_pool_size.unwrap_or(self.settings.max_total);
        let by = |purpose| self.purposes[purpose as usize];
        Snapshot {
            status: self.status,
            generation: self.generation,
            total: self.connections.total(),
            available: self.connections.len(List::Available),
            in_use: self.connections.in_use(),
            pending: self.connections.len(List::Pending),
            waiting: self.queue.len() as u64,
            max_pool_size: (limit != 0).then_some(limit),
            min_pool_size: self.settings.min_total,
            max_connecting: self.settings.max_pending,
            load_balanced: self.settings.load_balanced,
            in_use_by_cursors: by(Purpose::Cursor),
            in_use_by_transactions: by(Purpose::Transaction),
            in_use_by_others: by(Purpose::Other),
            connections_created: self.connections.last_number(),
            clock_regressions: self.clock_regressions,
        }
    }

    /// Each connection: pending ones in the order of creation, available ones from the oldest, those
    /// in use from the one held longest.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionInfo> {
        [List::Pending, List::Available, List::Overdue, List::InUse]
            .into_iter()
            .flat_map(|list| self.connections.iter(list))
            .map(|(id, connection)| self.describe(id, connection))
    }

    /// Each request that has not had its outcome, in the order in which they came.
    pub fn waiters(&self) -> impl Iterator<Item = WaiterInfo> {
        let waits_for = if self.has_room() { WaitsFor::Permit } else { WaitsFor::Connection };
        let owners = self.owners.iter().map(|(request, connection)| {
            self.describe_request(&request.summary(), WaitsFor::Establishment(*connection))
        });
        let queued =
            self.queue.iter().map(move |request| self.describe_request(&request, waits_for));
        owners.chain(queued)
    }

    /// In load-balanced mode, each service with its generation and how many connections it has
    /// (LB-01).
    pub fn services(&self) -> impl Iterator<Item = (ServiceId, u64, u32)> {
        self.services.iter()
    }

    /// The time of the last input.
    pub const fn now(&self) -> Instant {
        self.now
    }

    fn has_room(&self) -> bool {
        self.connections.total() < self.settings.max_total
    }

    fn describe_request(&self, request: &Summary, waits_for: WaitsFor) -> WaiterInfo {
        WaiterInfo {
            id: request.id,
            started: request.started,
            age: self.now.saturating_since(request.started),
            deadline: request.deadline,
            purpose: request.purpose,
            waits_for,
        }
    }

    fn describe(&self, id: ConnId, connection: &Connection<S::Conn>) -> ConnectionInfo {
        let (state, since) = match &connection.doing {
            Doing::Pending { owner, handshaken } => {
                let state = ConnectionState::Pending { owner: *owner, handshaken: *handshaken };
                (state, connection.created)
            }
            Doing::Available { since, conn: _ } => (ConnectionState::Available, *since),
            &Doing::InUse { since, purpose, interrupted } => {
                (ConnectionState::InUse { purpose, interrupted }, since)
            }
        };
        ConnectionInfo {
            id,
            state,
            stale: self.outdated(connection),
            service: connection.service,
            created: connection.created,
            since,
            age: self.now.saturating_since(connection.created),
        }
    }
}

/// One line: the snapshot. PayloadSource are never shown.
impl<S: PoolTypes> fmt::Debug for PoolState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolState({})", self.snapshot())
    }
}
