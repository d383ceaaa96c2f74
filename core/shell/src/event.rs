//! Events, as users see them.

use std::fmt;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::Event;

/// One of CMAP's eleven events, and whose it is (EV-01).
///
/// `Display` is the specification's log message about it.
#[derive(Clone, Debug)]
pub struct PoolEvent {
    /// The server that the pool is for.
    pub address: Arc<ServerAddress>,
    /// What happened.
    pub event: Event<ConnectionError>,
}

/// Somebody who is told everything.
pub type Subscriber = Box<dyn Fn(&PoolEvent) + Send + Sync>;

impl fmt::Display for PoolEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LogRecord::new(&self.event, &self.address, &LogSettings::default()).fmt(f)
    }
}
