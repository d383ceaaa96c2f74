//! A server as the client has it: its monitor and its pool.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bson::RawDocumentBuf;
use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::monitor::{Line, SocketId};
use cenote_core::pool::{Instant, PoolOptions};
use cenote_core::topology::ServerId;

use super::checks::CheckRate;
use crate::simulate::accounting::Accounting;
use crate::simulate::clock::Clock;
use crate::simulate::subject::{Judges, Subject};

/// A server of the client, also after it was removed, until nothing of it is left.
pub(super) struct Server {
    pub(super) id: ServerId,
    pub(super) address: Arc<ServerAddress>,
    pub(super) checks: CheckRate,
    /// The sockets that the monitor has opened and not closed.
    pub(super) sockets: BTreeMap<SocketId, MonitorSocket>,
    pub(super) subject: Subject,
    pub(super) pool_clock: Clock,
    pub(super) accounting: Accounting,
    /// As the pool was told.
    pub(super) min_round_trip: Option<Duration>,
    pub(super) is_removed: bool,
}

/// The client's end of a monitoring socket, and what is on its way to it.
#[derive(Debug)]
pub(super) struct MonitorSocket {
    pub(super) line: Line,
    pub(super) opened: Instant,
    /// The first reply has arrived.
    pub(super) is_open: bool,
    /// The process at the other end, once it has received the first request.
    pub(super) served_by: Option<u64>,
    /// How the server calls it.
    pub(super) number: u64,
    /// What was asked last, and counts the exchanges and streamed replies.
    pub(super) asked: Asked,
    pub(super) exchange: u64,
    /// The server waits for a change before it answers.
    pub(super) is_awaiting: bool,
    pub(super) inbox: VecDeque<Message>,
    /// When the last message arrives: none overtakes another.
    pub(super) arrives: Instant,
}

/// What a monitor asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Hello, to be answered at once.
    Hello,
    /// Hello, to be answered when the state is not this one any more.
    Awaited { known: (u64, i64) },
}

/// What a monitoring socket receives.
#[derive(Debug)]
pub(super) enum Message {
    Reply { document: RawDocumentBuf, more_to_come: bool },
    Broken(ConnectionError),
}

impl Server {
    pub(super) fn new(
        id: ServerId,
        address: Arc<ServerAddress>,
        options: &PoolOptions,
        has_model: bool,
    ) -> Result<Self, String> {
        let judges = Judges { has_model, keeps_inputs: false };
        Ok(Self {
            id,
            address,
            checks: CheckRate::default(),
            sockets: BTreeMap::new(),
            subject: Subject::new(options, judges)?,
            pool_clock: Clock::default(),
            accounting: Accounting::default(),
            min_round_trip: None,
            is_removed: false,
        })
    }

    /// How much its pool has to do.
    pub(super) fn operations(&self) -> u64 {
        let pool = self.subject.snapshot();
        u64::from(pool.in_use) + pool.waiting
    }

    /// Whether nothing is left of a server that was removed.
    pub(super) fn has_ended(&self) -> bool {
        self.is_removed && self.sockets.is_empty() && self.accounting.is_empty()
    }
}

impl MonitorSocket {
    pub(super) fn new(line: Line, number: u64, now: Instant) -> Self {
        Self {
            line,
            opened: now,
            is_open: false,
            served_by: None,
            number,
            asked: Asked::Hello,
            exchange: 0,
            is_awaiting: false,
            inbox: VecDeque::new(),
            arrives: now,
        }
    }
}
