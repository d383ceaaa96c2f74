//! What a builder is told of the pool that it makes, whichever shell makes it.

mod error;
mod measured;
mod plan;
mod traces;

use std::fmt;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::LogSettings;
use cenote_core::pool::PoolOptions;
use cenote_core::uri::ConnectionString;

use crate::event::PoolEvent;
use crate::failure::Failure;
use crate::leak::LeakReport;
use crate::log;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::trace::TraceOptions;

pub use self::error::BuildError;
pub use self::measured::Measured;
pub use self::plan::{Begun, PoolPlan};

/// A pool that a [`Builder`] makes: a shell's.
pub trait BuiltPool: Sized {
    /// What makes its connections.
    type Connector;

    /// One end of a channel, as its users have them.
    type EventSender: Send + Sync + 'static;

    /// Makes the pool.
    ///
    /// # Errors
    ///
    /// What [`PoolPlan::begin`] fails with, and what the shell's own means do.
    fn build(plan: PoolPlan<Self::Connector>) -> Result<Self, BuildError>;

    /// Sends an event. Nobody minds if there is no receiver any more.
    fn send(sender: &Self::EventSender, event: PoolEvent);
}

/// A connector that makes connections as a connection string says.
pub trait FromUri: Sized {
    /// Reads the files that the connection string names, and nothing else.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, and what could never work.
    fn from_uri(uri: &ConnectionString) -> Result<Self, ConnectionError>;
}

/// Makes a `Pool`, of whichever shell `P` is.
pub struct Builder<P: BuiltPool>(PoolPlan<P::Connector>);

impl<P: BuiltPool<Connector: FromUri>> Builder<P> {
    /// A pool for the first host of a connection string. Options of it that are not known, or have
    /// values that they cannot have, are ignored with a warning through `tracing` (OP-35, OP-36). A
    /// shell's `Pool::builder` is this for the connector that it brings.
    ///
    /// # Errors
    ///
    /// A connection string that is none, or files of it that cannot be read.
    pub fn from_uri(uri: &str) -> Result<Self, BuildError> {
        let uri = ConnectionString::parse(uri)?;
        uri.warnings().iter().for_each(log::connection_string);
        let address = uri.hosts.first().cloned();
        let address = address.unwrap_or_else(|| unreachable!("a connection string has a host"));
        Ok(Self::new(address, P::Connector::from_uri(&uri)?).options(uri.pool))
    }
}

impl<P: BuiltPool> Builder<P> {
    /// A pool of what `connector` makes.
    #[must_use]
    pub fn new(address: ServerAddress, connector: P::Connector) -> Self {
        Self(PoolPlan::new(address, connector))
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.0.address
    }

    /// Takes these options and no others: those of a connection string are forgotten (OP-52).
    #[must_use]
    pub fn options(mut self, options: PoolOptions) -> Self {
        self.0.options = options;
        self
    }

    /// Tells `subscriber` every event, in the machine's order and never under a lock. It runs on the
    /// thread of whoever uses the pool or opens its connections, one call at a time; meanwhile others
    /// are served, and sockets opened, broken off and closed, unless the thread is the one that does
    /// that. Who has begun to tell events tells those of everybody else until there are none, be it in
    /// a guard's drop: a subscriber that takes longer than the pool takes to give it work keeps that
    /// thread and fills the memory. One that takes microseconds sends them
    /// [elsewhere](Self::event_channel).
    ///
    /// It may use the pool, but not block until the pool does something: a check-out that is not
    /// served at once would wait for what comes after this call. If it panics, nobody else notices.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.0.subscribers.push(Box::new(subscriber));
        self
    }

    /// Sends every event into a channel, until its receiver is dropped.
    #[must_use]
    pub fn event_channel(self, sender: P::EventSender) -> Self {
        self.on_event(move |event| P::send(&sender, event.clone()))
    }

    /// Makes log messages like this. Without it, what the environment says counts, read once for the
    /// whole process (LG-48); how to have the environment beat the program, [`LogSettings`] says
    /// (LG-54). Which messages are wanted, and where they go, is for the application's `tracing` to say
    /// (LG-41, LG-47).
    #[must_use]
    pub fn log_settings(mut self, settings: LogSettings) -> Self {
        self.0.log = Some(settings);
        self
    }

    /// Shows `watcher` every connection that could not be established, and every error of one that
    /// is in use, before the pool and the caller hear of it: so that SDAM may mark the server as
    /// unknown and [clear the pool](Failure::clear) first, as the specification orders (ES-05). Not
    /// shown is what says nothing about the server: that the pool gave a connection up, or
    /// interrupted it, or that somebody stopped in the middle of an exchange.
    ///
    /// It runs on the thread where the failure was noticed, several calls at a time, never under a
    /// lock, and must not block. It may use the pool. If it panics, nobody else notices. The last one
    /// that is set counts.
    #[must_use]
    pub fn on_failure(mut self, watcher: impl Fn(&Failure<'_>) + Send + Sync + 'static) -> Self {
        self.0.watcher = Some(Box::new(watcher));
        self
    }

    /// Shows `overseer` every connection that is held for as long as
    /// [`leak_detection_threshold`](PoolOptions::leak_detection_threshold) says, once for each time that it is checked out,
    /// with the place in the application where that was. Without that option nothing is reported, and
    /// nothing noted. A warning through `tracing` says the same.
    ///
    /// It runs as subscribers do, never under a lock. The last one that is set counts.
    #[must_use]
    pub fn on_leak(mut self, overseer: impl Fn(&LeakReport) + Send + Sync + 'static) -> Self {
        self.0.overseer = Some(Box::new(overseer));
        self
    }

    /// Measures the pool with OpenTelemetry (feature `metrics`): durations and timeouts as they
    /// happen, counts whenever the meter's reader asks, for as long as the pool lives. Without it no
    /// check-out pays anything; with it the pool tells its events, as with any subscriber.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.0.metrics.push(metrics);
        self
    }

    /// With all that was told of traces at once.
    pub(crate) fn traced(mut self, tracing: TraceOptions) -> Self {
        self.0.tracing = tracing;
        self
    }

    /// Makes the pool, which is paused, and what it needs to open connections.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a file or folder for traces that cannot be made; no event
    /// loop, or no thread, to be had where the shell has them.
    ///
    /// # Panics
    ///
    /// Outside of the runtime that the shell needs, if it needs one.
    pub fn build(self) -> Result<P, BuildError> {
        P::build(self.0)
    }

    /// What it was told, for who makes a pool of it in another way.
    #[must_use]
    pub fn into_plan(self) -> PoolPlan<P::Connector> {
        self.0
    }
}

impl<P: BuiltPool> fmt::Debug for Builder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("address", &self.0.address)
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}
