//! One interface to the pools of all runtimes, whose calls block.

use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::connect::{AccessToken, ConnectionDescription, SaslMechanism};
use cenote_core::error::{BoxError, ConnectionError, OperationError, PoolError};
use cenote_core::pool::{Event, PoolOptions, Purpose, ServiceId, Snapshot};
use cenote_core::uri::{ConnectionString, Credential};
use cenote_core::wire::{MessageBuf, MessageLimit};
use cenote_shell::builder::{BuildError, Builder, BuiltPool, FromUri};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::connection::{Connection, Lookup, MongoConnector};
use cenote_shell::oidc::TokenRequest;
use cenote_shell::pool::PooledConnection;
use cenote_shell::runtime::{CurrentRuntime, Network};
use cenote_shell::trace::Recording;
use cenote_smol::Smol;
use cenote_tokio::Tokio;

/// Makes a test of each of these functions on each runtime.
macro_rules! on_all_runtimes {
    ($($test:ident),* $(,)?) => {
        crate::shell::on_runtime!(on_tokio, Tokio, $($test),*);
        crate::shell::on_runtime!(on_mio, Mio, $($test),*);
        crate::shell::on_runtime!(on_smol, Smol, $($test),*);
    };
}

macro_rules! on_runtime {
    ($module:ident, $runtime:ident, $($test:ident),*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test(crate::shell::Shell::$runtime);
            })*
        }
    };
}

pub(crate) use {on_all_runtimes, on_runtime};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    Tokio,
    Mio,
    Smol,
}

pub(crate) trait AnyPool: Send + Sync {
    fn check_out(&self) -> Result<Box<dyn AnyConnection>, PoolError>;
    fn check_out_before(&self, deadline: Instant) -> Result<Box<dyn AnyConnection>, PoolError>;
    fn warm_up(&self, connections: u32) -> Result<u32, PoolError>;
    fn set_min_round_trip(&self, time: Duration);
    fn ready(&self);
    fn clear(&self, cause: ConnectionError, interrupt: bool);
    fn clear_service(&self, cause: ConnectionError, service: ServiceId);
    fn snapshot(&self) -> Snapshot;
    fn set_options(&self, options: PoolOptions);
    fn options(&self) -> PoolOptions;
    fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError>;
    fn release_idle(&self);
    /// Begins a check-out that has to wait, and cancels it. Impossible (`false`) where callers block.
    fn cancel_check_out(&self) -> bool;
    fn end_recording(&self);
    fn close(&self);
}

pub(crate) trait AnyConnection: Send {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError>;
    fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, OperationError>;
    fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError>;
    fn reauthenticate(&mut self) -> Result<(), OperationError>;
    fn send(&mut self, message: &[u8]) -> Result<(), OperationError>;
    fn receive(&mut self) -> Result<MessageBuf, OperationError>;
    /// Whether there is a raw stream of it.
    fn raw_stream(&mut self) -> Result<(), OperationError>;
    fn description(&self) -> &ConnectionDescription;
    fn is_reusable(&self) -> bool;
    fn message_limit(&self) -> MessageLimit;
    fn next_request_id(&mut self) -> i32;
    fn id(&self) -> u64;
    fn service_id(&self) -> Option<ServiceId>;
    fn is_stale(&self) -> bool;
    fn set_purpose(&mut self, purpose: Purpose);
    fn mark_errored(&mut self, error: ConnectionError);
}

pub(crate) type Subscriber = Box<dyn Fn(&Event<ConnectionError>, &ServerAddress) + Send + Sync>;

impl Shell {
    /// A pool that is paused, which reports its events to `subscriber`, and writes a trace if there is a recording.
    pub(crate) fn pool(
        self,
        uri: &str,
        subscriber: Subscriber,
        recording: Option<Recording>,
    ) -> Arc<dyn AnyPool> {
        match self {
            Self::Tokio => {
                Tokio::block_on(async { build::<Pool<Tokio>>(uri, subscriber, recording) })
            }
            Self::Mio => build::<cenote_mio::Pool>(uri, subscriber, recording),
            Self::Smol => build::<Pool<Smol>>(uri, subscriber, recording),
        }
    }
}

impl Shell {
    /// A paused pool whose options are changed.
    pub(crate) fn pool_with_options(
        self,
        uri: &str,
        change: fn(PoolOptions) -> PoolOptions,
        subscriber: Subscriber,
    ) -> Arc<dyn AnyPool> {
        fn build<P: BuiltPool<Connector: FromUri> + AnyPool + 'static>(
            uri: &str,
            change: fn(PoolOptions) -> PoolOptions,
            subscriber: Subscriber,
        ) -> Arc<dyn AnyPool> {
            let builder = Builder::<P>::from_uri(uri).expect("a connection string");
            let builder = builder.map_options(change);
            let builder = builder.on_event(move |told| subscriber(&told.event, &told.address));
            Arc::new(builder.build().expect("good options"))
        }
        match self {
            Self::Tokio => Tokio::block_on(async { build::<Pool<Tokio>>(uri, change, subscriber) }),
            Self::Mio => build::<cenote_mio::Pool>(uri, change, subscriber),
            Self::Smol => build::<Pool<Smol>>(uri, change, subscriber),
        }
    }

    /// A ready pool whose connections authenticate by a mechanism of the application's own.
    pub(crate) fn pool_by(
        self,
        uri: &str,
        mechanism: impl SaslMechanism,
    ) -> Result<Arc<dyn AnyPool>, BuildError> {
        fn build<P: BuiltPool<Connector: FromUri> + AnyPool + 'static>(
            uri: &str,
            mechanism: impl SaslMechanism,
        ) -> Result<Arc<dyn AnyPool>, BuildError> {
            let pool = Builder::<P>::from_uri(uri)?.sasl_mechanism(mechanism).build()?;
            pool.ready();
            Ok(Arc::new(pool))
        }
        match self {
            Self::Tokio => Tokio::block_on(async { build::<Pool<Tokio>>(uri, mechanism) }),
            Self::Mio => build::<cenote_mio::Pool>(uri, mechanism),
            Self::Smol => build::<Pool<Smol>>(uri, mechanism),
        }
    }

    /// A ready pool that takes access tokens from a callback, and writes a trace if there is a recording.
    pub(crate) fn pool_with_tokens(
        self,
        uri: &str,
        callback: impl Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync + 'static,
        recording: Option<Recording>,
    ) -> Arc<dyn AnyPool> {
        fn build<P: BuiltPool<Connector: FromUri> + AnyPool + 'static>(
            uri: &str,
            callback: impl Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync + 'static,
            recording: Option<Recording>,
        ) -> Arc<dyn AnyPool> {
            let mut builder = Builder::<P>::from_uri(uri).expect("a connection string");
            if let Some(recording) = recording {
                builder = builder.record(recording);
            }
            let pool = builder.oidc_callback(callback).build().expect("good options");
            pool.ready();
            Arc::new(pool)
        }
        match self {
            Self::Tokio => {
                Tokio::block_on(async { build::<Pool<Tokio>>(uri, callback, recording) })
            }
            Self::Mio => build::<cenote_mio::Pool>(uri, callback, recording),
            Self::Smol => build::<Pool<Smol>>(uri, callback, recording),
        }
    }

    /// A ready pool of the first host, whose name `resolver` resolves.
    pub(crate) fn pool_with_resolver(
        self,
        uri: &str,
        resolver: impl Fn(Lookup) + Send + Sync + 'static,
    ) -> Arc<dyn AnyPool> {
        let uri = uri.parse().expect("a connection string");
        let pool = match self {
            Self::Tokio => {
                Tokio::block_on(async { build_with_resolver::<_, Pool<Tokio>>(&uri, resolver) })
            }
            Self::Mio => build_with_resolver::<_, cenote_mio::Pool>(&uri, resolver),
            Self::Smol => build_with_resolver::<_, Pool<Smol>>(&uri, resolver),
        };
        pool.ready();
        pool
    }
}

fn build_with_resolver<R, P>(
    uri: &ConnectionString,
    resolver: impl Fn(Lookup) + Send + Sync + 'static,
) -> Arc<dyn AnyPool>
where
    P: BuiltPool<Connector = MongoConnector<R>> + AnyPool + 'static,
{
    let connector = MongoConnector::new(uri).expect("good options").with_resolver(resolver);
    let builder = Builder::<P>::new(uri.hosts[0].clone(), connector);
    Arc::new(builder.build().expect("good options"))
}

fn build<P: BuiltPool<Connector: FromUri> + AnyPool + 'static>(
    uri: &str,
    subscriber: Subscriber,
    recording: Option<Recording>,
) -> Arc<dyn AnyPool> {
    let mut builder = Builder::<P>::from_uri(uri).expect("a connection string");
    if let Some(recording) = recording {
        builder = builder.record(recording);
    }
    let builder = builder.on_event(move |told| subscriber(&told.event, &told.address));
    Arc::new(builder.build().expect("good options"))
}

type Pool<R> = cenote_shell::pool::Pool<R, MongoConnector<R>>;

/// A runtime whose pools are asynchronous.
trait AsyncRuntime: CurrentRuntime + Network<Connection = Connection<Self>> {
    fn block_on<T>(work: impl Future<Output = T>) -> T;
}

impl AsyncRuntime for Tokio {
    fn block_on<T>(work: impl Future<Output = T>) -> T {
        RUNTIME.block_on(work)
    }
}

impl AsyncRuntime for Smol {
    fn block_on<T>(work: impl Future<Output = T>) -> T {
        smol::block_on(work)
    }
}

/// For all tests.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
});

/// What does not block has the same signature on all.
macro_rules! non_blocking {
    (pool) => {
        fn ready(&self) {
            self.ready();
        }

        fn clear(&self, cause: ConnectionError, interrupt: bool) {
            self.clear(cause, interrupt);
        }

        fn clear_service(&self, cause: ConnectionError, service: ServiceId) {
            self.clear_service(cause, service);
        }

        fn snapshot(&self) -> Snapshot {
            self.snapshot()
        }

        fn set_min_round_trip(&self, time: Duration) {
            self.set_min_round_trip(time);
        }

        fn set_options(&self, options: PoolOptions) {
            self.set_options(options).expect("good options");
        }

        fn options(&self) -> PoolOptions {
            self.options()
        }

        fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
            self.replace_credential(credential)
        }

        fn release_idle(&self) {
            self.release_idle();
        }
    };
    (connection) => {
        fn raw_stream(&mut self) -> Result<(), OperationError> {
            self.raw_stream().map(drop)
        }

        fn description(&self) -> &ConnectionDescription {
            (**self).description()
        }

        fn is_reusable(&self) -> bool {
            (**self).is_reusable()
        }

        fn message_limit(&self) -> MessageLimit {
            (**self).message_limit()
        }

        fn next_request_id(&mut self) -> i32 {
            (**self).next_request_id()
        }

        fn id(&self) -> u64 {
            self.id()
        }

        fn service_id(&self) -> Option<ServiceId> {
            self.service_id()
        }

        fn is_stale(&self) -> bool {
            self.is_stale()
        }

        fn set_purpose(&mut self, purpose: Purpose) {
            self.set_purpose(purpose);
        }

        fn mark_errored(&mut self, error: ConnectionError) {
            self.mark_errored(error);
        }
    };
}

impl<R: AsyncRuntime> AnyPool for Pool<R> {
    fn check_out(&self) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(R::block_on(self.check_out())?))
    }

    fn check_out_before(&self, deadline: Instant) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(R::block_on(self.check_out_before(deadline.into()))?))
    }

    fn warm_up(&self, connections: u32) -> Result<u32, PoolError> {
        R::block_on(self.warm_up(connections))
    }

    fn cancel_check_out(&self) -> bool {
        R::block_on(smol::future::poll_once(self.check_out())).is_none()
    }

    fn end_recording(&self) {
        R::block_on(self.end_recording()).expect("a whole trace");
    }

    fn close(&self) {
        R::block_on(self.close());
    }

    non_blocking!(pool);
}

impl<R: AsyncRuntime> AnyConnection for PooledConnection<R, MongoConnector<R>> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        R::block_on(self.command(database, command))
    }

    fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, OperationError> {
        R::block_on(self.command_with(database, command, options))
    }

    fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        R::block_on(self.command_unacknowledged(database, command))
    }

    fn reauthenticate(&mut self) -> Result<(), OperationError> {
        R::block_on(self.reauthenticate())
    }

    fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        R::block_on(self.send(message))
    }

    fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        R::block_on(self.receive())
    }

    non_blocking!(connection);
}

impl AnyPool for cenote_mio::Pool {
    fn check_out(&self) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(self.check_out()?))
    }

    fn check_out_before(&self, deadline: Instant) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(self.check_out_before(deadline)?))
    }

    fn warm_up(&self, connections: u32) -> Result<u32, PoolError> {
        self.warm_up(connections)
    }

    fn cancel_check_out(&self) -> bool {
        false
    }

    fn end_recording(&self) {
        self.end_recording().expect("a whole trace");
    }

    fn close(&self) {
        self.close();
    }

    non_blocking!(pool);
}

impl AnyConnection for cenote_mio::PooledConnection<cenote_mio::MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.command(database, command)
    }

    fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.command_with(database, command, options)
    }

    fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        self.command_unacknowledged(database, command)
    }

    fn reauthenticate(&mut self) -> Result<(), OperationError> {
        self.reauthenticate()
    }

    fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        self.send(message)
    }

    fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        self.receive()
    }

    non_blocking!(connection);
}
