use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use cenote_core::client::{ClientSettings, ServerEvent};
use cenote_core::monitor::{InvalidMonitorOptions, MonitorOptions};
use cenote_core::pool::PoolOptions;
use cenote_core::uri::{ConnectionString, UriWarning};
use cenote_shell::trace::ClientTraceOptions;
use cenote_shell::watch::{ServerSubscriber, ServerSubscribers};
use thiserror::Error;

use super::news::News;
use super::server::{Server, Watching};
use super::watch::Watch;
use super::{Client, Inner};
use crate::builder::{BuildError, Builder};
use crate::connection::Mongo;
use crate::event::PoolEvent;
use crate::event_loop::EventLoop;
use crate::failure::Failure;
use crate::held::HeldTooLong;
use crate::pool::Pool;
use crate::surroundings::environment;
use crate::thread::LoopThread;
use crate::{log, thread};

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
    prepare: Option<Prepare>,
    subscribers: Vec<Told<PoolEvent>>,
    overseer: Option<Told<HeldTooLong>>,
    #[cfg(feature = "metrics")]
    metrics: Option<crate::metrics::Metrics>,
}

type Prepare = Box<dyn Fn(Builder<Mongo>) -> Builder<Mongo> + Send + Sync>;

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

    /// Takes these options for every pool, and no others: those of the connection string are forgotten
    /// (PT-01, PT-02). Some have no name there, such as
    /// [`held_too_long`](PoolOptions::held_too_long). Whether there is a load balancer stays the
    /// connection string's to say.
    #[must_use]
    pub fn options(mut self, options: PoolOptions) -> Self {
        let load_balanced = self.uri.pool.load_balanced;
        self.uri.pool = options;
        self.uri.pool.load_balanced = load_balanced;
        self
    }

    /// Tells `subscriber` every event of every pool: [`Builder::on_event`]. The events of one pool
    /// come one at a time and in its order; those of two pools may come together.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.audience.subscribers.push(Arc::new(subscriber));
        self
    }

    /// Has `prepare` see the builder of each pool, for what is each pool's own: where it is recorded,
    /// for example. Its options and its [`on_failure`](Builder::on_failure) are the client's to set,
    /// and what is set here is forgotten. The last one that is set counts.
    #[must_use]
    pub fn prepare_pools(
        mut self,
        prepare: impl Fn(Builder<Mongo>) -> Builder<Mongo> + Send + Sync + 'static,
    ) -> Self {
        self.audience.prepare = Some(Box::new(prepare));
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

    /// Makes the client: a pool for each host, the thread that turns the event loop of all of them,
    /// and the first checks.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; no event loop, or no thread, to be had.
    pub fn build(self) -> Result<Client, ClientBuildError> {
        self.monitoring.validate()?;
        let (event_loop, poll) = thread::event_loop().map_err(BuildError::from)?;
        let settings = ClientSettings::new(&self.uri);
        let news = Arc::new(News::default());
        let connector = self.connector.clone();
        // What was begun for others goes with the loop.
        let servers = self.servers(&settings, &news, &event_loop);
        let servers = servers.inspect_err(|_| event_loop.end())?;
        let (is_closed, loop_thread) = (AtomicBool::new(false), LoopThread::default());
        let turned = servers.clone();
        let inner = Inner { servers, settings, connector, news, is_closed, thread: loop_thread };
        let started = inner.thread.start(event_loop, poll, move |event_loop| {
            turned.iter().for_each(|server| server.end_loop(event_loop));
        });
        // If there is no thread, all goes as it came.
        started.map_err(BuildError::from)?;
        Ok(Client { inner: Arc::new(inner) })
    }

    fn servers(
        self,
        settings: &ClientSettings,
        news: &Arc<News>,
        event_loop: &EventLoop,
    ) -> Result<Vec<Arc<Server>>, ClientBuildError> {
        let subscribers = Arc::new(ServerSubscribers::new(self.server_subscribers));
        let establish = self.connector.monitor_options();
        let origin = Instant::now();
        let mut servers = Vec::with_capacity(settings.hosts().len());
        for address in settings.hosts() {
            let watch = Arc::new(OnceLock::new());
            let mut builder = Builder::new(address.clone(), self.connector.clone());
            builder.tracing = self.tracing.of_one(address).map_err(BuildError::from)?;
            let builder = heard(builder, &self.audience, Arc::clone(&watch));
            let builder = builder.options(self.uri.pool.clone());
            let pool = Pool::new(builder.build_on(&event_loop.share())?);
            let watching = if settings.is_watched {
                let started = Watch::start(
                    (self.connector.clone(), pool.clone()),
                    (self.monitoring.clone(), Arc::clone(&establish)),
                    (Arc::clone(&subscribers), Arc::clone(news)),
                    (event_loop.share(), origin),
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
        Ok(servers)
    }
}

/// Everybody's subscriptions, and the monitor's.
fn heard(
    mut builder: Builder<Mongo>,
    audience: &Audience,
    watch: Arc<OnceLock<Weak<Watch>>>,
) -> Builder<Mongo> {
    if let Some(prepare) = &audience.prepare {
        builder = prepare(builder);
    }
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
    builder.on_failure(move |failure| failed(failure, watch.get()))
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

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("uri", &self.uri)
            .field("monitoring", &self.monitoring)
            .finish_non_exhaustive()
    }
}
