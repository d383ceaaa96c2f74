//! How a client selects servers, through `tracing`: target `cenote::server_selection`, level DEBUG, and INFO for one that
//! is waited for.

use cenote_core::log::{LogRecord, Selection};
use tracing::level_filters::LevelFilter;
use tracing::{Level, debug, enabled, info};

use super::fields::{number, text};
use crate::runtime::contain;

// LG-43
const TARGET: &str = "cenote::server_selection";

/// Whether `tracing` collects these messages.
// LG-52
#[inline(always)]
pub fn is_wanted() -> bool {
    LevelFilter::current() >= Level::DEBUG && is_enabled()
}

/// Apart, because no subscriber collects this level in most programs.
#[inline(never)]
fn is_enabled() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Whether `tracing` collects the message that a server is waited for.
pub fn is_waiting_wanted() -> bool {
    LevelFilter::current() >= Level::INFO && enabled!(target: TARGET, Level::INFO)
}

/// Logs one message.
pub fn record<'a>(record: impl FnOnce() -> LogRecord<'a>) {
    contain(|| {
        let record = record();
        // The level of a message is a constant.
        macro_rules! event {
            ($level:ident) => {
                $level!(
                    target: TARGET,
                    message = record.message(),
                    selector = text(&record, "selector"),
                    operationId = number(&record, "operationId"),
                    operation = text(&record, "operation"),
                    topologyDescription = text(&record, "topologyDescription"),
                    topologyId = text(&record, "topologyId"),
                    serverHost = text(&record, "serverHost"),
                    serverPort = number(&record, "serverPort"),
                    remainingTimeMS = number(&record, "remainingTimeMS"),
                    failure = text(&record, "failure"),
                )
            };
        }
        if record.severity() == Selection::WAITING_SEVERITY { event!(info) } else { event!(debug) }
    });
}
