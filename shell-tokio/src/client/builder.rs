use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::monitor::{InvalidMonitorOptions, MonitorOptions};
use cenote_core::uri::{ConnectionString, UriWarning};
use cenote_shell::trace::ClientTraceOptions;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::event::{ServerEvent, ServerSubscriber};
use super::server::{Server, Watching};
use super::watch::Watch;
use super::{Client, Inner, Settings};
use crate::builder::{BuildError, Builder};
use crate::connection::Mongo;
use crate::event::PoolEvent;
use crate::failure::Failure;
use crate::held::HeldTooLong;
use crate::log;
use crate::pool::Pool;
use crate::surroundings::environment;

/// `serverSelectionTimeoutMS` where the connection string has none (OP-21).
const SELECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes a [`Client`].
pub struct ClientBuilder {
    uri: ConnectionString,
    connector: Mongo,
    monitoring: MonitorOptions,
    server_subscribers: Vec<ServerSubscriber>,
    audience: Audience,
    pub(super) tracing: ClientTraceOptions,
}

/// Who is told of all pools.
#[derive(Default)]
struct Audience {
    subscribers: Vec<Told<PoolEvent>>,
    overseer: Option<Told<HeldTooLong>>,
    #[cfg(feature = "metrics")]
    metrics: Option<crate::metrics::Metrics>,
}

/// One who is told by several pools.
type Told<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// Why there is no client.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientBuildError {
    /// The connection string is none, or there can be no pool.
    #[error(transparent)]
    Pool(#[from] BuildError),
    /// The servers cannot be watched like that.
    #[error(transparent)]
    Monitoring(#[from] InvalidMonitorOptions),
}

impl ClientBuilder {
    pub(super) fn from_uri(uri: &str) -> Result<Self, ClientBuildError> {
        let uri = ConnectionString::parse(uri).map_err(BuildError::from)?;
        uri.warnings().iter().for_each(log::connection_string);
        let connector = Mongo::new(&uri).map_err(BuildError::from)?;
        Ok(Self {
            monitoring: MonitorOptions::new(&uri, environment().is_faas()),
            uri,
            connector,
            server_subscribers: Vec::new(),
            audience: Audience::default(),
            tracing: ClientTraceOptions::default(),
        })
    }

    /// What of the connection string is ignored, and why (OP-35, OP-36): the log says it, too.
    #[must_use]
    pub fn warnings(&self) -> &[UriWarning] {
        self.uri.warnings()
    }

    /// Tells `subscriber` every event of every pool: [`Builder::on_event`]. The events of one pool
    /// come one at a time and in its order; those of two pools may come together.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.audience.subscribers.push(Arc::new(subscriber));
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
        self.server_subscribers.push(Box::new(subscriber));
        self
    }

    /// Shows `overseer` every connection that is held for long: [`Builder::on_held_too_long`].
    #[must_use]
    pub fn on_held_too_long(
        mut self,
        overseer: impl Fn(&HeldTooLong) + Send + Sync + 'static,
    ) -> Self {
        self.audience.overseer = Some(Arc::new(overseer));
        self
    }

    /// Measures all pools with OpenTelemetry (feature `metrics`): [`Builder::metrics`]. Each has its
    /// address for a name; behind the name that `metrics` has and a `/`, if it has one.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(mut self, metrics: crate::metrics::Metrics) -> Self {
        self.audience.metrics = Some(metrics);
        self
    }

    /// Makes the client: a pool for each host, and the first checks.
    ///
    /// # Errors
    ///
    /// Options that contradict each other.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime. Pools and monitors live in that one.
    pub fn build(self) -> Result<Client, ClientBuildError> {
        let is_watched = self.uri.topology.load_balanced != Some(true);
        self.monitoring.validate()?;
        let hosts = distinct(&self.uri.hosts);
        let subscribers = Arc::new(self.server_subscribers);
        let establish = Arc::new(self.connector.establish_options().for_monitor());
        let origin = Instant::now();
        let news = Arc::new(Notify::new());
        let mut servers = Vec::new();
        for address in hosts {
            let watch = Arc::new(OnceLock::new());
            let mut builder = Builder::new(address, self.connector.clone());
            builder.tracing = self.tracing.of_one(builder.address()).map_err(BuildError::from)?;
            let pool =
                pool(builder.options(self.uri.pool.clone()), &self.audience, Arc::clone(&watch))?;
            let watching = if is_watched {
                let started = Watch::start(
                    (self.connector.clone(), pool.clone()),
                    (self.monitoring.clone(), Arc::clone(&establish)),
                    (Arc::clone(&subscribers), Arc::clone(&news)),
                    origin,
                )?;
                let _ = watch.set(Arc::downgrade(&started));
                started.begin();
                Watching::Monitor(started)
            } else {
                pool.ready();
                Watching::LoadBalancer
            };
            servers.push(Arc::new(Server { pool, watching }));
        }
        let settings = Settings {
            selection_timeout: self
                .uri
                .topology
                .server_selection_timeout
                .unwrap_or(SELECTION_TIMEOUT),
            operation_timeout: self.uri.timeouts.operation.filter(|timeout| !timeout.is_zero()),
        };
        let inner = Inner { servers, settings, news, is_closed: AtomicBool::new(false) };
        Ok(Client { inner: Arc::new(inner) })
    }
}

/// Everybody's subscriptions, and the monitor's.
fn pool(
    mut builder: Builder<Mongo>,
    audience: &Audience,
    watch: Arc<OnceLock<Weak<Watch>>>,
) -> Result<Pool, BuildError> {
    for subscriber in &audience.subscribers {
        let subscriber = Arc::clone(subscriber);
        builder = builder.on_event(move |event| subscriber(event));
    }
    if let Some(overseer) = &audience.overseer {
        let overseer = Arc::clone(overseer);
        builder = builder.on_held_too_long(move |report| overseer(report));
    }
    #[cfg(feature = "metrics")]
    if let Some(metrics) = &audience.metrics {
        let metrics = metrics.of_one(builder.address());
        builder = builder.metrics(metrics);
    }
    builder.on_failure(move |failure| failed(failure, watch.get())).build()
}

/// SDAM first: before the pool and the caller hear of it (ES-05).
fn failed(failure: &Failure<'_, Mongo>, watch: Option<&Weak<Watch>>) {
    match watch.and_then(Weak::upgrade) {
        Some(watch) => watch.application_failed(failure),
        // Behind a load balancer nobody watches, and nothing is Unknown (LB-22).
        None => {
            let verdict = cenote_core::sdam::verdict(&failure.context(None), failure.error());
            failure.clear(verdict.pool);
        }
    }
}

/// SD-07: one pool for each address, in the order of the text.
fn distinct(hosts: &[ServerAddress]) -> Vec<ServerAddress> {
    let mut distinct: Vec<ServerAddress> = Vec::new();
    for host in hosts {
        if !distinct.contains(host) {
            distinct.push(host.clone());
        }
    }
    distinct
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("uri", &self.uri)
            .field("monitoring", &self.monitoring)
            .finish_non_exhaustive()
    }
}
