//! The eleven messages of CMAP, and three of a draft.

use core::fmt;

use super::template::{Piece, Template, key};
use super::{Component, LogRecord, LogSettings, LogValue, Severity};
use crate::address::ServerAddress;
use crate::error::PoolError;
use crate::pool::{CheckOutFailedReason, CloseReason, Event, PoolOptions, WaiterId};

impl<'a> LogRecord<'a> {
    /// The severity of all messages of pools. Failures are no exception, because the caller gets
    /// them as errors.
    // LG-01, LG-51
    pub const SEVERITY: Severity = Severity::Debug;

    /// The message about an event of the pool of `address`.
    // LG-02, LG-33, LG-50, LG-56
    pub fn new<C: fmt::Display>(
        event: &Event<C>,
        address: &'a ServerAddress,
        settings: &LogSettings,
    ) -> Self {
        let about = |template| Self::about(template).with_address(address);
        match event {
            Event::ConnectionPoolCreated { options } => about(&POOL_CREATED).with_options(options),
            Event::ConnectionPoolReady => about(&POOL_READY),
            Event::ConnectionPoolCleared { service_id, interrupt_in_use_connections: _ } => {
                about(&POOL_CLEARED).with(SERVICE_ID, service_id.map(LogValue::service))
            }
            Event::ConnectionPoolClosed => about(&POOL_CLOSED),
            Event::ConnectionCreated { connection_id } => {
                about(&CONNECTION_CREATED).with_id(*connection_id)
            }
            Event::ConnectionReady { connection_id, duration } => about(&CONNECTION_READY)
                .with_id(*connection_id)
                .with(key::DURATION_MS, LogValue::milliseconds(*duration)),
            Event::ConnectionClosed { connection_id, reason, error } => {
                let error = error.as_ref().map(|error| LogValue::text(settings.cut(error)));
                about(&CONNECTION_CLOSED)
                    .with_id(*connection_id)
                    .with(REASON, LogValue::text(why_closed(*reason)))
                    .with(ERROR, error)
            }
            Event::ConnectionCheckOutStarted { request } => {
                about(&CHECK_OUT_STARTED).with_request(*request)
            }
            Event::ConnectionCheckOutFailed { request, error, duration } => {
                let reason = error.reason();
                let message =
                    || LogValue::text(settings.cut(PoolError::message_of(error, address)));
                let tells = reason == CheckOutFailedReason::ConnectionError;
                about(&CHECK_OUT_FAILED)
                    .with(REASON, LogValue::text(why_not_checked_out(reason)))
                    .with(ERROR, tells.then(message))
                    .with(key::DURATION_MS, LogValue::milliseconds(duration.get()))
                    .with_request(*request)
            }
            Event::ConnectionCheckedOut { connection_id, request, duration } => about(&CHECKED_OUT)
                .with_id(*connection_id)
                .with(key::DURATION_MS, LogValue::milliseconds(duration.get()))
                .with_request(*request),
            Event::ConnectionCheckedIn { connection_id } => {
                about(&CHECKED_IN).with_id(*connection_id)
            }
            Event::ConnectionPendingResponseStarted { connection_id, request_id } => {
                about(&PENDING_RESPONSE_STARTED)
                    .with_id(*connection_id)
                    .with_request_id(*request_id)
            }
            Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration } => {
                about(&PENDING_RESPONSE_SUCCEEDED)
                    .with_id(*connection_id)
                    .with_request_id(*request_id)
                    .with(key::DURATION_MS, LogValue::milliseconds(duration.get()))
            }
            Event::ConnectionPendingResponseFailed {
                connection_id,
                request_id,
                duration,
                reason,
            } => about(&PENDING_RESPONSE_FAILED)
                .with_id(*connection_id)
                .with_request_id(*request_id)
                .with(REASON, LogValue::text(reason.as_str()))
                .with(key::DURATION_MS, LogValue::milliseconds(duration.get())),
        }
    }

    // LG-08
    fn with_id(self, connection_id: u64) -> Self {
        self.with(key::DRIVER_CONNECTION_ID, LogValue::whole(connection_id))
    }

    fn with_request(self, request: WaiterId) -> Self {
        self.with(REQUEST, LogValue::whole(request.0))
    }

    fn with_request_id(self, request_id: i32) -> Self {
        self.with(REQUEST_ID, LogValue::Int(request_id.into()))
    }

    /// Those that were set, and CMAP's own only.
    fn with_options(self, options: &PoolOptions) -> Self {
        let size = |size: u32| LogValue::Int(size.into());
        let time = LogValue::option_in_ms;
        self.with(MAX_IDLE_TIME_MS, options.max_idle_time.map(time))
            .with(MIN_POOL_SIZE, options.min_pool_size.map(size))
            .with(MAX_POOL_SIZE, options.max_pool_size.map(size))
            .with(MAX_CONNECTING, options.max_connecting.map(size))
            .with(WAIT_QUEUE_TIMEOUT_MS, options.wait_queue_timeout.map(time))
    }
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

const REASON: &str = "reason";
const ERROR: &str = "error";
const REQUEST_ID: &str = "requestId";
/// Not a key of the specification.
const REQUEST: &str = "request";
const SERVICE_ID: &str = "serviceId";
const MAX_IDLE_TIME_MS: &str = "maxIdleTimeMS";
const MIN_POOL_SIZE: &str = "minPoolSize";
const MAX_POOL_SIZE: &str = "maxPoolSize";
const MAX_CONNECTING: &str = "maxConnecting";
const WAIT_QUEUE_TIMEOUT_MS: &str = "waitQueueTimeoutMS";

const fn message(message: &'static str, line: &'static [Piece]) -> Template {
    Template::debug(Component::Connection, message, line)
}

// LG-20
static POOL_CREATED: Template = message(
    "Connection pool created",
    &[
        Piece::Text("Connection pool created for "),
        Piece::Address,
        Piece::Option(MAX_IDLE_TIME_MS),
        Piece::Option(MIN_POOL_SIZE),
        Piece::Option(MAX_POOL_SIZE),
        Piece::Option(MAX_CONNECTING),
        Piece::Option(WAIT_QUEUE_TIMEOUT_MS),
    ],
);

// LG-21
static POOL_READY: Template =
    message("Connection pool ready", &[Piece::Text("Connection pool ready for "), Piece::Address]);

// LG-22
static POOL_CLEARED: Template = message(
    "Connection pool cleared",
    &[
        Piece::Text("Connection pool for "),
        Piece::Address,
        Piece::Text(" cleared"),
        Piece::Around(" for serviceId ", SERVICE_ID, ""),
    ],
);

// LG-23
static POOL_CLOSED: Template = message(
    "Connection pool closed",
    &[Piece::Text("Connection pool closed for "), Piece::Address],
);

// LG-24
static CONNECTION_CREATED: Template = message(
    "Connection created",
    &[Piece::Text("Connection created: address="), Piece::Address, GENERATED_ID],
);

// LG-25
static CONNECTION_READY: Template = message(
    "Connection ready",
    &[
        Piece::Text("Connection ready: address="),
        Piece::Address,
        GENERATED_ID,
        Piece::Around(", established in=", key::DURATION_MS, " ms"),
    ],
);

// LG-26
static CONNECTION_CLOSED: Template = message(
    "Connection closed",
    &[
        Piece::Text("Connection closed: address="),
        Piece::Address,
        GENERATED_ID,
        REASON_TOLD,
        Piece::Around(" Error: ", ERROR, ""),
    ],
);

// LG-27
static CHECK_OUT_STARTED: Template = message(
    "Connection checkout started",
    &[Piece::Text("Checkout started for connection to "), Piece::Address],
);

// LG-28
static CHECK_OUT_FAILED: Template = message(
    "Connection checkout failed",
    &[
        Piece::Text("Checkout failed for connection to "),
        Piece::Address,
        REASON_TOLD,
        Piece::Around(" Error: ", ERROR, "."),
        Piece::Around(" Duration: ", key::DURATION_MS, " ms"),
    ],
);

// LG-29
static CHECKED_OUT: Template = message(
    "Connection checked out",
    &[Piece::Text("Connection checked out: address="), Piece::Address, GENERATED_ID, DURATION],
);

// LG-30
static CHECKED_IN: Template = message(
    "Connection checked in",
    &[Piece::Text("Connection checked in: address="), Piece::Address, GENERATED_ID],
);

// LR-09
static PENDING_RESPONSE_STARTED: Template = message(
    "Pending response started",
    &[Piece::Text("Pending response started: address="), Piece::Address, GENERATED_ID, MESSAGE_ID],
);

static PENDING_RESPONSE_SUCCEEDED: Template = message(
    "Pending response succeeded",
    &[
        Piece::Text("Pending response succeeded: address="),
        Piece::Address,
        GENERATED_ID,
        MESSAGE_ID,
        DURATION,
    ],
);

static PENDING_RESPONSE_FAILED: Template = message(
    "Pending response failed",
    &[
        Piece::Text("Pending response failed: address="),
        Piece::Address,
        GENERATED_ID,
        MESSAGE_ID,
        Piece::Around(", reason=", REASON, ""),
        DURATION,
    ],
);

const GENERATED_ID: Piece = Piece::Around(", driver-generated ID=", key::DRIVER_CONNECTION_ID, "");
const MESSAGE_ID: Piece = Piece::Around(", request ID=", REQUEST_ID, "");
const DURATION: Piece = Piece::Around(", duration=", key::DURATION_MS, " ms");
const REASON_TOLD: Piece = Piece::Around(". Reason: ", REASON, ".");
