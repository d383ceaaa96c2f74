//! Events, as users see them, and who is told of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::{ConnId, Event};

use crate::log;

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

/// All of them, and the log.
pub struct Subscribers {
    all: Vec<Subscriber>,
    log: LogSettings,
}

/// What a pool has to tell, in the machine's order: what the machine says by
/// [`EmitEvent`](cenote_core::pool::Action::EmitEvent) and
/// [`ReportLeak`](cenote_core::pool::Action::ReportLeak).
#[derive(Debug)]
pub enum News {
    /// For [`Subscribers`].
    Event(Event<ConnectionError>),
    /// For [`LeakDetector`](crate::leak::LeakDetector).
    LeakReport {
        /// The connection.
        id: ConnId,
        /// For how long it has been out.
        held: Duration,
    },
}

impl Subscribers {
    /// These, and `tracing`; with what the environment says of the log if nothing else was set
    /// (LG-54).
    #[must_use]
    pub fn new(all: Vec<Subscriber>, log: Option<LogSettings>) -> Self {
        Self { all, log: log.unwrap_or_else(|| *log::OF_ENVIRONMENT) }
    }

    /// Whether anybody would hear of an event.
    #[inline]
    #[must_use]
    pub fn want_events(&self) -> bool {
        !self.all.is_empty() || log::is_wanted()
    }

    /// Tells an event, to be called without a lock: whoever is told may take his time, or panic.
    pub fn tell(&self, address: &Arc<ServerAddress>, event: Event<ConnectionError>) {
        if log::is_wanted() {
            // What collects them may panic, too.
            let _ = catch_unwind(AssertUnwindSafe(|| log::event(address, &event, &self.log)));
        }
        if self.all.is_empty() {
            return;
        }
        let event = PoolEvent { address: Arc::clone(address), event };
        for subscriber in &self.all {
            // One that panics has said so; the others, and what comes next, are not to suffer.
            let _ = catch_unwind(AssertUnwindSafe(|| subscriber(&event)));
        }
    }
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscribers").field(&self.all.len()).finish()
    }
}

impl fmt::Display for PoolEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LogRecord::new(&self.event, &self.address, &LogSettings::default()).fmt(f)
    }
}
