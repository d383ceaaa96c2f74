//! `cenote-tokio`, on a runtime with one worker thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::client::{ClientError, Selector};
use cenote_core::connect::{ConnectionDescription, DriverInfo, ServerKind};
use cenote_core::error::{ConnectionError, OperationError, PoolError, Stage};
use cenote_core::pool::{InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};
use cenote_core::wire::MessageBuf;
use cenote_tokio::{Builder, MongoConnector, PooledConnection};
use tokio::runtime::{self, Handle, Runtime};
use tokio::time::timeout;

use super::{Cancel, Client, Connection, Done, OnEvent, Pool, PoolSetup, Shell, address};

pub(super) struct Tokio(Arc<Runtime>);

/// Something of `cenote-tokio`, and the runtime on which its futures are awaited. Pools and clients keep
/// the runtime alive; connections do not, because a task that owns one must not stop its runtime.
struct On<T> {
    inner: T,
    runtime: Handle,
    _keep_alive: Option<Arc<Runtime>>,
}

impl Tokio {
    /// # Errors
    ///
    /// If the runtime cannot be started.
    pub(super) fn new() -> Result<Self, String> {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("the runtime does not start: {error}"))?;
        Ok(Self(Arc::new(runtime)))
    }

    fn on<T>(&self, inner: T) -> On<T> {
        On { inner, runtime: self.0.handle().clone(), _keep_alive: Some(Arc::clone(&self.0)) }
    }
}

fn connection(inner: PooledConnection<MongoConnector>, runtime: &Handle) -> Box<dyn Connection> {
    Box::new(On { inner, runtime: runtime.clone(), _keep_alive: None })
}

impl Shell for Tokio {
    fn pool(&self, setup: PoolSetup) -> Result<Arc<dyn Pool>, String> {
        let PoolSetup { uri, options, metadata, log, on_event, on_failure } = setup;
        let connector = match &metadata {
            Some(metadata) => MongoConnector::with_client(&uri, metadata),
            None => MongoConnector::new(&uri),
        };
        let connector = connector.map_err(|error| error.to_string())?;
        let mut builder = Builder::new(address(&uri)?, connector)
            .options(options)
            .on_event(move |told| on_event(&told.event, &told.address));
        if let Some(on_failure) = on_failure {
            builder = builder.on_failure(move |failure| on_failure(failure));
        }
        if let Some(log) = log {
            builder = builder.log_settings(log);
        }
        let _inside = self.0.enter();
        Ok(Arc::new(self.on(builder.build().map_err(|error| error.to_string())?)))
    }

    fn client(
        &self,
        uri: &str,
        options: Option<PoolOptions>,
        on_event: Option<OnEvent>,
    ) -> Result<Box<dyn Client>, String> {
        let mut builder = cenote_tokio::Client::builder(uri).map_err(|error| error.to_string())?;
        if let Some(options) = options {
            builder = builder.options(options);
        }
        if let Some(on_event) = on_event {
            builder = builder.on_event(move |told| on_event(&told.event, &told.address));
        }
        let _inside = self.0.enter();
        Ok(Box::new(self.on(builder.build().map_err(|error| error.to_string())?)))
    }
}

impl Pool for On<cenote_tokio::Pool> {
    fn check_out(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Box<dyn Connection>, PoolError> {
        let check_out = self.inner.check_out_for(purpose, deadline.map(Into::into));
        Ok(connection(self.runtime.block_on(check_out)?, &self.runtime))
    }

    fn start_check_out(
        self: Arc<Self>,
        purpose: Purpose,
        deadline: Option<Instant>,
        done: Done,
    ) -> Option<Cancel> {
        let (pool, runtime) = (self.inner.clone(), self.runtime.clone());
        let task = self.runtime.spawn(async move {
            let outcome = pool.check_out_for(purpose, deadline.map(Into::into)).await;
            done(outcome.map(|inner| connection(inner, &Handle::current())));
        });
        Some(Box::new(move || {
            task.abort();
            // Once it has ended, its future is dropped.
            let _ = runtime.block_on(task);
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

    fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.inner.append_metadata(driver)
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn close_within(&self, limit: Duration) -> Result<(), String> {
        let deadline = (Instant::now() + limit).into();
        let closed = self.runtime.block_on(self.inner.close_before(deadline));
        closed.map_err(|left| left.to_string())
    }

    fn flush(&self) {
        // The worker runs this after everything that was spawned or woken before.
        let _ = self.runtime.block_on(self.runtime.spawn(tokio::task::yield_now()));
    }
}

impl Connection for On<PooledConnection<MongoConnector>> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, OperationError> {
        let Self { inner: connection, runtime, .. } = self;
        let work = connection.command(database, command);
        let Some(within) = within else { return runtime.block_on(work) };
        // A command whose future is dropped makes the connection unusable.
        match runtime.block_on(async { timeout(within, work).await }) {
            Ok(reply) => reply,
            Err(_) => Err(ConnectionError::timeout(Stage::Operation, within).into()),
        }
    }

    fn unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        self.runtime.block_on(self.inner.command_unacknowledged(database, command))
    }

    fn next_request_id(&mut self) -> i32 {
        self.inner.next_request_id()
    }

    fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        self.runtime.block_on(self.inner.send(message))
    }

    fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        self.runtime.block_on(self.inner.receive())
    }

    fn is_reusable(&self) -> bool {
        self.inner.is_reusable()
    }

    fn description(&self) -> ConnectionDescription {
        self.inner.description().clone()
    }

    fn service_id(&self) -> Option<ServiceId> {
        self.inner.service_id()
    }

    fn mark_errored(&mut self, error: ConnectionError) {
        self.inner.mark_errored(error);
    }
}

impl Client for On<cenote_tokio::Client> {
    fn check_out(&self, selector: &Selector) -> Result<Box<dyn Connection>, ClientError> {
        Ok(connection(self.runtime.block_on(self.inner.check_out(selector))?, &self.runtime))
    }

    fn command(
        &self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.runtime.block_on(self.inner.command(database, command))
    }

    fn kinds(&self) -> Vec<Option<String>> {
        let name = |kind: ServerKind| kind.name().to_owned();
        self.inner.servers().iter().map(|server| server.kind.map(name)).collect()
    }

    fn close(&self) {
        self.runtime.block_on(self.inner.close());
    }
}
