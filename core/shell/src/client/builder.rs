use std::fmt;
use std::sync::Arc;

use cenote_core::client::ServerEvent;
use cenote_core::log::LogSettings;
use cenote_core::pool::PoolOptions;
use cenote_core::uri::{ConnectionString, UriWarning};

use super::{ClientBuildError, ClientPlan};
use crate::builder::{BuildError, Builder, BuiltPool, FromUri};
use crate::event::PoolEvent;
use crate::leak::LeakReport;
use crate::log;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;

/// A client that a [`ClientBuilder`] makes: a shell's.
pub trait BuiltClient: Sized {
    /// The pools that it has.
    type Pool: BuiltPool<Connector: FromUri>;

    /// Makes the client: a pool for each host, and the first checks.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, and what the shell's own means fail with.
    fn build(plan: ClientPlan<Self::Pool>) -> Result<Self, ClientBuildError>;
}

/// Makes a `Client`, of whichever shell `C` is.
pub struct ClientBuilder<C: BuiltClient>(pub(super) ClientPlan<C::Pool>);

impl<C: BuiltClient> ClientBuilder<C> {
    /// For the hosts of a connection string, with its options.
    ///
    /// # Errors
    ///
    /// A connection string that is none, or files of it that cannot be read.
    pub fn from_uri(uri: &str) -> Result<Self, ClientBuildError> {
        let uri = ConnectionString::parse(uri).map_err(BuildError::from)?;
        uri.warnings().iter().for_each(log::connection_string);
        let connector = FromUri::from_uri(&uri).map_err(BuildError::from)?;
        Ok(Self(ClientPlan::new(uri, connector)))
    }

    /// What of the connection string is ignored, and why (OP-35, OP-36): the log says it, too.
    #[must_use]
    pub fn warnings(&self) -> &[UriWarning] {
        self.0.uri.warnings()
    }

    /// Takes these options for every pool, and no others: those of the connection string are forgotten
    /// (OP-52, PT-01, PT-02). Some have no name there, such as
    /// [`leak_detection_threshold`](PoolOptions::leak_detection_threshold). Whether there is a load balancer stays the
    /// connection string's to say.
    #[must_use]
    pub fn options(mut self, options: PoolOptions) -> Self {
        let load_balanced = self.0.uri.pool.load_balanced;
        self.0.uri.pool = options;
        self.0.uri.pool.load_balanced = load_balanced;
        self
    }

    /// Tells `subscriber` every event of every pool: [`Builder::on_event`]. The events of one pool
    /// come one at a time and in its order; those of two pools may come together.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.0.subscribers.push(Arc::new(subscriber));
        self
    }

    /// Makes the log messages of all pools like this: [`Builder::log_settings`].
    #[must_use]
    pub fn log_settings(mut self, settings: LogSettings) -> Self {
        self.0.log = Some(settings);
        self
    }

    /// Has `prepare` see the builder of each pool, for what is each pool's own: where it is recorded,
    /// for example. Its options and its [`on_failure`](Builder::on_failure) are the client's to set,
    /// and what is set here is forgotten. The last one that is set counts.
    #[must_use]
    pub fn prepare_pools(
        mut self,
        prepare: impl Fn(Builder<C::Pool>) -> Builder<C::Pool> + Send + Sync + 'static,
    ) -> Self {
        self.0.prepare = Some(Box::new(prepare));
        self
    }

    /// Tells `subscriber` what happens to servers: heartbeats, and changes of what is known. As with
    /// [`on_event`](Self::on_event), in the order of each server, never under a lock; it must not
    /// block. If it panics, nobody else notices.
    #[must_use]
    pub fn on_server_event(
        mut self,
        subscriber: impl Fn(&ServerEvent) + Send + Sync + 'static,
    ) -> Self {
        self.0.server_subscribers.push(Box::new(subscriber));
        self
    }

    /// Shows `overseer` every connection that is held for long: [`Builder::on_leak`].
    #[must_use]
    pub fn on_leak(mut self, overseer: impl Fn(&LeakReport) + Send + Sync + 'static) -> Self {
        self.0.overseer = Some(Arc::new(overseer));
        self
    }

    /// Measures all pools with OpenTelemetry (feature `metrics`): [`Builder::metrics`]. Each has its
    /// address for a name; behind the name that `metrics` has and a `/`, if it has one.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.0.metrics = Some(metrics);
        self
    }

    /// Makes the client: a pool for each host, and the first checks.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a folder for traces that cannot be made; no event loop, or
    /// no thread, to be had where the shell has them.
    ///
    /// # Panics
    ///
    /// Outside of the runtime that the shell needs, if it needs one. Pools and monitors live in that
    /// one.
    pub fn build(self) -> Result<C, ClientBuildError> {
        C::build(self.0)
    }
}

impl<C: BuiltClient> fmt::Debug for ClientBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("uri", &self.0.uri)
            .field("monitoring", &self.0.monitoring)
            .finish_non_exhaustive()
    }
}
