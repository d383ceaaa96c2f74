use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;

use cenote_core::client::{HeartbeatEvent, TopologyEvent};
use cenote_core::connect::{AccessToken, SaslMechanism, ServerApi};
use cenote_core::error::BoxError;
use cenote_core::log::LogSettings;
use cenote_core::pool::PoolOptions;
use cenote_core::uri::{ConnectionString, Credential, UriWarning};

use super::{ClientBuildError, ClientPlan};
use crate::builder::{BuildError, Builder, BuiltPool, FromUri};
use crate::event::PoolEvent;
use crate::log;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::oidc::TokenRequest;
use crate::pool::leak::LeakReport;

/// How many events of servers and the topology wait for the subscribers of a client at most, unless a builder
/// [sets](ClientBuilder::event_queue) another limit: 10,000. Each keeps a description or a reply of a server in memory,
/// a few kilobytes.
pub const DEFAULT_SERVER_EVENT_QUEUE: usize = 10_000;

/// A client that a [`ClientBuilder`] builds.
pub trait BuiltClient: Sized {
    /// The pools that [`ClientBuilder::prepare_pools`] prepares.
    type Pool: BuiltPool<Connector: FromUri>;

    /// Builds the client, most of it with [`ClientInner::start`](super::ClientInner::start).
    ///
    /// # Errors
    ///
    /// Those of [`ClientInner::start`](super::ClientInner::start) and of the runtime.
    fn build(plan: ClientPlan<Self::Pool>) -> Result<Self, ClientBuildError>;
}

/// Builds a [`Client`](super::Client).
///
/// ```no_run
/// use cenote_tokio::{Client, ClientBuilder};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client: Client = ClientBuilder::from_uri("mongodb://a.example.com,b.example.com")?
///     .on_topology_event(|event| println!("{event}"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub struct ClientBuilder<C: BuiltClient>(pub(crate) ClientPlan<C::Pool>);

impl<C: BuiltClient> ClientBuilder<C> {
    /// A builder for the hosts of a connection string, with its options.
    ///
    /// # Errors
    ///
    /// The connection string is invalid. What files it names, [`build`](Self::build) reads.
    // OP-10
    pub fn from_uri(uri: &str) -> Result<Self, ClientBuildError> {
        Self::from_connection_string(ConnectionString::parse(uri).map_err(BuildError::from)?)
    }

    /// As [`from_uri`](Self::from_uri), for a connection string that was parsed already, and
    /// [resolved](ConnectionString::resolve) by the caller if it is `mongodb+srv://`. Its SRV records are not looked
    /// up again then.
    ///
    /// # Errors
    ///
    /// An application name that is too long.
    pub fn from_connection_string(uri: ConnectionString) -> Result<Self, ClientBuildError> {
        uri.warnings().iter().for_each(log::connection_string);
        let connector = FromUri::from_uri(&uri).map_err(BuildError::from)?;
        Ok(Self(ClientPlan::new(uri, connector)))
    }

    /// The parts of the connection string that are ignored, and why. They are logged, too.
    // OP-35, OP-36.
    #[must_use]
    pub fn warnings(&self) -> &[UriWarning] {
        self.0.uri.warnings()
    }

    /// The connection string, with its hosts if they were looked up.
    #[must_use]
    pub const fn connection_string(&self) -> &ConnectionString {
        &self.0.uri
    }

    /// The options of every pool, as the connection string and the calls so far have set them.
    #[must_use]
    pub const fn options(&self) -> &PoolOptions {
        &self.0.uri.pool
    }

    /// Changes options of every pool, and keeps all others as the connection string has them. Some have no name
    /// there, such as [`leak_detection_threshold`](PoolOptions::leak_detection_threshold). `loadBalanced` stays
    /// as it is.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use cenote_shell::client::{BuiltClient, ClientBuildError, ClientBuilder};
    /// # fn example<C: BuiltClient>() -> Result<(), ClientBuildError> {
    /// let builder = ClientBuilder::<C>::from_uri("mongodb://localhost/?maxPoolSize=20")?
    ///     .map_options(|options| options.with_leak_detection_threshold(Duration::from_secs(60)));
    /// assert_eq!(builder.options().max_pool_size, Some(20));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn map_options(self, change: impl FnOnce(PoolOptions) -> PoolOptions) -> Self {
        let options = change(self.0.uri.pool.clone());
        self.replace_options(options)
    }

    /// Discards the options of the connection string, except `loadBalanced`, and takes these for every pool.
    /// What is not set in them takes its default. To change some options, use
    /// [`map_options`](Self::map_options).
    // OP-52, PT-01, PT-02.
    #[must_use]
    pub fn replace_options(mut self, options: PoolOptions) -> Self {
        let load_balanced = self.0.uri.pool.load_balanced;
        self.0.uri.pool = options;
        self.0.uri.pool.load_balanced = load_balanced;
        self
    }

    /// Calls `subscriber` with every event of every pool: [`Builder::on_event`]. The events of one pool come
    /// one at a time and in its order; those of two pools may come at the same time.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.0.subscribers.push(Arc::new(subscriber));
        self
    }

    /// Declares the version of the server's API, by pools and monitors: [`Builder::server_api`].
    #[must_use]
    pub fn server_api(mut self, api: ServerApi) -> Self {
        self.0.connector = self.0.connector.with_server_api(api);
        self
    }

    /// Authenticates by MONGODB-OIDC, with the access tokens that `callback` returns, which all pools share:
    /// [`Builder::oidc_callback`]. Monitors do not authenticate.
    ///
    /// ```no_run
    /// use std::fs;
    ///
    /// use cenote_tokio::{AccessToken, Client};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder("mongodb://db.example.com/?tls=true&authMechanism=MONGODB-OIDC")?
    ///     .oidc_callback(|request| {
    ///         println!("a token for {:?} within {:?}", request.username, request.timeout);
    ///         let token = fs::read_to_string("/var/run/secrets/tokens/mongodb")?;
    ///         Ok(AccessToken::new(token.trim()))
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn oidc_callback(
        mut self,
        callback: impl Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.0.connector = self.0.connector.with_token_callback(Arc::new(callback));
        self
    }

    /// Authenticates by MONGODB-AWS, with the keys that `provider` returns: [`Builder::aws_credential_provider`]. Monitors
    /// do not authenticate.
    #[must_use]
    pub fn aws_credential_provider(
        mut self,
        provider: impl Fn() -> Result<Credential, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.0.connector = self.0.connector.with_aws_credential_provider(Arc::new(provider));
        self
    }

    /// Authenticates by a mechanism of the application's own: [`Builder::sasl_mechanism`]. Monitors do not
    /// authenticate.
    #[must_use]
    pub fn sasl_mechanism(mut self, mechanism: impl SaslMechanism) -> Self {
        self.0.connector = self.0.connector.with_sasl_mechanism(Arc::new(mechanism));
        self
    }

    /// Sets how many events of each pool may wait for the subscribers: [`Builder::event_queue`]; and how many of all
    /// servers and the topology together, [`DEFAULT_SERVER_EVENT_QUEUE`] unless it is set. What is dropped of these,
    /// [`Client::dropped_events`](super::Client::dropped_events) counts.
    #[must_use]
    pub const fn event_queue(mut self, events: usize) -> Self {
        self.0.event_queue = Some(events);
        self
    }

    /// Sets how the log messages of all pools are formatted: [`Builder::log_settings`].
    #[must_use]
    pub fn log_settings(mut self, settings: LogSettings) -> Self {
        self.0.log = Some(settings);
        self
    }

    /// Passes the builder of each pool to `prepare`, for settings that differ between pools, such as the file
    /// of a recording, or [options](Builder::map_options). The client itself sets `loadBalanced` and
    /// [`on_failure`](Builder::on_failure), and overwrites what is set here. Monitors have the client's connector: choose TLS
    /// by [`crypto_provider`](Self::crypto_provider) and [`tls_config`](Self::tls_config) of the client. The last call counts.
    #[must_use]
    pub fn prepare_pools(
        mut self,
        prepare: impl Fn(Builder<C::Pool>) -> Builder<C::Pool> + Send + Sync + 'static,
    ) -> Self {
        self.0.prepare_pool = Some(Box::new(prepare));
        self
    }

    /// Calls `subscriber` with every heartbeat of the monitors: its start, and its success or failure. They are in one
    /// order with the [events of the topology](Self::on_topology_event): what a check finds comes after its success, and
    /// before the start of the next one. Each start has one end, unless the server is removed or the client closed.
    ///
    /// One call at a time is made for the whole client, never under a lock, by a thread that uses the client or checks
    /// its servers. Meanwhile callers are served and servers are checked, added and removed, unless that needs the
    /// same thread; events [wait](Self::event_queue) in memory. The start of a check is told before its socket is opened,
    /// unless another event is being told just then.
    ///
    /// It may call the client, and close it, but must not block until the client does something. A panic in it is
    /// contained.
    // SM-12.
    #[must_use]
    pub fn on_heartbeat(
        mut self,
        subscriber: impl Fn(&HeartbeatEvent) + Send + Sync + 'static,
    ) -> Self {
        self.0.sdam_subscribers.heartbeats.push(Box::new(subscriber));
        self
    }

    /// Calls `subscriber` with the
    /// [events of SDAM](https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-discovery-and-monitoring-logging-and-monitoring.md#events-api)
    /// that are no heartbeats: the topology opens and closes, servers are found, described and removed, the description
    /// of the topology changes. The first one is `TopologyOpening`, told before the client is built, and the last one is
    /// `TopologyClosed`; no heartbeat is told after it. It is called as [`on_heartbeat`](Self::on_heartbeat)'s subscriber.
    ///
    /// ```no_run
    /// use cenote_core::topology::Event;
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder("mongodb://a.example.com/?replicaSet=rs0")?
    ///     .on_topology_event(|told| {
    ///         if let Event::TopologyDescriptionChanged { new, .. } = &told.event {
    ///             println!("writable: {}", new.has_writable_server());
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_topology_event(
        mut self,
        subscriber: impl Fn(&TopologyEvent) + Send + Sync + 'static,
    ) -> Self {
        self.0.sdam_subscribers.topology.push(Box::new(subscriber));
        self
    }

    /// Calls `callback` for every connection that is checked out for the
    /// [`leak_detection_threshold`](PoolOptions::leak_detection_threshold), 60 seconds unless it is set:
    /// [`Builder::on_leak`].
    #[must_use]
    pub fn on_leak(mut self, callback: impl Fn(&LeakReport) + Send + Sync + 'static) -> Self {
        self.0.leak_callback = Some(Arc::new(callback));
        self
    }

    /// Lets `cenote top` look at all pools while the process runs, through one Unix domain socket at `path`:
    /// [`Builder::inspect`].
    ///
    /// ```no_run
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder("mongodb://a.example.com,b.example.com")?
    ///     .inspect("/run/user/1000/orders.sock")
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(unix)]
    #[must_use]
    pub fn inspect(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.inspect = Some(path.into());
        self
    }

    /// Measures all pools with OpenTelemetry (feature `metrics`): [`Builder::metrics`]. Each is named by its
    /// address; if `metrics` has a name, by that name, a `/` and the address.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.0.metrics = Some(metrics);
        self
    }

    /// Builds the client: a pool for each host of the connection string, and the monitors, which begin to check the servers.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, a file of the connection string that cannot be read, a folder for traces that
    /// cannot be created, or an event loop or its thread that cannot be started, on runtimes that start their own.
    ///
    /// # Panics
    ///
    /// Outside of the runtime, if it is one that has to be there. Pools and monitors live on it.
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
