use core::fmt;
use std::borrow::Cow;

use smallvec::SmallVec;

use super::template::{self, FIRST_OPTION, NEXT_OPTION, Piece, Template, key};
use super::{LogSettings, LogValue, Severity};
use crate::address::ServerAddress;
use crate::error::PoolError;
use crate::pool::{CheckOutFailedReason, CloseReason, Event, PoolOptions, WaiterId};

/// One message of a pool to the log.
///
/// A framework with structure takes [`message`](Self::message) and [`fields`](Self::fields), all
/// others take `Display`: one line, in the words of the specification. Fields that do not apply are
/// absent from both. An IPv6 address is in brackets in the line and without them in
/// `serverHost`.
///
/// Making one allocates for what has to be written out, a service or an error, and for nothing
/// else.
#[derive(Clone)]
pub struct LogRecord<'a> {
    template: &'static Template,
    address: &'a ServerAddress,
    fields: SmallVec<[Field<'a>; FIELDS_MAX]>,
}

type Field<'a> = (&'static str, LogValue<'a>);

impl<'a> LogRecord<'a> {
    /// The severity of all messages of pools. Failures are no exception, because the caller gets
    /// them as errors.
    pub const SEVERITY: Severity = Severity::Debug;
    /// The component that pools belong to.
    pub const COMPONENT: &'static str = "connection";

    /// The message about an event of the pool of `address`.
    pub fn new<C: fmt::Display>(
        event: &Event<C>,
        address: &'a ServerAddress,
        settings: &LogSettings,
    ) -> Self {
        let about = |template| Self::about(template, address);
        match event {
            Event::ConnectionPoolCreated { options } => {
                about(&template::POOL_CREATED).with_options(options)
            }
            Event::ConnectionPoolReady => about(&template::POOL_READY),
            Event::ConnectionPoolCleared { service_id, interrupt_in_use_connections: _ } => {
                about(&template::POOL_CLEARED)
                    .with(key::SERVICE_ID, service_id.map(LogValue::service))
            }
            Event::ConnectionPoolClosed => about(&template::POOL_CLOSED),
            Event::ConnectionCreated { connection_id } => {
                about(&template::CONNECTION_CREATED).with_id(*connection_id)
            }
            Event::ConnectionReady { connection_id, duration } => {
                about(&template::CONNECTION_READY)
                    .with_id(*connection_id)
                    .with(key::DURATION_MS, LogValue::milliseconds(*duration))
            }
            Event::ConnectionClosed { connection_id, reason, error } => {
                let error = error.as_ref().map(|error| text(settings.cut(error)));
                about(&template::CONNECTION_CLOSED)
                    .with_id(*connection_id)
                    .with(key::REASON, text(why_closed(*reason)))
                    .with(key::ERROR, error)
            }
            Event::ConnectionCheckOutStarted { request } => {
                about(&template::CHECK_OUT_STARTED).with_request(*request)
            }
            Event::ConnectionCheckOutFailed { request, error, duration } => {
                let reason = error.reason();
                let message = || text(settings.cut(PoolError::message_of(error, address)));
                let tells = reason == CheckOutFailedReason::ConnectionError;
                about(&template::CHECK_OUT_FAILED)
                    .with(key::REASON, text(why_not_checked_out(reason)))
                    .with(key::ERROR, tells.then(message))
                    .with(key::DURATION_MS, LogValue::milliseconds(duration.get()))
                    .with_request(*request)
            }
            Event::ConnectionCheckedOut { connection_id, request, duration } => {
                about(&template::CHECKED_OUT)
                    .with_id(*connection_id)
                    .with(key::DURATION_MS, LogValue::milliseconds(duration.get()))
                    .with_request(*request)
            }
            Event::ConnectionCheckedIn { connection_id } => {
                about(&template::CHECKED_IN).with_id(*connection_id)
            }
            Event::ConnectionPendingResponseStarted { connection_id, request_id } => {
                about(&template::PENDING_RESPONSE_STARTED)
                    .with_id(*connection_id)
                    .with_request_id(*request_id)
            }
            Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration } => {
                about(&template::PENDING_RESPONSE_SUCCEEDED)
                    .with_id(*connection_id)
                    .with_request_id(*request_id)
                    .with(key::DURATION_MS, LogValue::milliseconds(duration.get()))
            }
            Event::ConnectionPendingResponseFailed {
                connection_id,
                request_id,
                duration,
                reason,
            } => about(&template::PENDING_RESPONSE_FAILED)
                .with_id(*connection_id)
                .with_request_id(*request_id)
                .with(key::REASON, text(reason.as_str()))
                .with(key::DURATION_MS, LogValue::milliseconds(duration.get())),
        }
    }

    /// The message, which is the same for all events of a type.
    #[must_use]
    pub const fn message(&self) -> &'static str {
        self.template.message
    }

    /// The keys and values, in the order of the specification: `serverHost` and `serverPort` first,
    /// the latter except for UNIX sockets. After these, the records of a check-out have `request`, a number
    /// that its events, its error and traces have, too.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &LogValue<'a>)> {
        self.fields.iter().map(|(key, value)| (*key, value))
    }

    /// The value of the field with this key, if there is one.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&LogValue<'a>> {
        self.fields().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    fn about(template: &'static Template, address: &'a ServerAddress) -> Self {
        let port = address.port().map(|port| LogValue::Int(port.into()));
        Self { template, address, fields: SmallVec::new() }
            .with(key::SERVER_HOST, text(address.host()))
            .with(key::SERVER_PORT, port)
    }

    fn with(mut self, key: &'static str, value: impl Into<Option<LogValue<'a>>>) -> Self {
        self.fields.extend(value.into().map(|value| (key, value)));
        self
    }

    fn with_id(self, connection_id: u64) -> Self {
        self.with(key::DRIVER_CONNECTION_ID, LogValue::whole(connection_id))
    }

    fn with_request(self, request: WaiterId) -> Self {
        self.with(key::REQUEST, LogValue::whole(request.0))
    }

    fn with_request_id(self, request_id: i32) -> Self {
        self.with(key::REQUEST_ID, LogValue::Int(request_id.into()))
    }

    /// Those that were set, and CMAP's own only.
    fn with_options(self, options: &PoolOptions) -> Self {
        let size = |size: u32| LogValue::Int(size.into());
        let time = LogValue::option_in_ms;
        self.with(key::MAX_IDLE_TIME_MS, options.max_idle_time.map(time))
            .with(key::MIN_POOL_SIZE, options.min_pool_size.map(size))
            .with(key::MAX_POOL_SIZE, options.max_pool_size.map(size))
            .with(key::MAX_CONNECTING, options.max_connecting.map(size))
            .with(key::WAIT_QUEUE_TIMEOUT_MS, options.wait_queue_timeout.map(time))
    }
}

impl fmt::Display for LogRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Template { before_address, after_address, pieces, message: _ } = self.template;
        write!(f, "{before_address}{}{after_address}", self.address)?;
        let mut before_option = FIRST_OPTION;
        for piece in *pieces {
            match piece {
                Piece::Around(before, key, after) => {
                    if let Some(value) = self.field(key) {
                        write!(f, "{before}{value}{after}")?;
                    }
                }
                Piece::Option(key) => {
                    if let Some(value) = self.field(key) {
                        write!(f, "{before_option}{key}={value}")?;
                        before_option = NEXT_OPTION;
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for LogRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogRecord")
            .field("message", &self.message())
            .field("fields", &self.fields)
            .finish()
    }
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> LogValue<'a> {
    LogValue::Text(text.into())
}

/// The text of a reason, as the specification words it.
// LG-31
const fn why_closed(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Error => "An error occurred while using the connection",
        CloseReason::Stale => "Connection became stale because the pool was cleared",
        CloseReason::Idle => {
            "Connection has been available but unused for longer than the configured max idle time"
        }
        CloseReason::PoolClosed => "Connection pool was closed",
    }
}

/// The text of a reason, as the specification words it.
// LG-32
const fn why_not_checked_out(reason: CheckOutFailedReason) -> &'static str {
    match reason {
        CheckOutFailedReason::PoolClosed => "Connection pool was closed",
        CheckOutFailedReason::Timeout => {
            "Wait queue timeout elapsed without a connection becoming available"
        }
        CheckOutFailedReason::ConnectionError => {
            "An error occurred while trying to establish a new connection"
        }
    }
}

/// As many fields as "Connection pool created" has when every option was set.
const FIELDS_MAX: usize = 7;
