//! Texts of the action that was pulled last.

use core::fmt::Write as _;
use std::ffi::c_char;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError, RetryWrites};
use cenote_core::log::{LogRecord, LogValue};
use cenote_core::pool::{CheckOutError, Event};

use crate::action::ActionRecord;
use crate::cause::SharedCause;
use crate::pointer::Text;
use crate::pool::{Inner, Pool, with};
use crate::status::{Failure, Status, call, numbered};

/// Which text.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum TextKind {
    /// The type of a check-out's error, as the specification names it: `PoolClearedError`.
    Name = 0,
    /// The message that the specification has the error say; of a cause, the whole of it.
    Message = 1,
    /// The message, the server, and after a timeout what the pool looked like.
    Explanation = 2,
    /// The labels of the error, separated by spaces.
    Labels = 3,
    /// The labels if the client retries writes.
    LabelsRetryWrites = 4,
    /// The type of an event, as the specification names it: `ConnectionReadyEvent` is `ConnectionReady`.
    Event = 5,
    /// The reason of an event, as the specification spells it: `poolClosed`.
    Reason = 6,
    /// The log message for an event: one line, of severity debug and component `connection`.
    Log = 7,
    /// The log message as JSON: an object with `message` and the fields of the specification.
    LogJson = 8,
    /// Where a server is: `host:port`, or the path of a UNIX domain socket. Actions of clients have it.
    Address = 9,
}

impl TextKind {
    const ALL: [Self; 10] = {
        use TextKind::{
            Address, Event, Explanation, Labels, LabelsRetryWrites, Log, LogJson, Message, Name,
            Reason,
        };
        [
            Name,
            Message,
            Explanation,
            Labels,
            LabelsRetryWrites,
            Event,
            Reason,
            Log,
            LogJson,
            Address,
        ]
    };

    pub(crate) fn of(number: u32) -> Result<Self, Failure> {
        numbered(&Self::ALL, number, "cenote_text_kind")
    }

    pub(crate) fn missing(self) -> Failure {
        Failure::new(Status::Nothing, format!("there is no text of the kind {self:?} here"))
    }
}

/// A text of the action that was pulled last: `kind` is a `cenote_text_kind`. An action without such a text is
/// `CENOTE_STATUS_NOTHING`. For the rest see `cenote_last_error`.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_action_text(
    pool: *mut Pool,
    kind: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer, capacity, length) };
        let kind = TextKind::of(kind)?;
        target.write(&with(pool, |inner| text(inner, kind))?)
    })
}

fn text(inner: &Inner, kind: TextKind) -> Result<String, Failure> {
    match &inner.last_action {
        ActionRecord::Nothing => Err(kind.missing()),
        ActionRecord::Failure(error) => of_error(inner, error, kind),
        ActionRecord::Event(event) => of_event(inner, event, kind),
    }
}

fn of_event(inner: &Inner, event: &Event<SharedCause>, kind: TextKind) -> Result<String, Failure> {
    let record = || LogRecord::new(event, &inner.address, &inner.log);
    match kind {
        TextKind::Event => Ok(event.name().to_owned()),
        TextKind::Log => Ok(record().to_string()),
        TextKind::LogJson => Ok(json(&record())),
        TextKind::Reason => reason(event).map(str::to_owned).ok_or_else(|| kind.missing()),
        TextKind::Address => Err(kind.missing()),
        TextKind::Name
        | TextKind::Message
        | TextKind::Explanation
        | TextKind::Labels
        | TextKind::LabelsRetryWrites => match (event, inner.last_action.cause()) {
            (Event::ConnectionCheckOutFailed { error, .. }, _) => of_error(inner, error, kind),
            (_, Some(cause)) => cause.text(kind),
            (_, None) => Err(kind.missing()),
        },
    }
}

fn of_error(
    inner: &Inner,
    error: &CheckOutError<SharedCause>,
    kind: TextKind,
) -> Result<String, Failure> {
    let labels = |retries| joined(explained(error, &inner.address).labels(retries));
    match kind {
        TextKind::Name => {
            Ok(PoolError::new(Arc::clone(&inner.address), error.clone()).name().to_owned())
        }
        TextKind::Message => Ok(PoolError::message_of(error, &inner.address).to_string()),
        TextKind::Explanation => Ok(PoolError::explain(error, &inner.address).to_string()),
        TextKind::Labels => Ok(labels(RetryWrites::Disabled)),
        TextKind::LabelsRetryWrites => Ok(labels(RetryWrites::Enabled)),
        TextKind::Event
        | TextKind::Reason
        | TextKind::Log
        | TextKind::LogJson
        | TextKind::Address => Err(kind.missing()),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other events have no reason")]
const fn reason(event: &Event<SharedCause>) -> Option<&'static str> {
    match event {
        Event::ConnectionClosed { reason, .. } => Some(reason.as_str()),
        Event::ConnectionCheckOutFailed { error, .. } => Some(error.reason().as_str()),
        Event::ConnectionPendingResponseFailed { reason, .. } => Some(reason.as_str()),
        _ => None,
    }
}

/// The error with the core's causes, which decide about labels and retries.
pub(crate) fn explained(
    error: &CheckOutError<SharedCause>,
    address: &Arc<ServerAddress>,
) -> PoolError {
    let own = |cause: &SharedCause| cause.error().clone();
    let error: CheckOutError<ConnectionError> = match error {
        CheckOutError::PoolClosed => CheckOutError::PoolClosed,
        CheckOutError::PoolCleared { cause } => {
            CheckOutError::PoolCleared { cause: cause.as_ref().map(own) }
        }
        CheckOutError::WaitQueueTimeout { snapshot } => {
            CheckOutError::WaitQueueTimeout { snapshot: Arc::clone(snapshot) }
        }
        CheckOutError::WaitQueueFull { max } => CheckOutError::WaitQueueFull { max: *max },
        CheckOutError::Shed { delay } => CheckOutError::Shed { delay: *delay },
        CheckOutError::EstablishFailed { cause } => {
            CheckOutError::EstablishFailed { cause: own(cause) }
        }
        CheckOutError::Cancelled => CheckOutError::Cancelled,
    };
    PoolError::new(Arc::clone(address), error)
}

pub(crate) fn joined<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    labels.collect::<Vec<_>>().join(" ")
}

pub(crate) fn json(record: &LogRecord<'_>) -> String {
    let mut json = format!("{{\"message\":{}", quoted(record.message()));
    for (key, value) in record.fields() {
        // Writing to a `String` does not fail.
        let _ = match value {
            LogValue::Int(number) => write!(json, ",\"{key}\":{number}"),
            LogValue::Double(number) => write!(json, ",\"{key}\":{number:?}"),
            LogValue::Bool(is_so) => write!(json, ",\"{key}\":{is_so}"),
            text @ (LogValue::Text(_) | _) => {
                write!(json, ",\"{key}\":{}", quoted(&text.to_string()))
            }
        };
    }
    json.push('}');
    json
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
