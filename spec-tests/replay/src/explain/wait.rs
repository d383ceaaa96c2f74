//! The wait of a request: how long, for what, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{CheckOutError, Instant, PoolOptions, Snapshot, WaiterId};
use cenote_core::trace::Cause;

/// A wait that ended, or that went on at the end of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The request.
    pub waiter: WaiterId,
    /// When it asked.
    pub asked: Instant,
    /// The step in which it asked; 0 if that was before the trace.
    pub asked_step: u64,
    /// Where in the program it asked, if that is known.
    pub place: Option<Arc<str>>,
    /// When the wait ended.
    pub ended: Instant,
    /// How many requests were in the queue before it when it asked; `None` if that is unknown.
    pub ahead: Option<u64>,
    /// For how long it may wait, if there is a limit and if that is known.
    pub limit: Option<Duration>,
    /// What it waited for when the wait ended.
    pub obstacle: Obstacle,
    /// The counts of the pool before the wait ended.
    pub counts: Counts,
    /// How it ended.
    pub outcome: Outcome,
}

impl Wait {
    /// How long it waited.
    pub fn duration(&self) -> Duration {
        self.ended.saturating_since(self.asked)
    }

    /// What stood in the way in the end, in a few words: the cause of a failure, or a limit.
    pub fn in_the_way(&self) -> String {
        match &self.outcome {
            Outcome::Failed(
                Failure::Cleared(Some(cause))
                | Failure::Paused(Some(cause))
                | Failure::NotEstablished(cause),
            ) => cause.clone(),
            Outcome::Failed(Failure::Paused(None)) => "the pool had never been ready".to_owned(),
            Outcome::Failed(Failure::Closed) => "the pool was closed".to_owned(),
            Outcome::Failed(
                Failure::Cleared(None)
                | Failure::TimedOut
                | Failure::QueueFull
                | Failure::Shed
                | Failure::Cancelled
                | Failure::Untold,
            )
            | Outcome::Served(_)
            | Outcome::Waiting => self.counts.tell_briefly(self.obstacle),
        }
    }
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It got the connection of this number.
    Served(u64),
    /// It failed.
    Failed(Failure),
    /// It went on at the end of the trace.
    Waiting,
}

/// Why a request failed; of causes the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Its wait timed out.
    TimedOut,
    /// As many requests as `max_wait_queue_size` permits were waiting.
    QueueFull,
    /// It had waited for longer than `codel_target` when the delay had stood for `codel_interval`.
    Shed,
    /// The pool was paused when it asked; `None`: it had never been ready.
    Paused(Option<String>),
    /// The pool was cleared while it waited.
    Cleared(Option<String>),
    /// The connection that was created for it could not be established.
    NotEstablished(String),
    /// The pool was closed.
    Closed,
    /// Its caller cancelled it.
    Cancelled,
    /// The events of the pool do not say why.
    Untold,
}

impl Failure {
    /// Of a request that failed in the step in which it asked if it `is_at_once`.
    pub(super) fn of(error: &CheckOutError<Cause>, is_at_once: bool) -> Self {
        match error {
            CheckOutError::PoolClosed => Self::Closed,
            CheckOutError::PoolCleared { cause } => {
                let cause = cause.as_ref().map(ToString::to_string);
                if is_at_once { Self::Paused(cause) } else { Self::Cleared(cause) }
            }
            CheckOutError::WaitQueueTimeout { .. } => Self::TimedOut,
            CheckOutError::WaitQueueFull { .. } => Self::QueueFull,
            CheckOutError::Shed { .. } => Self::Shed,
            CheckOutError::EstablishFailed { cause } => Self::NotEstablished(cause.to_string()),
            CheckOutError::Cancelled => Self::Cancelled,
        }
    }

    /// In one or two words.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::TimedOut => "timed out",
            Self::QueueFull => "queue full",
            Self::Shed => "shed",
            Self::Paused(_) => "pool paused",
            Self::Cleared(_) => "cleared",
            Self::NotEstablished(_) => "not established",
            Self::Closed => "pool closed",
            Self::Cancelled => "cancelled",
            Self::Untold => "failed",
        }
    }
}

/// What keeps a request waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Obstacle {
    /// `maxPoolSize` is reached, and the connections are in use.
    MaxPoolSize,
    /// `maxConnecting` is reached, with room for more connections; or `maxPoolSize` is reached with more
    /// connections that are being established than in use.
    Establishments,
    /// The connection that was created for it is being established.
    OwnConnection,
    /// A connection has to receive the late reply to an earlier command.
    LateReply,
    /// No limit is reached, but `overload_backoff` or `adaptive_connecting` establishes no connection now.
    Pacing,
    /// No limit, only requests before it.
    Queue,
}

/// The counts of a pool that matter to a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// All connections.
    pub total: u32,
    /// Those that are in use.
    pub in_use: u32,
    /// Those that are being established.
    pub pending: u32,
    /// The limit of all.
    pub max: Option<u32>,
    /// The limit of those that are being established.
    pub max_connecting: u32,
    /// Whether the pool has one of the options that delay establishments.
    pub paces: bool,
    /// Whether connections may wait for late replies.
    pub drains: bool,
}

impl Counts {
    /// Those of a pool with these options.
    pub fn of(snapshot: &Snapshot, options: &PoolOptions) -> Self {
        let backs_off = options.overload_backoff.is_some_and(|base| !base.is_zero());
        Self {
            total: snapshot.total,
            in_use: snapshot.in_use,
            pending: snapshot.pending,
            max: snapshot.max_pool_size,
            max_connecting: snapshot.max_connecting,
            paces: backs_off || options.adaptive_connecting == Some(true),
            drains: options.experimental_pending_response == Some(true),
        }
    }

    /// What keeps a request in the queue.
    pub(super) fn obstacle(&self) -> Obstacle {
        let is_full = self.max.is_some_and(|max| self.total >= max);
        if is_full && self.in_use >= self.pending {
            Obstacle::MaxPoolSize
        } else if is_full || self.pending >= self.max_connecting {
            Obstacle::Establishments
        } else if self.paces {
            Obstacle::Pacing
        } else {
            Obstacle::Queue
        }
    }

    /// What stood in the way, in a few words.
    pub(super) fn tell_briefly(&self, obstacle: Obstacle) -> String {
        if obstacle == Obstacle::Establishments && self.max != Some(self.total) {
            return format!(
                "maxConnecting: {} of {} being established",
                self.pending, self.max_connecting
            );
        }
        self.tell(obstacle)
    }

    /// What stood in the way, in words.
    pub(super) fn tell(&self, obstacle: Obstacle) -> String {
        let Self { total, in_use, pending, max, max_connecting, .. } = self;
        let max = max.map_or("unlimited".to_owned(), |max| max.to_string());
        match obstacle {
            Obstacle::MaxPoolSize => format!("maxPoolSize: {in_use} of {max} in use"),
            Obstacle::Establishments if self.max == Some(*total) => {
                format!("establishment: {pending} of {max} connections were being established")
            }
            Obstacle::Establishments => {
                format!(
                    "maxConnecting: {pending} of {max_connecting} being established, {total} of {max} connections"
                )
            }
            Obstacle::OwnConnection => "establishment of its own connection".to_owned(),
            Obstacle::LateReply => "a late reply".to_owned(),
            Obstacle::Pacing => format!(
                "overload_backoff or adaptive_connecting: {pending} being established, {total} of {max} connections"
            ),
            Obstacle::Queue => "no limit, only the queue".to_owned(),
        }
    }
}
