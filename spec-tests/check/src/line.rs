//! One event, as a line of JSON says it.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::OneLine;
use cenote_core::pool::{Event, PoolOptions};
use serde::Deserialize;
use thiserror::Error;

use crate::event_json::{self, EventJson};

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Seconds since the start, if the line says so.
    pub(super) at: Option<f64>,
    pub(super) address: Arc<str>,
    pub(super) told: Told,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    PoolCreated {
        options: Option<Options>,
    },
    /// No event of CMAP: the options of the running pool changed.
    OptionsChanged {
        options: Options,
    },
    /// No event either: the process has forked, and this is the child.
    ResetAfterFork,
    PoolReady,
    PoolCleared {
        is_service: bool,
        interrupt: Option<bool>,
    },
    PoolClosed,
    Created {
        id: u64,
    },
    Ready {
        id: u64,
        milliseconds: Option<f64>,
    },
    Closed {
        id: u64,
        reason: Option<Cow<'static, str>>,
        has_error: bool,
    },
    Started,
    Failed {
        reason: Option<Cow<'static, str>>,
        error: Option<String>,
        milliseconds: Option<f64>,
    },
    CheckedOut {
        id: u64,
        milliseconds: Option<f64>,
    },
    CheckedIn {
        id: u64,
    },
    PendingResponseStarted {
        id: u64,
    },
    PendingResponseSucceeded {
        id: u64,
        milliseconds: Option<f64>,
    },
    PendingResponseFailed {
        id: u64,
        reason: Option<Cow<'static, str>>,
        milliseconds: Option<f64>,
    },
}

impl Told {
    /// Whether a check-out failed because its own connection could not be established, as far as
    /// its error tells: not because the pool was cleared or its queue was too long, nor because the caller went away.
    pub(super) fn is_of_a_connection(&self) -> bool {
        let Self::Failed { reason: Some(reason), error: Some(error), .. } = self else {
            return false;
        };
        let others = [
            "was cleared because",
            "has not been marked ready",
            "given up by its caller",
            "Too many requests wait",
            "Shed while checking out",
        ];
        reason == "connectionError" && !others.iter().any(|other| error.contains(other))
    }
}

/// What a pool says of itself when it is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Options {
    pub(super) max_pool_size: Option<u32>,
    pub(super) max_connecting: Option<u32>,
}

/// Why a line is no event.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LineError {
    /// No JSON, or something in it is of the wrong type.
    #[error("this is no event: {0}")]
    Json(#[from] serde_json::Error),
    /// None of the eleven of CMAP, and none of the three about pending responses.
    #[error("there is no event {:?}", OneLine::name(.0))]
    Type(String),
    /// An event about a connection that does not say about which.
    #[error("this {0} has no connectionId")]
    NoConnection(String),
    /// A change of options that does not say to which.
    #[error("this PoolOptionsChanged has no options")]
    NoOptions,
}

/// All keys that a line may have and that are looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    at: Option<f64>,
    r#type: Cow<'static, str>,
    #[serde(default)]
    address: String,
    connection_id: Option<u64>,
    #[serde(rename = "durationMS", alias = "duration")]
    duration: Option<f64>,
    reason: Option<Cow<'static, str>>,
    error: Option<String>,
    service_id: Option<String>,
    interrupt_in_use_connections: Option<bool>,
    options: Option<Options>,
}

impl Line {
    /// Reads a line of `--events`.
    ///
    /// # Errors
    ///
    /// The line is no event.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let mut json: Json = serde_json::from_str(text)?;
        let address = std::mem::take(&mut json.address);
        json.told(address.into())
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
        let json = Json::of(event_json::line(event, address, at));
        json.told(Arc::clone(written)).expect("it has the keys of its type")
    }

    /// That the options of a running pool were changed to these, all of them: of which no event
    /// tells, and which decides what it may do from now on. In a file it is a line like that of
    /// ConnectionPoolCreated, with the type `PoolOptionsChanged`.
    #[must_use]
    pub fn options_changed(options: &PoolOptions, address: &ServerAddress, at: Duration) -> Self {
        let options = Options {
            max_pool_size: options.max_pool_size,
            max_connecting: options.max_connecting,
        };
        Self::note(Told::OptionsChanged { options }, address, at)
    }

    /// That the pool is about to live on in a forked process: whatever it has is closed as stale, and
    /// what is in use is not checked in before. In a file its type is
    /// `PoolResetAfterFork`.
    #[must_use]
    pub fn reset_after_fork(address: &ServerAddress, at: Duration) -> Self {
        Self::note(Told::ResetAfterFork, address, at)
    }

    fn note(told: Told, address: &ServerAddress, at: Duration) -> Self {
        Self { at: Some(at.as_secs_f64()), address: address.to_string().into(), told }
    }
}

impl Json {
    /// What is written is what is read, without the text in between, and without the address.
    fn of(written: EventJson<'_>) -> Self {
        let EventJson { at, r#type, connection_id, duration_ms, reason, .. } = written;
        let options = written.options.map(|options| Options {
            max_pool_size: options.max_pool_size,
            max_connecting: options.max_connecting,
        });
        Self {
            at,
            r#type: Cow::Borrowed(r#type),
            address: String::new(),
            connection_id,
            duration: duration_ms.map(f64::from),
            reason: reason.map(Cow::Borrowed),
            error: written.error,
            service_id: written.service_id,
            interrupt_in_use_connections: written.interrupt_in_use_connections,
            options,
        }
    }

    fn told(self, address: Arc<str>) -> Result<Line, LineError> {
        let Self { at, r#type, connection_id, duration, reason, error, .. } = self;
        let id =
            || connection_id.ok_or_else(|| LineError::NoConnection(r#type.clone().into_owned()));
        let told = match &*r#type {
            "ConnectionPoolCreated" => Told::PoolCreated { options: self.options },
            "PoolOptionsChanged" => {
                Told::OptionsChanged { options: self.options.ok_or(LineError::NoOptions)? }
            }
            "PoolResetAfterFork" => Told::ResetAfterFork,
            "ConnectionPoolReady" => Told::PoolReady,
            "ConnectionPoolCleared" => Told::PoolCleared {
                is_service: self.service_id.is_some(),
                interrupt: self.interrupt_in_use_connections,
            },
            "ConnectionPoolClosed" => Told::PoolClosed,
            "ConnectionCreated" => Told::Created { id: id()? },
            "ConnectionReady" => Told::Ready { id: id()?, milliseconds: duration },
            "ConnectionClosed" => Told::Closed { id: id()?, reason, has_error: error.is_some() },
            "ConnectionCheckOutStarted" => Told::Started,
            "ConnectionCheckOutFailed" => Told::Failed { reason, error, milliseconds: duration },
            "ConnectionCheckedOut" => Told::CheckedOut { id: id()?, milliseconds: duration },
            "ConnectionCheckedIn" => Told::CheckedIn { id: id()? },
            "ConnectionPendingResponseStarted" => Told::PendingResponseStarted { id: id()? },
            "ConnectionPendingResponseSucceeded" => {
                Told::PendingResponseSucceeded { id: id()?, milliseconds: duration }
            }
            "ConnectionPendingResponseFailed" => {
                Told::PendingResponseFailed { id: id()?, reason, milliseconds: duration }
            }
            _ => return Err(LineError::Type(r#type.into_owned())),
        };
        Ok(Line { at, address, told })
    }
}
