//! The builder of a pool.

mod error;
mod from_uri;
mod measured;
mod plan;
#[cfg(feature = "tls")]
mod tls;
mod traces;

use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::connect::{AccessToken, SaslMechanism, ServerApi};
use cenote_core::error::BoxError;
use cenote_core::log::LogSettings;
use cenote_core::pool::PoolOptions;
use cenote_core::uri::{ConnectionString, Credential, UriError};

use crate::event::PoolEvent;
use crate::failure::Failure;
use crate::log;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::oidc::TokenRequest;
#[cfg(doc)]
use crate::pool::leak::DEFAULT_LEAK_DETECTION_THRESHOLD;
use crate::pool::leak::LeakReport;
#[cfg(feature = "tls")]
use crate::trace::TraceOptions;

pub use self::error::BuildError;
pub use self::from_uri::FromUri;
pub(crate) use self::measured::Measured;
pub use self::plan::{Begun, PoolPlan};

/// A pool that a [`Builder`] builds.
pub trait BuiltPool: Sized {
    /// Makes its connections.
    type Connector;

    /// The sending half of a channel for events.
    type EventSender: Send + Sync + 'static;

    /// Makes the pool.
    ///
    /// # Errors
    ///
    /// Those of [`PoolPlan::begin`], and of the shell.
    fn build(plan: PoolPlan<Self::Connector>) -> Result<Self, BuildError>;

    /// Sends an event. Does nothing if the receiver is gone.
    fn send(sender: &Self::EventSender, event: PoolEvent);
}

/// How many events wait for the subscribers of a pool at most, unless a builder
/// [sets](Builder::event_queue) another limit: 1,000,000, which take about 40 MB.
pub const DEFAULT_EVENT_QUEUE: usize = 1_000_000;

/// Builds a pool of type `P`.
///
/// ```no_run
/// use cenote_tokio::{Builder, Pool};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pool: Pool = Builder::from_uri("mongodb://db.example.com/?maxPoolSize=20")?
///     .on_event(|event| println!("{event}"))
///     .on_leak(|leak| eprintln!("{leak}"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub struct Builder<P: BuiltPool>(PoolPlan<P::Connector>);

impl<P: BuiltPool<Connector: FromUri>> Builder<P> {
    /// A pool for the first host of a connection string. Unknown options, and options with invalid values, are
    /// ignored with a warning through `tracing`.
    ///
    /// # Errors
    ///
    /// The connection string is invalid. What files it names, [`build`](Self::build) reads.
    pub fn from_uri(uri: &str) -> Result<Self, BuildError> {
        let uri = ConnectionString::parse(uri)?;
        uri.warnings().iter().for_each(log::connection_string);
        // Only a client looks names up.
        let address = uri.hosts.first().cloned().ok_or(UriError::Srv)?;
        let builder = Self::new(address, P::Connector::from_uri(&uri)?);
        Ok(builder.replace_options(uri.pool_options()).timeout(uri.timeouts.operation))
    }

    /// Declares version 1 of the server's API
    /// ([Stable API](https://github.com/mongodb/specifications/blob/master/source/versioned-api/versioned-api.md))
    /// on hello and on every command: `apiVersion`, `apiStrict`, `apiDeprecationErrors`. None is declared by
    /// default. A command that has an `apiVersion` already, and messages that a driver encodes itself, are sent as
    /// they are.
    #[must_use]
    pub fn server_api(mut self, api: ServerApi) -> Self {
        self.0.connector = self.0.connector.with_server_api(api);
        self
    }

    /// Authenticates by [MONGODB-OIDC](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#mongodb-oidc),
    /// with the access tokens that `callback` returns. The connection string has `authMechanism=MONGODB-OIDC`, perhaps a
    /// user name, and no `ENVIRONMENT`, which would take the place of the callback.
    ///
    /// The last token is kept for all connections: hello carries it
    /// ([speculative authentication](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#speculative-authentication)).
    /// The callback is called when there is none, when the server refuses it with code 18, and when the server asks an
    /// open connection to authenticate again (code 391), which is then done once, before the command is sent again.
    ///
    /// The callback may block, for as long as its [timeout](TokenRequest::timeout) says; a connection does not wait
    /// longer. On tokio and smol it runs on a thread for blocking work, on mio on a thread of its own, and for a pool in
    /// an application's own loop, which has no threads, in that loop. To authenticate again on mio, it runs on the thread
    /// that uses the connection. An asynchronous one is driven by the runtime's `block_on`. It is called one at a
    /// time, 100 ms after the last call at least, and must not use the pool. A panic in it is contained. Its error, which
    /// must not hold secrets, is the source of the connection's.
    ///
    /// ```no_run
    /// use std::fs;
    ///
    /// use cenote_shell::builder::{BuildError, Builder, BuiltPool, FromUri};
    /// use cenote_shell::cenote_core::connect::AccessToken;
    ///
    /// # fn example<P: BuiltPool<Connector: FromUri>>() -> Result<P, BuildError> {
    /// let uri = "mongodb://db.example.com/?tls=true&authMechanism=MONGODB-OIDC";
    /// Builder::<P>::from_uri(uri)?
    ///     .oidc_callback(|_request| {
    ///         let token = fs::read_to_string("/var/run/secrets/tokens/mongodb")?;
    ///         Ok(AccessToken::new(token.trim()))
    ///     })
    ///     .build()
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

    /// Authenticates by [MONGODB-AWS](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#mongodb-aws)
    /// with the keys that `provider` returns, such as those of a container, an instance or a web identity by an SDK of AWS.
    /// The connection string has `authMechanism=MONGODB-AWS`, and no keys. Without a provider they are those of the
    /// environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, if it is set, `AWS_SESSION_TOKEN`.
    ///
    /// The provider is called for each new connection, and keeps keys that stay valid itself. It may block, for a minute or
    /// what `timeoutMS` leaves of it, on the thread that [`oidc_callback`](Self::oidc_callback) names, and must not
    /// use the pool. A panic in it is contained. Its error, which must not hold secrets, is the source of the
    /// connection's.
    ///
    /// ```no_run
    /// use std::fs;
    ///
    /// use cenote_shell::builder::{BuildError, Builder, BuiltPool, FromUri};
    /// use cenote_shell::cenote_core::uri::Credential;
    ///
    /// # fn example<P: BuiltPool<Connector: FromUri>>() -> Result<P, BuildError> {
    /// let uri = "mongodb://db.example.com/?tls=true&authMechanism=MONGODB-AWS";
    /// Builder::<P>::from_uri(uri)?
    ///     .aws_credential_provider(|| {
    ///         let access = fs::read_to_string("/run/secrets/aws/access_key")?;
    ///         let secret = fs::read_to_string("/run/secrets/aws/secret_key")?;
    ///         Ok(Credential::of_aws_keys(&access, secret.into(), None))
    ///     })
    ///     .build()
    /// # }
    /// ```
    #[must_use]
    pub fn aws_credential_provider(
        mut self,
        provider: impl Fn() -> Result<Credential, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.0.connector = self.0.connector.with_aws_credential_provider(Arc::new(provider));
        self
    }

    /// Authenticates by a mechanism of the application's own, such as GSSAPI, instead of the built-in ones. The
    /// connection string names it with `authMechanism`, or has no credential. Its functions run on the runtime and must
    /// not block.
    ///
    /// ```
    /// use cenote_shell::builder::{Builder, BuiltPool, FromUri, BuildError};
    /// use cenote_shell::cenote_core::connect::{SaslConversation, SaslMechanism};
    /// use cenote_shell::cenote_core::error::BoxError;
    ///
    /// struct Kerberos;
    ///
    /// impl SaslMechanism for Kerberos {
    ///     fn name(&self) -> &'static str {
    ///         "GSSAPI"
    ///     }
    ///
    ///     fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
    ///         Err("run kinit first".into())
    ///     }
    /// }
    ///
    /// # fn example<P: BuiltPool<Connector: FromUri>>() -> Result<P, BuildError> {
    /// let uri = "mongodb://app%40EXAMPLE.COM@db.example.com/?authMechanism=GSSAPI";
    /// Builder::<P>::from_uri(uri)?.sasl_mechanism(Kerberos).build()
    /// # }
    /// ```
    #[must_use]
    pub fn sasl_mechanism(mut self, mechanism: impl SaslMechanism) -> Self {
        self.0.connector = self.0.connector.with_sasl_mechanism(Arc::new(mechanism));
        self
    }
}

impl<P: BuiltPool> Builder<P> {
    /// A pool of connections that `connector` makes.
    #[must_use]
    pub fn new(address: ServerAddress, connector: P::Connector) -> Self {
        Self(PoolPlan::new(address, connector))
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.0.address
    }

    /// The options of the pool, as the connection string and the calls so far have set them.
    // OP-52
    #[must_use]
    pub const fn options(&self) -> &PoolOptions {
        &self.0.options
    }

    /// Changes options of the pool, and keeps all others as the connection string has them.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use cenote_shell::builder::{Builder, BuildError, BuiltPool, FromUri};
    /// # fn example<P: BuiltPool<Connector: FromUri>>() -> Result<(), BuildError> {
    /// let builder = Builder::<P>::from_uri("mongodb://localhost/?maxPoolSize=20")?
    ///     .map_options(|options| options.with_max_lifetime(Duration::from_secs(600)));
    /// assert_eq!(builder.options().max_pool_size, Some(20));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn map_options(mut self, change: impl FnOnce(PoolOptions) -> PoolOptions) -> Self {
        self.0.options = change(self.0.options);
        self
    }

    /// Discards the options of the connection string, and takes these. What is not set in them takes its
    /// default. To change some options, use [`map_options`](Self::map_options).
    #[must_use]
    pub fn replace_options(mut self, options: PoolOptions) -> Self {
        self.0.options = options;
        self
    }

    /// `timeoutMS`: how long check-outs without a deadline of their own may take, a connection that is made for them
    /// included; `waitQueueTimeoutMS` does not apply to them then. `None`, the default, and zero set no limit; a
    /// connection string sets it. The timeouts of commands are those of the connector.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.0.timeout = timeout.into();
        self
    }

    /// Calls `subscriber` with every event, in the machine's order and never under a lock. It runs on a thread
    /// that uses the pool or opens its connections, one call at a time; meanwhile other callers are served, and
    /// sockets opened, interrupted and closed, unless that needs the same thread. The thread that has begun to
    /// tell events tells up to 256 for other threads, possibly in a guard's drop, and leaves the rest to a task of the
    /// runtime: a slow subscriber occupies these, and events [wait](Self::event_queue) for it in memory. A subscriber that
    /// takes longer than microseconds should send the events [to a channel](Self::event_channel).
    ///
    /// It may use the pool, but must not block until the pool does something: a check-out that is not served at
    /// once would wait for what comes after this call. A panic in it is contained.
    #[must_use]
    pub fn on_event(mut self, subscriber: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.0.subscribers.push(Box::new(subscriber));
        self
    }

    /// Sets how many events may wait until the subscribers return; 1 at least, [`DEFAULT_EVENT_QUEUE`] unless it is
    /// set. An event for which there is no room is dropped: no subscriber, no log and no metric gets it. The pool
    /// [counts](crate::pool::Pool::dropped_events) what it drops, and logs a warning when it drops the first.
    #[must_use]
    pub const fn event_queue(mut self, events: usize) -> Self {
        self.0.event_queue = if events == 0 { 1 } else { events };
        self
    }

    /// Sends every event into a channel, until its receiver is dropped.
    ///
    /// ```no_run
    /// use cenote_tokio::Pool;
    /// use tokio::sync::mpsc::unbounded_channel;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let (sender, mut events) = unbounded_channel();
    /// let pool = Pool::builder("mongodb://db.example.com")?.event_channel(sender).build()?;
    /// tokio::spawn(async move {
    ///     while let Some(event) = events.recv().await {
    ///         println!("{event}");
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn event_channel(self, sender: P::EventSender) -> Self {
        self.on_event(move |event| P::send(&sender, event.clone()))
    }

    /// Sets how log messages are made. Without it the environment variables count, read once for the whole
    /// process; how they can override the program, [`LogSettings`] says. Which messages are logged, and where,
    /// is decided by the application's `tracing` subscriber.
    // LG-54
    #[must_use]
    pub fn log_settings(mut self, settings: LogSettings) -> Self {
        self.0.log = Some(settings);
        self
    }

    /// Calls `handler` with every connection that could not be established, and every error of one that is in
    /// use, before the pool and the caller learn of it: so that SDAM can mark the server as unknown and
    /// [clear the pool](Failure::clear) first, as the specification orders. Not reported is what says nothing
    /// about the server: that the pool aborted or interrupted a connection, or that a caller stopped in the middle of an
    /// exchange.
    ///
    /// It runs on the thread where the failure was noticed, possibly several calls at a time, never under a lock, and
    /// must not block. It may use the pool. A panic in it is contained. The last handler that is set counts.
    #[must_use]
    pub fn on_failure(mut self, handler: impl Fn(&Failure<'_>) + Send + Sync + 'static) -> Self {
        self.0.failure_handler = Some(Box::new(handler));
        self
    }

    /// Calls `callback` with every connection that is checked out for the
    /// [`leak_detection_threshold`](PoolOptions::leak_detection_threshold), once for each check-out, with the place
    /// in the application that checked it out. A warning through `tracing` says the same. Where that option is
    /// not set, the callback sets it to [`DEFAULT_LEAK_DETECTION_THRESHOLD`]; 0 switches leak detection off.
    ///
    /// It runs as subscribers do, never under a lock. The last callback that is set counts.
    ///
    /// ```no_run
    /// use cenote_tokio::Pool;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::builder("mongodb://db.example.com")?
    ///     .on_leak(|leak| eprintln!("{leak}")) // … has been checked out for 60s, at src/orders.rs:17:20
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_leak(mut self, callback: impl Fn(&LeakReport) + Send + Sync + 'static) -> Self {
        self.0.leak_callback = Some(Box::new(callback));
        self
    }

    /// Lets [`cenote top`](https://docs.rs/cenote) look at the pool while the process runs: its counts, its
    /// connections and the callers that hold them, and the requests that wait. By default nothing does.
    ///
    /// [`build`](Self::build) creates a Unix domain socket at `path`, which only the user of the process can open,
    /// and starts a thread for it. It replaces the socket of a process that has ended. The file is removed when the
    /// pool is closed or dropped. While no inspector is connected, the pool does nothing for it.
    ///
    /// A [client](crate::client::ClientBuilder::inspect) has one socket for all its pools. Not on Windows.
    ///
    /// ```no_run
    /// use cenote_tokio::Pool;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::builder("mongodb://db.example.com")?.inspect("/run/user/1000/orders.sock").build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(unix)]
    #[must_use]
    pub fn inspect(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.inspect = Some(path.into());
        self
    }

    /// Measures the pool with OpenTelemetry (feature `metrics`): durations and timeouts as they happen, counts
    /// whenever the meter's reader collects, for as long as the pool lives. It costs what a subscriber costs.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.0.metrics.push(metrics);
        self
    }

    /// Sets everything about traces at once.
    #[cfg(feature = "tls")]
    pub(crate) fn traced(mut self, tracing: TraceOptions) -> Self {
        self.0.tracing = tracing;
        self
    }

    /// Builds the pool, which is paused.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a file of the connection string that cannot be read; a file or folder for
    /// traces that cannot be made; no event loop, or no thread, to be had where the shell has them.
    ///
    /// # Panics
    ///
    /// Outside of the runtime that the shell needs, if it needs one.
    pub fn build(self) -> Result<P, BuildError> {
        P::build(self.0)
    }

    /// What was set, for a shell that builds the pool in another way.
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
