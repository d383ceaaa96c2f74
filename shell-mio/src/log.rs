//! The specification's log messages, through `tracing`: target `cenote::connection`, level DEBUG
//! (LG-01).

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::{ConnId, Event};
use tracing::field::display;
use tracing::{Level, debug, enabled, warn};

/// The specification calls the component `connection`.
const TARGET: &str = "cenote::connection";

/// Whether anybody would see a message.
pub(crate) fn is_wanted() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Says what happened, with the keys of the specification. Those that do not apply are absent.
pub(crate) fn event(address: &ServerAddress, event: &Event<ConnectionError>) {
    if !is_wanted() {
        return;
    }
    let settings = LogSettings::default();
    let record = LogRecord::new(event, address, &settings);
    let field = |key| record.field(key).map(display);
    debug!(
        target: TARGET,
        message = record.message(),
        serverHost = field("serverHost"),
        serverPort = field("serverPort"),
        driverConnectionId = field("driverConnectionId"),
        durationMS = field("durationMS"),
        reason = field("reason"),
        error = field("error"),
        serviceId = field("serviceId"),
        maxIdleTimeMS = field("maxIdleTimeMS"),
        minPoolSize = field("minPoolSize"),
        maxPoolSize = field("maxPoolSize"),
        maxConnecting = field("maxConnecting"),
        waitQueueTimeoutMS = field("waitQueueTimeoutMS"),
    );
}

/// Not a message of the specification: a connection is perhaps leaked.
pub(crate) fn held_too_long(address: &ServerAddress, id: ConnId, held: Duration) {
    warn!(
        target: TARGET,
        message = "Connection held for long: was it leaked?",
        serverHost = address.host(),
        serverPort = address.port(),
        driverConnectionId = id.number(),
        heldMS = u64::try_from(held.as_millis()).unwrap_or(u64::MAX),
    );
}
