//! Events as JSON: the one table of which event shows which field under which key.
//!
//! There are two renderings. [`official`] is what the official test files compare with: a duration
//! is called `duration`, and neither errors nor requests are told. [`line()`] is what the command line writes, one
//! object a line: a duration is called `durationMS`, errors are told, and `at` says when. Keys that
//! do not apply are absent from both.

use std::fmt::Display;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::PoolError;
use cenote_core::pool::{Event, PoolOptions};
use serde::{Serialize, Serializer};

/// The types of events.
pub const TYPES: [&str; 14] = [
    "ConnectionPoolCreated",
    "ConnectionPoolReady",
    "ConnectionPoolCleared",
    "ConnectionPoolClosed",
    "ConnectionCreated",
    "ConnectionReady",
    "ConnectionClosed",
    "ConnectionCheckOutStarted",
    "ConnectionCheckOutFailed",
    "ConnectionCheckedOut",
    "ConnectionCheckedIn",
    "ConnectionPendingResponseStarted",
    "ConnectionPendingResponseSucceeded",
    "ConnectionPendingResponseFailed",
];

/// An event, ready to be serialized; its fields stand in the order in which they are written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<f64>,
    pub(crate) r#type: &'static str,
    #[serde(serialize_with = "as_text")]
    pub(crate) address: &'a ServerAddress,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connection_id: Option<u64>,
    /// Of a check-out, as in traces. Not a field of the specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<Milliseconds>,
    #[serde(rename = "durationMS", skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<Milliseconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupt_in_use_connections: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) options: Option<OptionsJson>,
}

/// The options that were set, under the names of the specification.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptionsJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_pool_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_pool_size: Option<u32>,
    #[serde(rename = "maxIdleTimeMS", skip_serializing_if = "Option::is_none")]
    max_idle_time_ms: Option<Milliseconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_connecting: Option<u32>,
    #[serde(rename = "waitQueueTimeoutMS", skip_serializing_if = "Option::is_none")]
    wait_queue_timeout_ms: Option<Milliseconds>,
}

/// A whole number where there is one, as files and people write it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Milliseconds {
    Whole(u64),
    Broken(f64),
}

impl From<Milliseconds> for f64 {
    fn from(milliseconds: Milliseconds) -> Self {
        match milliseconds {
            Milliseconds::Whole(whole) => whole as Self,
            Milliseconds::Broken(broken) => broken,
        }
    }
}

/// The event as the official test files see it.
pub fn official<'a, C: Display>(event: &Event<C>, address: &'a ServerAddress) -> EventJson<'a> {
    EventJson { duration_ms: None, error: None, request: None, ..table(event, address) }
}

/// The event as a line of the command line's `--events`; `at` counts from the start.
pub fn line<'a, C: Display>(
    event: &Event<C>,
    address: &'a ServerAddress,
    at: Duration,
) -> EventJson<'a> {
    EventJson { at: Some(at.as_secs_f64()), duration: None, ..table(event, address) }
}

/// Everything that an event has to tell.
fn table<'a, C: Display>(event: &Event<C>, address: &'a ServerAddress) -> EventJson<'a> {
    let json = EventJson::empty(event.name(), address);
    match event {
        Event::ConnectionPoolCreated { options } => {
            EventJson { options: Some(OptionsJson::new(options)), ..json }
        }
        Event::ConnectionPoolCleared { service_id, interrupt_in_use_connections } => EventJson {
            service_id: service_id.map(|id| id.to_string()),
            interrupt_in_use_connections: Some(*interrupt_in_use_connections),
            ..json
        },
        Event::ConnectionCreated { connection_id }
        | Event::ConnectionCheckedIn { connection_id } => {
            EventJson { connection_id: Some(*connection_id), ..json }
        }
        Event::ConnectionReady { connection_id, duration } => {
            EventJson { connection_id: Some(*connection_id), ..json }.lasting(*duration)
        }
        Event::ConnectionClosed { connection_id, reason, error } => EventJson {
            connection_id: Some(*connection_id),
            reason: Some(reason.as_str()),
            error: error.as_ref().map(ToString::to_string),
            ..json
        },
        Event::ConnectionCheckOutStarted { request } => {
            EventJson { request: Some(request.0), ..json }
        }
        Event::ConnectionCheckedOut { connection_id, request, duration } => {
            EventJson { connection_id: Some(*connection_id), request: Some(request.0), ..json }
                .lasting(duration.get())
        }
        Event::ConnectionCheckOutFailed { request, error, duration } => EventJson {
            request: Some(request.0),
            reason: Some(error.reason().as_str()),
            error: Some(PoolError::explain(error, address).to_string()),
            ..json
        }
        .lasting(duration.get()),
        Event::ConnectionPendingResponseStarted { connection_id, request_id } => {
            EventJson { connection_id: Some(*connection_id), request_id: Some(*request_id), ..json }
        }
        Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration } => {
            EventJson { connection_id: Some(*connection_id), request_id: Some(*request_id), ..json }
                .lasting(duration.get())
        }
        Event::ConnectionPendingResponseFailed { connection_id, request_id, duration, reason } => {
            EventJson {
                connection_id: Some(*connection_id),
                request_id: Some(*request_id),
                reason: Some(reason.as_str()),
                ..json
            }
            .lasting(duration.get())
        }
        Event::ConnectionPoolReady | Event::ConnectionPoolClosed | _ => json,
    }
}

impl<'a> EventJson<'a> {
    const fn empty(r#type: &'static str, address: &'a ServerAddress) -> Self {
        Self {
            at: None,
            r#type,
            address,
            connection_id: None,
            request: None,
            request_id: None,
            duration: None,
            duration_ms: None,
            reason: None,
            error: None,
            service_id: None,
            interrupt_in_use_connections: None,
            options: None,
        }
    }

    /// Under both names; each rendering keeps one.
    fn lasting(self, duration: Duration) -> Self {
        let milliseconds = Some(Milliseconds::from(duration));
        Self { duration: milliseconds, duration_ms: milliseconds, ..self }
    }
}

impl OptionsJson {
    fn new(options: &PoolOptions) -> Self {
        Self {
            max_pool_size: options.max_pool_size,
            min_pool_size: options.min_pool_size,
            max_idle_time_ms: options.max_idle_time.map(Milliseconds::from),
            max_connecting: options.max_connecting,
            wait_queue_timeout_ms: options.wait_queue_timeout.map(Milliseconds::from),
        }
    }
}

fn as_text<S: Serializer>(address: &ServerAddress, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

impl From<Duration> for Milliseconds {
    fn from(duration: Duration) -> Self {
        if duration.subsec_nanos().is_multiple_of(1_000_000) {
            Self::Whole(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
        } else {
            Self::Broken(duration.as_secs_f64() * 1_000.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use cenote_core::pool::{
        CheckOutError, CloseReason, PendingResponseFailure, ServiceId, WaiterId,
    };
    use serde_json::json;

    use super::*;

    /// Lines begin with the time, name the unit of durations, and tell errors and requests.
    #[test]
    fn each_rendering_has_its_fields() {
        let (address, at) = ("a:1".parse().unwrap(), Duration::from_millis(1500));
        let (request, none) = (WaiterId(4711), Duration::ZERO.into());
        let (connection_id, request_id) = (3, -7);
        let duration = Duration::from_micros(410).into();
        let (reason, error) = (CloseReason::Error, Some("eof"));
        let cleared = |service_id| Event::ConnectionPoolCleared {
            service_id,
            interrupt_in_use_connections: false,
        };
        let failed = Event::ConnectionCheckOutFailed {
            request,
            error: CheckOutError::PoolClosed,
            duration: none,
        };
        let pending_failed = Event::ConnectionPendingResponseFailed {
            connection_id,
            request_id,
            duration: Duration::from_millis(2).into(),
            reason: PendingResponseFailure::Timeout,
        };
        for (event, of_official, of_line) in [
            (
                Event::ConnectionCheckedOut { connection_id, request, duration },
                r#""connectionId":3,"duration":0.41"#,
                r#""connectionId":3,"request":4711,"durationMS":0.41"#,
            ),
            (
                Event::ConnectionClosed { connection_id, reason, error },
                r#""connectionId":3,"reason":"error""#,
                r#""connectionId":3,"reason":"error","error":"eof""#,
            ),
            (
                failed,
                r#""duration":0,"reason":"poolClosed""#,
                r#""request":4711,"durationMS":0,"reason":"poolClosed","error":"Attempted to check out a connection from closed connection pool [a:1]""#,
            ),
            (
                Event::ConnectionPendingResponseStarted { connection_id, request_id },
                r#""connectionId":3,"requestId":-7"#,
                r#""connectionId":3,"requestId":-7"#,
            ),
            (
                pending_failed,
                r#""connectionId":3,"requestId":-7,"duration":2,"reason":"timeout""#,
                r#""connectionId":3,"requestId":-7,"durationMS":2,"reason":"timeout""#,
            ),
            (
                cleared(None),
                r#""interruptInUseConnections":false"#,
                r#""interruptInUseConnections":false"#,
            ),
            (
                cleared(Some(ServiceId([10; 12]))),
                r#""serviceId":"0a0a0a0a0a0a0a0a0a0a0a0a","interruptInUseConnections":false"#,
                r#""serviceId":"0a0a0a0a0a0a0a0a0a0a0a0a","interruptInUseConnections":false"#,
            ),
        ] {
            let named = format!(r#""type":"{}","address":"a:1""#, event.name());
            let json = serde_json::to_string(&official(&event, &address)).unwrap();
            assert_eq!(json, format!("{{{named},{of_official}}}"));
            let json = serde_json::to_string(&line(&event, &address, at)).unwrap();
            assert_eq!(json, format!(r#"{{"at":1.5,{named},{of_line}}}"#));
        }
    }

    #[test]
    fn options_are_those_that_were_set() {
        let created = |options: PoolOptions| {
            let event = Event::<&str>::ConnectionPoolCreated { options: Box::new(options) };
            let address = "a:1".parse().unwrap();
            serde_json::to_value(official(&event, &address)).unwrap()["options"].clone()
        };
        assert_eq!(created(PoolOptions::default()), json!({}));
        let options = PoolOptions::default()
            .with_max_pool_size(0)
            .with_min_pool_size(1)
            .with_max_idle_time(Duration::from_millis(100))
            .with_max_connecting(3)
            .with_wait_queue_timeout(Duration::from_secs(1))
            .with_jitter_seed(7);
        assert_eq!(
            created(options),
            json!({
                "maxPoolSize": 0,
                "minPoolSize": 1,
                "maxIdleTimeMS": 100,
                "maxConnecting": 3,
                "waitQueueTimeoutMS": 1000,
            })
        );
    }
}
