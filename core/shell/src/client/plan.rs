use std::fmt;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::ClientSettings;
use cenote_core::log::LogSettings;
use cenote_core::monitor::MonitorOptions;
use cenote_core::uri::ConnectionString;

use super::ClientBuildError;
use crate::builder::{BuildError, Builder, BuiltPool};
use crate::event::PoolEvent;
use crate::leak::LeakReport;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::monitor::{ServerSubscriber, ServerSubscribers};
use crate::platform::environment;
use crate::trace::ClientTraceOptions;

/// What a [`ClientBuilder`](super::ClientBuilder) was told, for the shell to make a client of.
pub struct ClientPlan<P: BuiltPool> {
    /// What makes the connections of all pools and monitors.
    pub connector: P::Connector,
    /// How all servers are watched.
    pub monitoring: MonitorOptions,
    pub(super) uri: ConnectionString,
    pub(super) server_subscribers: Vec<ServerSubscriber>,
    pub(super) prepare: Option<Prepare<P>>,
    pub(super) subscribers: Vec<Told<PoolEvent>>,
    pub(super) log: Option<LogSettings>,
    pub(super) overseer: Option<Told<LeakReport>>,
    #[cfg(feature = "metrics")]
    pub(super) metrics: Option<Metrics>,
    pub(super) tracing: ClientTraceOptions,
}

type Prepare<P> = Box<dyn Fn(Builder<P>) -> Builder<P> + Send + Sync>;

/// One who is told by several pools.
type Told<T> = Arc<dyn Fn(&T) + Send + Sync>;

impl<P: BuiltPool> ClientPlan<P> {
    pub(super) fn new(uri: ConnectionString, connector: P::Connector) -> Self {
        Self {
            connector,
            monitoring: MonitorOptions::new(&uri, environment().is_faas()),
            uri,
            server_subscribers: Vec::new(),
            prepare: None,
            subscribers: Vec::new(),
            log: None,
            overseer: None,
            #[cfg(feature = "metrics")]
            metrics: None,
            tracing: ClientTraceOptions::default(),
        }
    }

    /// What becomes of the client's own part of the connection string.
    ///
    /// # Errors
    ///
    /// When the servers cannot be watched as it says.
    pub fn settings(&self) -> Result<ClientSettings, ClientBuildError> {
        self.monitoring.validate()?;
        Ok(ClientSettings::new(&self.uri))
    }

    /// Who is told of servers, once for all of them.
    pub fn take_server_subscribers(&mut self) -> Arc<ServerSubscribers> {
        Arc::new(ServerSubscribers::new(std::mem::take(&mut self.server_subscribers)))
    }
}

impl<P: BuiltPool<Connector: Clone>> ClientPlan<P> {
    /// The builder of the pool for one host. All that is missing is
    /// [`on_failure`](Builder::on_failure).
    ///
    /// # Errors
    ///
    /// A folder for traces that cannot be made.
    pub fn pool(&self, address: &ServerAddress) -> Result<Builder<P>, BuildError> {
        let builder = Builder::new(address.clone(), self.connector.clone());
        let builder = builder.traced(self.tracing.of_one(address)?);
        Ok(self.heard(builder).options(self.uri.pool.clone()))
    }

    /// Everybody's subscriptions.
    fn heard(&self, mut builder: Builder<P>) -> Builder<P> {
        if let Some(prepare) = &self.prepare {
            builder = prepare(builder);
        }
        for subscriber in &self.subscribers {
            let subscriber = Arc::clone(subscriber);
            builder = builder.on_event(move |event| subscriber(event));
        }
        if let Some(settings) = self.log {
            builder = builder.log_settings(settings);
        }
        if let Some(overseer) = &self.overseer {
            let overseer = Arc::clone(overseer);
            builder = builder.on_leak(move |report| overseer(report));
        }
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            let metrics = metrics.of_one(builder.address());
            builder = builder.metrics(metrics);
        }
        builder
    }
}

impl<P: BuiltPool> fmt::Debug for ClientPlan<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientPlan")
            .field("uri", &self.uri)
            .field("monitoring", &self.monitoring)
            .finish_non_exhaustive()
    }
}
