use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use cenote_core::address::ServerAddress;
use cenote_core::client::ClientSettings;
#[cfg(not(feature = "srv"))]
use cenote_core::client::SrvPolling;
use cenote_core::log::LogSettings;
use cenote_core::monitor::MonitorOptions;
use cenote_core::uri::ConnectionString;

use super::ClientBuildError;
#[cfg(feature = "srv")]
use super::srv::SrvSettings;
use super::told::SdamSubscribers;
use crate::builder::{BuildError, Builder, BuiltPool};
use crate::event::PoolEvent;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::pool::leak::LeakReport;
use crate::runtime::platform::environment;
use crate::trace::{ClientTraceOptions, DumpedBeside};

/// The settings of a [`ClientBuilder`](super::ClientBuilder), for
/// [`ClientInner::start`](super::ClientInner::start).
pub struct ClientPlan<P: BuiltPool> {
    pub(super) uri: ConnectionString,
    pub(crate) connector: P::Connector,
    #[cfg(feature = "srv")]
    pub(super) srv: SrvSettings,
    pub(super) monitoring: MonitorOptions,
    pub(super) sdam_subscribers: SdamSubscribers,
    pub(super) prepare_pool: Option<PreparePool<P>>,
    pub(super) subscribers: Vec<SharedCallback<PoolEvent>>,
    pub(super) event_queue: Option<usize>,
    pub(super) log: Option<LogSettings>,
    pub(super) leak_callback: Option<SharedCallback<LeakReport>>,
    #[cfg(feature = "metrics")]
    pub(super) metrics: Option<Metrics>,
    pub(super) tracing: ClientTraceOptions,
    #[cfg(unix)]
    pub(super) inspect: Option<PathBuf>,
}

type PreparePool<P> = Box<dyn Fn(Builder<P>) -> Builder<P> + Send + Sync>;

/// A callback of several pools.
type SharedCallback<T> = Arc<dyn Fn(&T) + Send + Sync>;

impl<P: BuiltPool> ClientPlan<P> {
    pub(super) fn new(uri: ConnectionString, connector: P::Connector) -> Self {
        Self {
            connector,
            #[cfg(feature = "srv")]
            srv: SrvSettings::default(),
            monitoring: MonitorOptions::new(&uri, environment().is_faas()),
            uri,
            sdam_subscribers: SdamSubscribers::default(),
            prepare_pool: None,
            subscribers: Vec::new(),
            event_queue: None,
            log: None,
            leak_callback: None,
            #[cfg(feature = "metrics")]
            metrics: None,
            tracing: ClientTraceOptions::default(),
            #[cfg(unix)]
            inspect: None,
        }
    }

    /// What the connection string says of the client itself.
    pub(super) fn settings(&self) -> Result<ClientSettings, ClientBuildError> {
        self.monitoring.validate()?;
        #[cfg(feature = "srv")]
        self.srv.rules.check(&self.uri)?;
        if let (true, Some(srv)) = (self.uri.hosts.is_empty(), &self.uri.srv) {
            return Err(ClientBuildError::Unresolved { host: srv.host().to_owned() });
        }
        Ok(ClientSettings::new(&self.uri))
    }

    /// SRV records are not followed without the feature.
    #[cfg(not(feature = "srv"))]
    pub(super) const fn polling(&self, _: cenote_core::pool::Instant) -> Option<SrvPolling> {
        None
    }
}

impl<P: BuiltPool<Connector: Clone>> ClientPlan<P> {
    /// The builder of the pool of one host, without [`on_failure`](Builder::on_failure). `beside` is dumped beside its
    /// traces.
    // OP-12, PS-05
    pub(super) fn pool(
        &self,
        address: &ServerAddress,
        beside: Weak<dyn DumpedBeside>,
    ) -> Result<Builder<P>, BuildError> {
        let builder = Builder::new(address.clone(), self.connector.clone());
        let builder =
            builder.replace_options(self.uri.pool_options()).timeout(self.uri.timeouts.operation);
        let mut tracing = self.tracing.of_one(address)?;
        tracing.beside = Some(beside);
        let builder = self.with_callbacks(builder.traced(tracing));
        let load_balanced = self.uri.pool.load_balanced;
        Ok(builder.map_options(|mut options| {
            options.load_balanced = load_balanced;
            options
        }))
    }

    fn with_callbacks(&self, mut builder: Builder<P>) -> Builder<P> {
        if let Some(prepare) = &self.prepare_pool {
            builder = prepare(builder);
        }
        for subscriber in &self.subscribers {
            let subscriber = Arc::clone(subscriber);
            builder = builder.on_event(move |event| subscriber(event));
        }
        if let Some(events) = self.event_queue {
            builder = builder.event_queue(events);
        }
        if let Some(settings) = self.log {
            builder = builder.log_settings(settings);
        }
        if let Some(callback) = &self.leak_callback {
            let callback = Arc::clone(callback);
            builder = builder.on_leak(move |report| callback(report));
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
