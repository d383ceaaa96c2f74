//! What the events of one pool have said so far.

use std::collections::BTreeMap;

use super::Limits;
use super::line::{Kind, Line, Options};

/// What the events of one pool have said so far.
#[derive(Debug)]
pub(super) struct Pool {
    /// The caller's limits, whatever the events say.
    given: Limits,
    pub(super) limits: Limits,
    pub(super) status: Status,
    /// Connections that are not closed.
    pub(super) connections: BTreeMap<u64, Connection>,
    /// The last one that was created.
    pub(super) last_id: u64,
    pub(super) pending: u64,
    /// Check-outs without an outcome.
    pub(super) under_way: u64,
    /// Connections that were closed before they were checked out, and whose check-out has not failed.
    pub(super) lost: u64,
    /// Clears of all of the pool, and those of one service besides.
    pub(super) clears: u64,
    pub(super) service_clears: u64,
    /// When the last event came.
    pub(super) at: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Not created yet.
    Absent,
    Paused,
    Ready,
    Closed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub(super) doing: Doing,
    /// How often the pool had been cleared when it was created.
    pub(super) created_after: u64,
    pub(super) service_clears: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Pending,
    /// Ready, and never checked out.
    New,
    InUse,
    Returned,
    /// A check-out waits until a late reply was read.
    Draining,
}

impl Connection {
    /// No caller in this process has it any more.
    const fn renounce(&mut self) {
        self.doing = Doing::Returned;
    }
}

impl Pool {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            given: limits,
            limits,
            status: Status::Absent,
            connections: BTreeMap::new(),
            last_id: 0,
            pending: 0,
            under_way: 0,
            lost: 0,
            clears: 0,
            service_clears: 0,
            at: None,
        }
    }

    pub(super) fn doing(&self, id: u64) -> Option<Doing> {
        self.connections.get(&id).map(|connection| connection.doing)
    }

    /// A pool that was closed, and whose connections have all come home.
    pub(super) fn is_over(&self) -> bool {
        self.status == Status::Closed && self.connections.is_empty() && self.under_way == 0
    }

    /// Believes what an event says, whether it may be or not.
    pub(super) fn apply(&mut self, line: &Line) {
        let id = line.connection().unwrap_or_default();
        match line.kind {
            Kind::ConnectionPoolCreated => {
                *self = Self { status: Status::Paused, ..Self::new(self.given) };
                self.limit(line.options.unwrap_or_default());
            }
            Kind::PoolOptionsChanged => self.limit(line.options.unwrap_or_default()),
            Kind::PoolResetAfterFork => {
                self.clears += 1;
                let in_use = |it: &&mut Connection| it.doing == Doing::InUse;
                self.connections.values_mut().filter(in_use).for_each(Connection::renounce);
            }
            Kind::ConnectionPoolReady => self.status = Status::Ready,
            Kind::ConnectionPoolCleared if line.service_id.is_some() => self.service_clears += 1,
            Kind::ConnectionPoolCleared => {
                self.clears += 1;
                self.status = Status::Paused;
            }
            Kind::ConnectionPoolClosed => self.status = Status::Closed,
            Kind::ConnectionCreated => {
                self.last_id = id;
                self.pending += 1;
                let connection = Connection {
                    doing: Doing::Pending,
                    created_after: self.clears,
                    service_clears: self.service_clears,
                };
                self.connections.insert(id, connection);
            }
            Kind::ConnectionReady => self.set(id, Doing::New),
            Kind::ConnectionClosed => {
                let closed = self.connections.remove(&id).map(|connection| connection.doing);
                self.pending -= u64::from(closed == Some(Doing::Pending));
                self.lost += u64::from(matches!(closed, Some(Doing::Pending | Doing::New)));
            }
            Kind::ConnectionCheckOutStarted => self.under_way += 1,
            Kind::ConnectionCheckOutFailed => {
                self.under_way = self.under_way.saturating_sub(1);
                self.lost = self.lost.saturating_sub(u64::from(line.is_failure_of_a_connection()));
            }
            Kind::ConnectionCheckedOut => {
                self.under_way = self.under_way.saturating_sub(1);
                self.set(id, Doing::InUse);
            }
            Kind::ConnectionPendingResponseStarted => self.set(id, Doing::Draining),
            Kind::ConnectionCheckedIn
            | Kind::ConnectionPendingResponseSucceeded
            | Kind::ConnectionPendingResponseFailed => self.set(id, Doing::Returned),
        }
        self.at = line.at.or(self.at);
    }

    fn limit(&mut self, options: Options) {
        self.limits = Limits {
            max: self.given.max.or(options.max_pool_size),
            connecting: self.given.connecting.or(options.max_connecting),
        };
    }

    fn set(&mut self, id: u64, doing: Doing) {
        if let Some(connection) = self.connections.get_mut(&id) {
            let before = std::mem::replace(&mut connection.doing, doing);
            self.pending -= u64::from(before == Doing::Pending);
        }
    }
}
