//! One event, as a line of JSON says it.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::OneLine;
use cenote_core::pool::{Event, PoolOptions};
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::event_json::{self, EventJson};

/// One event of a stream, with the keys that are looked at.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Seconds since any moment, the same for all lines, if the line says so.
    pub at: Option<f64>,
    /// What happened.
    #[serde(rename = "type", deserialize_with = "kind")]
    pub kind: Kind,
    /// The address of the pool's server; empty if the line does not say it.
    #[serde(default, deserialize_with = "address")]
    pub address: Arc<str>,
    /// The connection's number in its pool, from 1.
    pub connection_id: Option<u64>,
    /// How long the check-out or the establishment took, in milliseconds.
    #[serde(rename = "durationMS", alias = "duration")]
    pub milliseconds: Option<f64>,
    /// Why a connection was closed, or a check-out failed.
    pub reason: Option<Cow<'static, str>>,
    /// The error behind that.
    pub error: Option<String>,
    /// The service whose connections were cleared.
    pub service_id: Option<String>,
    /// Whether a clear ends what is in use.
    #[serde(rename = "interruptInUseConnections")]
    pub interrupts: Option<bool>,
    /// Of a pool that was created, or whose options changed.
    pub options: Option<Options>,
}

/// What happened: the eleven events of CMAP, the three about pending responses, and two lines that are no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the specification's names")]
pub enum Kind {
    ConnectionPoolCreated,
    ConnectionPoolReady,
    ConnectionPoolCleared,
    ConnectionPoolClosed,
    ConnectionCreated,
    ConnectionReady,
    ConnectionClosed,
    ConnectionCheckOutStarted,
    ConnectionCheckOutFailed,
    ConnectionCheckedOut,
    ConnectionCheckedIn,
    ConnectionPendingResponseStarted,
    ConnectionPendingResponseSucceeded,
    ConnectionPendingResponseFailed,
    /// The options of the running pool changed.
    PoolOptionsChanged,
    /// The process has forked, and this is the child.
    PoolResetAfterFork,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<Error>::new(name)).ok()
    }

    /// Whether it is one of the pool's events, and not a note beside them.
    #[must_use]
    pub fn is_event(self) -> bool {
        !matches!(self, Self::PoolOptionsChanged | Self::PoolResetAfterFork)
    }

    fn has_connection(self) -> bool {
        matches!(
            self,
            Self::ConnectionCreated
                | Self::ConnectionReady
                | Self::ConnectionClosed
                | Self::ConnectionCheckedOut
                | Self::ConnectionCheckedIn
                | Self::ConnectionPendingResponseStarted
                | Self::ConnectionPendingResponseSucceeded
                | Self::ConnectionPendingResponseFailed
        )
    }

    pub(super) fn has_duration(self) -> bool {
        matches!(
            self,
            Self::ConnectionReady
                | Self::ConnectionCheckedOut
                | Self::ConnectionCheckOutFailed
                | Self::ConnectionPendingResponseSucceeded
                | Self::ConnectionPendingResponseFailed
        )
    }
}

/// Unlike that of serde, the error is one line, whatever the name is.
fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    let name = String::deserialize(deserializer)?;
    let unknown = || format!("unknown type {:?}", OneLine::name(&name));
    Kind::of(&name).ok_or_else(|| serde::de::Error::custom(unknown()))
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

/// What a pool says of itself when it is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// `maxPoolSize`; 0 is no limit.
    pub max_pool_size: Option<u32>,
    /// `maxConnecting`.
    pub max_connecting: Option<u32>,
    /// `minPoolSize`.
    pub min_pool_size: Option<u32>,
    /// `waitQueueTimeoutMS`, in milliseconds; 0 is no limit.
    #[serde(rename = "waitQueueTimeoutMS")]
    pub wait_queue_timeout: Option<f64>,
    /// `maxIdleTimeMS`, in milliseconds; 0 is no limit.
    #[serde(rename = "maxIdleTimeMS")]
    pub max_idle_time: Option<f64>,
}

/// Why a line is no event.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LineError {
    /// No JSON, something in it is of the wrong type, or there is no such type of events.
    #[error("this is no event: {0}")]
    Json(serde_json::Error),
    /// An event about a connection that does not say about which.
    #[error("this {0} has no connectionId")]
    NoConnection(String),
    /// An event without a time, where times are needed.
    #[error("this event has no time: `at`, in seconds; in a log, the time before the message")]
    NoTime,
    /// An event years after the first.
    #[error("`at` is in seconds, and this is {0:e} s after the first event")]
    NotInSeconds(f64),
    /// A pool of an address that has another one, which was not closed.
    #[error(
        "a second pool of this address is created, and the first is not closed: write the events of each \
         client, and of each run, into a file of its own"
    )]
    SecondPool,
    /// A change of options that does not say to which.
    #[error("this PoolOptionsChanged has no options")]
    NoOptions,
}

impl Line {
    /// Reads a line of `--events`.
    ///
    /// # Errors
    ///
    /// The line is no event.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        serde_json::from_str::<Self>(text).map_err(LineError::Json)?.checked()
    }

    /// Whether all is there.
    pub(super) fn checked(self) -> Result<Self, LineError> {
        if self.kind.has_connection() && self.connection_id.is_none() {
            return Err(LineError::NoConnection(format!("{:?}", self.kind)));
        }
        if self.kind == Kind::PoolOptionsChanged && self.options.is_none() {
            return Err(LineError::NoOptions);
        }
        Ok(self)
    }

    /// What a pool told, as its line would say it; `at` counts from the start.
    pub fn of<C: Display>(event: &Event<C>, address: &ServerAddress, at: Duration) -> Self {
        Self::of_pool(event, address, &address.to_string().into(), at)
    }

    /// As [`of`](Self::of), for many events of one pool: `written` is its address, written
    /// out once.
    pub fn of_pool<C: Display>(
        event: &Event<C>,
        address: &ServerAddress,
        written: &Arc<str>,
        at: Duration,
    ) -> Self {
        let written_out = event_json::line(event, address, at);
        let EventJson { at, r#type, connection_id, duration_ms, reason, error, .. } = written_out;
        Self {
            at,
            kind: Kind::of(r#type).expect("a type of events"),
            address: Arc::clone(written),
            connection_id,
            milliseconds: duration_ms.map(f64::from),
            reason: reason.map(Cow::Borrowed),
            error,
            service_id: written_out.service_id,
            interrupts: written_out.interrupt_in_use_connections,
            options: written_out.options.map(|options| Options {
                max_pool_size: options.max_pool_size,
                max_connecting: options.max_connecting,
                ..Options::default()
            }),
        }
    }

    /// That the options of a running pool were changed to these, all of them: of which no event
    /// tells, and which decides what it may do from now on. In a file it is a line like that of
    /// ConnectionPoolCreated, with the type `PoolOptionsChanged`.
    #[must_use]
    pub fn options_changed(options: &PoolOptions, address: &ServerAddress, at: Duration) -> Self {
        let options = Options {
            max_pool_size: options.max_pool_size,
            max_connecting: options.max_connecting,
            ..Options::default()
        };
        let note = Self::note(Kind::PoolOptionsChanged, address, at);
        Self { options: Some(options), ..note }
    }

    /// That the pool is about to live on in a forked process: whatever it has is closed as stale, and
    /// what is in use is not checked in before. In a file its type is
    /// `PoolResetAfterFork`.
    #[must_use]
    pub fn reset_after_fork(address: &ServerAddress, at: Duration) -> Self {
        Self::note(Kind::PoolResetAfterFork, address, at)
    }

    fn note(kind: Kind, address: &ServerAddress, at: Duration) -> Self {
        Self {
            at: Some(at.as_secs_f64()),
            kind,
            address: address.to_string().into(),
            connection_id: None,
            milliseconds: None,
            reason: None,
            error: None,
            service_id: None,
            interrupts: None,
            options: None,
        }
    }

    /// The connection that it is about, if there is one.
    pub(super) fn connection(&self) -> Option<u64> {
        self.connection_id.filter(|_| self.kind.has_connection())
    }

    /// The connection, if it is an event of this kind.
    pub(super) fn connection_of(&self, kind: Kind) -> Option<u64> {
        self.connection().filter(|_| self.kind == kind)
    }

    /// Whether a check-out failed because its own connection could not be established, as far as
    /// its error tells: not because the pool was cleared or its queue was too long, nor because the caller went away.
    pub(super) fn is_failure_of_a_connection(&self) -> bool {
        let others = [
            "was cleared because",
            "has not been marked ready",
            "given up by its caller",
            "Too many requests wait",
            "Shed while checking out",
        ];
        self.kind == Kind::ConnectionCheckOutFailed
            && self.reason.as_deref() == Some("connectionError")
            && self.error.as_ref().is_some_and(|it| !others.iter().any(|other| it.contains(other)))
    }
}
