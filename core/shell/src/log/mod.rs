//! The specification's log messages, through `tracing`. Those of pools have the target `cenote::connection` and the level
//! DEBUG.

mod fields;
pub mod selection;
pub mod topology;

use std::panic::Location;
use std::sync::LazyLock;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::Event;
use cenote_core::uri::UriWarning;
#[cfg(feature = "tls")]
use cenote_core::uri::srv::SrvError;
use tracing::level_filters::LevelFilter;
use tracing::{Level, debug, enabled, warn};

use self::fields::{number, text};
use crate::runtime::contain;

/// The specification calls the component `connection`.
// LG-43, LG-47
const TARGET: &str = "cenote::connection";

/// What the environment says, where the program says nothing. Which messages are
/// logged is decided by the application's `tracing` subscriber.
// LG-48
pub static OF_ENVIRONMENT: LazyLock<LogSettings> = LazyLock::new(|| {
    LogSettings::from_variable(std::env::var(LogSettings::VARIABLE).ok().as_deref())
});

/// Whether `tracing` collects these messages.
// LG-40
#[inline(always)]
pub fn is_wanted() -> bool {
    LevelFilter::current() >= Level::DEBUG && is_enabled()
}

/// Apart, because no subscriber collects this level in most programs.
#[inline(never)]
fn is_enabled() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Says what happened, with the keys of the specification. Those that do not apply are absent.
// LG-41
#[inline(never)]
pub fn event(address: &ServerAddress, event: &Event<ConnectionError>, settings: &LogSettings) {
    let record = LogRecord::new(event, address, settings);
    let text = |key| text(&record, key);
    let number = |key| number(&record, key);
    debug!(
        target: TARGET,
        message = record.message(),
        serverHost = text("serverHost"),
        serverPort = number("serverPort"),
        driverConnectionId = number("driverConnectionId"),
        durationMS = number("durationMS"),
        reason = text("reason"),
        error = text("error"),
        serviceId = text("serviceId"),
        request = number("request"),
        maxIdleTimeMS = number("maxIdleTimeMS"),
        minPoolSize = number("minPoolSize"),
        maxPoolSize = number("maxPoolSize"),
        maxConnecting = number("maxConnecting"),
        waitQueueTimeoutMS = number("waitQueueTimeoutMS"),
    );
}

/// A warning about an option of a connection string. It holds no value.
pub fn connection_string(warning: &UriWarning) {
    warn!(target: TARGET, "Connection string: {warning}");
}

/// A look at the SRV records changed nothing, or one of them was ignored.
#[cfg(feature = "tls")]
pub fn srv_records(problem: &SrvError) {
    warn!(target: TARGET, "SRV records: {problem}");
}

/// A server was found whose pool cannot be built.
pub fn server_not_added(address: &ServerAddress, error: &impl std::fmt::Display) {
    warn!(target: TARGET, serverHost = address.host(), serverPort = address.port(), "Server found, but its pool cannot be built: {error}");
}

/// A certificate or a key has changed, and cannot be used.
#[cfg(feature = "tls")]
pub fn tls_not_renewed(error: &ConnectionError) {
    warn!(target: TARGET, "TLS goes on with the files as they were: {error}");
}

/// Not a message of the specification: a connection is perhaps leaked.
pub fn leak(
    address: &ServerAddress,
    connection_id: u64,
    held: Duration,
    place: Option<&'static Location<'static>>,
) {
    warn!(
        target: TARGET,
        message = "Possible connection leak: checked out for leak_detection_threshold",
        serverHost = address.host(),
        serverPort = address.port(),
        driverConnectionId = connection_id,
        heldMS = u64::try_from(held.as_millis()).unwrap_or(u64::MAX),
        checkedOutAt = place.map(display),
    );
}

/// Not a message of the specification: a connector does not return.
#[cold]
pub fn unanswered(address: &ServerAddress, connection_id: u64, pending: Duration) {
    contain(|| {
        warn!(
            target: TARGET,
            message = "Connection still not established after unanswered_threshold",
            serverHost = address.host(),
            serverPort = address.port(),
            driverConnectionId = connection_id,
            pendingMS = u64::try_from(pending.as_millis()).unwrap_or(u64::MAX),
        );
    });
}

/// Not messages of the specification: subscribers do not return.
#[cold]
pub fn events_dropped(address: &ServerAddress) {
    let message = "Events are dropped: a subscriber blocks, or takes too long";
    subscriber_blocks(address, message);
}

/// The pool is closed, and a subscriber, or a task of the runtime, has not ended in time.
#[cold]
pub fn close_gave_up(address: &ServerAddress) {
    let message = "Connection pool closed without waiting longer: a subscriber blocks";
    subscriber_blocks(address, message);
}

fn subscriber_blocks(address: &ServerAddress, message: &str) {
    contain(|| {
        warn!(target: TARGET, message, serverHost = address.host(), serverPort = address.port());
    });
}
