//! Events, as users see them, and their subscribers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{LogRecord, LogSettings};
use cenote_core::pool::{ConnId, Event};

use crate::log;
use crate::runtime::contain;

/// One of CMAP's [events](https://github.com/mongodb/specifications/blob/master/source/connection-monitoring-and-pooling/connection-monitoring-and-pooling.md#events),
/// and the server whose pool emits it.
///
/// `Display` is the specification's log message about it.
// EV-03
#[derive(Clone, Debug)]
pub struct PoolEvent {
    /// The server that the pool is for.
    pub address: Arc<ServerAddress>,
    /// What happened.
    pub event: Event<ConnectionError>,
}

/// A callback for every event of a pool.
pub type Subscriber = Box<dyn Fn(&PoolEvent) + Send + Sync>;

/// The subscribers of a pool, and its log.
pub struct Subscribers {
    all: Vec<Subscriber>,
    log: LogSettings,
}

/// What a pool tells, in the machine's order:
/// [`EmitEvent`](cenote_core::pool::Action::EmitEvent),
/// [`ReportLeak`](cenote_core::pool::Action::ReportLeak) and
/// [`ReportUnanswered`](cenote_core::pool::Action::ReportUnanswered).
#[derive(Debug)]
#[non_exhaustive]
pub enum Notification {
    /// For [`Subscribers`].
    Event(Event<ConnectionError>),
    /// For the [`LeakDetector`](crate::pool::leak::LeakDetector).
    Leak {
        /// The connection.
        id: ConnId,
        /// How long it has been checked out.
        held: Duration,
    },
    /// For the log.
    Unanswered {
        /// The connection.
        id: ConnId,
        /// How long it has been pending.
        pending: Duration,
    },
}

impl Subscribers {
    /// These subscribers, and `tracing`. Without settings, the log is as the environment variables say.
    #[must_use]
    pub fn new(all: Vec<Subscriber>, log: Option<LogSettings>) -> Self {
        // LG-54
        Self { all, log: log.unwrap_or_else(|| *log::OF_ENVIRONMENT) }
    }

    /// Whether an event has a subscriber, or is logged.
    #[inline]
    #[must_use]
    pub fn want_events(&self) -> bool {
        !self.all.is_empty() || log::is_wanted()
    }

    /// Calls the subscribers. To be called without a lock: a subscriber may take long, or panic.
    pub fn tell(&self, address: &Arc<ServerAddress>, event: Event<ConnectionError>) {
        if log::is_wanted() {
            // `tracing`'s collector may panic, too.
            contain(|| log::event(address, &event, &self.log));
        }
        if self.all.is_empty() {
            return;
        }
        let event = PoolEvent { address: Arc::clone(address), event };
        for subscriber in &self.all {
            // A panic of one subscriber must not keep the event from the others.
            contain(|| subscriber(&event));
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

#[cfg(test)]
mod tests {
    use super::Notification;

    /// As the documentation of the builder's limit counts.
    #[test]
    fn a_notification_is_small() {
        assert!(size_of::<Notification>() <= 40);
    }
}
