//! Asynchronous pools and clients on any runtime: a thread of the test blocks on their futures.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector, ServerStatus};
use cenote_core::connect::{AccessToken, DriverInfo};
use cenote_core::error::{ConnectionError, OperationError, PoolError};
use cenote_core::pool::{InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};
use cenote_core::topology::TopologyDescription;
use cenote_shell::builder::Builder;
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::connection::{self, MongoConnector};
use cenote_shell::runtime::{CurrentRuntime, Network};
use cenote_shell::{client, pool};

use super::{Cancel, Client, ClientSetup, Connection, Done, Pin, Pool, PoolSetup, Shell, address};

/// Runs futures of one runtime for threads that are not its own.
pub(super) trait Executor: Clone + Send + Sync + 'static {
    type Runtime: Network<Connection = connection::Connection<Self::Runtime>> + CurrentRuntime;

    /// Calls `make` where [`CurrentRuntime::current`] finds the runtime.
    fn enter<T>(&self, make: impl FnOnce() -> T) -> T;

    fn block_on<F: Future>(&self, future: F) -> F::Output;

    /// Runs a future to its end, unless the returned function cancels it: that returns when the future is
    /// dropped.
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Cancel;

    /// Returns when all tasks that were spawned or woken before have run.
    fn flush(&self);

    /// An executor that does not keep the runtime alive, for connections: a task that owns one must not stop
    /// its runtime.
    fn without_keep_alive(&self) -> Self {
        self.clone()
    }
}

/// The shell on an executor.
pub(super) struct AsyncShell<E>(pub(super) E);

/// Something of the shell, and the executor on which its futures are awaited.
struct On<E, T> {
    inner: T,
    executor: E,
}

type PoolOf<E> = pool::Pool<<E as Executor>::Runtime, MongoConnector<<E as Executor>::Runtime>>;
type Pooled<E> =
    pool::PooledConnection<<E as Executor>::Runtime, MongoConnector<<E as Executor>::Runtime>>;
type ClientOf<E> = client::Client<<E as Executor>::Runtime>;
type Pinned<E> = client::Pinned<<E as Executor>::Runtime>;

fn connection<E: Executor>(inner: Pooled<E>, executor: &E) -> Box<dyn Connection> {
    Box::new(On { inner, executor: executor.without_keep_alive() })
}

impl<E: Executor> Shell for AsyncShell<E> {
    fn pool(&self, setup: PoolSetup) -> Result<Arc<dyn Pool>, String> {
        let PoolSetup { uri, options, log, on_event, on_failure } = setup;
        let connector = MongoConnector::new(&uri).map_err(|error| error.to_string())?;
        let mut builder = Builder::<PoolOf<E>>::new(address(&uri)?, connector)
            .replace_options(options)
            .on_event(move |told| on_event(&told.event, &told.address));
        if let Some(on_failure) = on_failure {
            builder = builder.on_failure(move |failure| on_failure(failure));
        }
        if let Some(log) = log {
            builder = builder.log_settings(log);
        }
        let inner = self.0.enter(|| builder.build()).map_err(|error| error.to_string())?;
        Ok(Arc::new(On { inner, executor: self.0.clone() }))
    }

    fn client(&self, setup: ClientSetup<'_>) -> Result<Box<dyn Client>, String> {
        let ClientSetup { uri, options, token, on_event, on_heartbeat, on_topology_event } = setup;
        let mut builder = ClientOf::<E>::builder(uri).map_err(|error| error.to_string())?;
        if let Some(options) = options {
            builder = builder.replace_options(options);
        }
        if let Some(on_event) = on_event {
            builder = builder.on_event(move |told| on_event(&told.event, &told.address));
        }
        if let Some(on_heartbeat) = on_heartbeat {
            builder = builder.on_heartbeat(move |told| on_heartbeat(told));
        }
        if let Some(on_topology_event) = on_topology_event {
            builder = builder.on_topology_event(move |told| on_topology_event(told));
        }
        if let Some(token) = token {
            builder = builder.oidc_callback(move |_| Ok(AccessToken::new(token)));
        }
        let inner = self.0.enter(|| builder.build()).map_err(|error| error.to_string())?;
        Ok(Box::new(On { inner, executor: self.0.clone() }))
    }
}

impl<E: Executor> Pool for On<E, PoolOf<E>> {
    fn check_out(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Box<dyn Connection>, PoolError> {
        let check_out = self.inner.check_out_for(purpose, deadline.map(Into::into));
        Ok(connection(self.executor.block_on(check_out)?, &self.executor))
    }

    fn start_check_out(
        self: Arc<Self>,
        purpose: Purpose,
        deadline: Option<Instant>,
        done: Done,
    ) -> Option<Cancel> {
        let (pool, executor) = (self.inner.clone(), self.executor.without_keep_alive());
        Some(self.executor.spawn(async move {
            let outcome = pool.check_out_for(purpose, deadline.map(Into::into)).await;
            done(outcome.map(|inner| connection(inner, &executor)));
        }))
    }

    fn ready(&self) {
        self.inner.ready();
    }

    fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.inner.clear(cause, interrupt);
    }

    fn clear_service(&self, cause: ConnectionError, service: ServiceId) {
        self.inner.clear_service(cause, service);
    }

    fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions> {
        self.inner.set_options(options)
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn close_within(&self, limit: Duration) -> Result<(), String> {
        let deadline = (Instant::now() + limit).into();
        let closed = self.executor.block_on(self.inner.close_before(deadline));
        closed.map_err(|left| left.to_string())
    }

    fn flush(&self) {
        self.executor.flush();
    }
}

impl<E: Executor> Connection for On<E, Pooled<E>> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, OperationError> {
        let Self { inner: connection, executor } = self;
        executor.block_on(connection.command_with(database, command, super::options(within)))
    }

    fn service_id(&self) -> Option<ServiceId> {
        self.inner.service_id()
    }

    fn mark_errored(&mut self, error: ConnectionError) {
        self.inner.mark_errored(error);
    }
}

impl<E: Executor> Client for On<E, ClientOf<E>> {
    fn check_out(
        &self,
        selector: &Selector,
        options: OperationOptions,
    ) -> Result<Box<dyn Connection>, ClientError> {
        let checked_out = self.inner.check_out_with(selector, options);
        Ok(connection(self.executor.block_on(checked_out)?, &self.executor))
    }

    fn pin(
        &self,
        selector: &Selector,
        purpose: Purpose,
        options: OperationOptions,
    ) -> Result<Box<dyn Pin>, ClientError> {
        let pinned = self.inner.pin_with(selector, purpose, options);
        let (inner, executor) =
            (self.executor.block_on(pinned)?, self.executor.without_keep_alive());
        Ok(Box::new(On { inner, executor }))
    }

    fn command(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.executor.block_on(self.inner.command_with(database, command, options))
    }

    fn servers(&self) -> Vec<ServerStatus> {
        self.inner.servers()
    }

    fn topology(&self) -> Arc<TopologyDescription> {
        self.inner.topology()
    }

    fn pool(&self, address: &ServerAddress) -> Option<Arc<dyn Pool>> {
        let inner = self.inner.pool(address)?.clone();
        Some(Arc::new(On { inner, executor: self.executor.clone() }))
    }

    fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.inner.append_metadata(driver)
    }

    fn close_within(&self, limit: Duration) -> Result<(), String> {
        let deadline = (Instant::now() + limit).into();
        let closed = self.executor.block_on(self.inner.close_before(deadline));
        closed.map_err(|left| left.to_string())
    }
}

impl<E: Executor> Pin for On<E, Pinned<E>> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        begin: &mut dyn FnMut(Option<ServiceId>),
    ) -> Result<RawDocumentBuf, ClientError> {
        let Self { inner: pinned, executor } = self;
        executor.block_on(pinned.with_connection(async |connection| {
            begin(connection.service_id());
            Ok(connection.command(database, command).await?)
        }))
    }
}
