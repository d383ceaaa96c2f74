//! One interface to the pools of all runtimes, whose calls block.

use std::fmt::Debug;
use std::future::Future;
use std::ops::DerefMut;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, OperationError, PoolError};
use cenote_core::pool::{InvalidOptions, PoolOptions, Purpose, Snapshot};
use cenote_mio::EventLoop;
use cenote_shell::builder::{BuildError, BuiltPool, PoolPlan};
use cenote_shell::client::Client;
use cenote_shell::connection::{Connection, Connector};
use cenote_shell::error::CloseTimeout;
use cenote_shell::event::PoolEvent;
use cenote_shell::metrics::Metrics;
use cenote_shell::pool::{Pool, PooledConnection};
use cenote_shell::runtime::{CurrentRuntime, Network, Runtime, timeout_exactly_at};
use cenote_shell::trace::RecordingError;
use cenote_smol::Smol;
use cenote_tokio::Tokio;

/// Makes a test of each of these functions on each runtime.
macro_rules! on_all_runtimes {
    ($($test:ident),* $(,)?) => {
        crate::pool::blocking::on_runtime!(on_tokio, cenote_tokio::Tokio, $($test),*);
        crate::pool::blocking::on_runtime!(on_mio, cenote_mio::EventLoop, $($test),*);
        crate::pool::blocking::on_runtime!(on_smol, cenote_smol::Smol, $($test),*);
    };
}

macro_rules! on_runtime {
    ($module:ident, $runtime:ty, $($test:ident),*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test::<$runtime>();
            })*
        }
    };
}

pub(crate) use {on_all_runtimes, on_runtime};

/// A runtime with pools whose calls block.
pub(crate) trait TestRuntime: Runtime {
    type Pool<K: Connector<Self>>: TestPool<Self, K>;

    /// Both ends of a channel for events.
    fn event_channel() -> (Self::EventSender, Box<dyn FnMut() -> PoolEvent>);

    /// Starts a client with metrics. The function that is returned closes it.
    fn client(uri: &str, metrics: Metrics) -> Box<dyn FnOnce()>;

    /// Whether a caller that waits can go away.
    const CAN_GIVE_UP: bool;

    /// A check-out whose caller goes away after a while.
    fn check_out_or_give_up<K: Connector<Self>>(
        pool: &Self::Pool<K>,
        patience: Duration,
    ) -> Option<Result<Guard<Self, K>, PoolError>>;

    /// Waits until no task of the pool runs.
    fn wait_for_tasks<K: Connector<Self>>(pool: &Self::Pool<K>);
}

pub(crate) type Guard<R, K> = <<R as TestRuntime>::Pool<K> as TestPool<R, K>>::Guard;

/// What all pools can do, with the blocking signatures of `cenote-mio`.
pub(crate) trait TestPool<R: Runtime, K: Connector<R>>:
    BuiltPool<Connector = K, EventSender = R::EventSender> + Clone + Debug + Send + Sync + 'static
{
    type Guard: TestConnection<K::Connection>;

    fn check_out(&self) -> Result<Self::Guard, PoolError>;
    fn check_out_before(&self, deadline: Instant) -> Result<Self::Guard, PoolError>;
    fn check_out_for(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Self::Guard, PoolError>;
    fn try_check_out(&self) -> Result<Option<Self::Guard>, PoolError>;
    fn with_connection<T, E: From<PoolError>>(
        &self,
        operation: impl FnOnce(&mut Self::Guard) -> Result<T, E>,
    ) -> Result<T, E>;
    fn warm_up(&self, connections: u32) -> Result<u32, PoolError>;
    fn ready(&self);
    fn clear(&self, cause: ConnectionError, interrupt: bool);
    fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions>;
    fn options(&self) -> PoolOptions;
    fn snapshot(&self) -> Snapshot;
    fn dropped_events(&self) -> u64;
    fn dump_trace(&self, path: &Path) -> Result<(), RecordingError>;
    fn write_trace(&self) -> Result<Vec<u8>, RecordingError>;
    fn end_recording(&self) -> Result<(), RecordingError>;
    fn close(&self);
    fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout>;
}

/// What all guards can do.
pub(crate) trait TestConnection<C>: DerefMut<Target = C> + Debug + Send + 'static {
    fn run<T>(
        &mut self,
        operation: impl FnOnce(&mut C) -> Result<T, ConnectionError>,
    ) -> Result<T, OperationError>;
    fn id(&self) -> u64;
    fn is_stale(&self) -> bool;
    fn is_interrupted(&self) -> bool;
    fn mark_errored(&mut self, error: ConnectionError);
}

/// What has the same signature in all pools and guards.
macro_rules! forward {
    (pool: $($field:tt)?) => {
        fn ready(&self) {
            self$(.$field)?.ready();
        }

        fn clear(&self, cause: ConnectionError, interrupt: bool) {
            self$(.$field)?.clear(cause, interrupt);
        }

        fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions> {
            self$(.$field)?.set_options(options)
        }

        fn options(&self) -> PoolOptions {
            self$(.$field)?.options()
        }

        fn snapshot(&self) -> Snapshot {
            self$(.$field)?.snapshot()
        }

        fn dropped_events(&self) -> u64 {
            self$(.$field)?.dropped_events()
        }


        fn dump_trace(&self, path: &Path) -> Result<(), RecordingError> {
            self$(.$field)?.dump_trace(path)
        }

        fn write_trace(&self) -> Result<Vec<u8>, RecordingError> {
            self$(.$field)?.write_trace(Vec::new())
        }
    };
    (connection) => {
        fn id(&self) -> u64 {
            self.id()
        }

        fn is_stale(&self) -> bool {
            self.is_stale()
        }

        fn is_interrupted(&self) -> bool {
            self.is_interrupted()
        }

        fn mark_errored(&mut self, error: ConnectionError) {
            self.mark_errored(error);
        }
    };
}

/// A runtime whose pools are asynchronous.
pub(crate) trait AsyncRuntime:
    CurrentRuntime + Network<Connection = Connection<Self>>
{
    fn block_on<T>(future: impl Future<Output = T>) -> T;
    fn event_channel() -> (Self::EventSender, Box<dyn FnMut() -> PoolEvent>);
    /// Waits until the runtime's only thread has done what it had to do.
    fn wait_for_tasks();
}

/// Has one thread, so that tasks run in turn, as on smol.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
});

impl AsyncRuntime for Tokio {
    fn block_on<T>(future: impl Future<Output = T>) -> T {
        RUNTIME.block_on(future)
    }

    fn event_channel() -> (Self::EventSender, Box<dyn FnMut() -> PoolEvent>) {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        (sender, Box::new(move || receiver.blocking_recv().expect("an event")))
    }

    fn wait_for_tasks() {
        RUNTIME.block_on(RUNTIME.spawn(async {})).expect("no panic");
    }
}

impl AsyncRuntime for Smol {
    fn block_on<T>(future: impl Future<Output = T>) -> T {
        smol::block_on(future)
    }

    fn event_channel() -> (Self::EventSender, Box<dyn FnMut() -> PoolEvent>) {
        let (sender, receiver) = smol::channel::unbounded();
        (sender, Box::new(move || receiver.recv_blocking().expect("an event")))
    }

    fn wait_for_tasks() {
        smol::block_on(smol::spawn(async {}));
    }
}

impl<R: AsyncRuntime> TestRuntime for R {
    type Pool<K: Connector<R>> = BlockingPool<R, K>;

    fn event_channel() -> (R::EventSender, Box<dyn FnMut() -> PoolEvent>) {
        <R as AsyncRuntime>::event_channel()
    }

    fn client(uri: &str, metrics: Metrics) -> Box<dyn FnOnce()> {
        let client = R::block_on(async {
            let builder = Client::<R>::builder(uri).expect("a connection string");
            builder.metrics(metrics).build().expect("a client")
        });
        Box::new(move || R::block_on(client.close()))
    }

    const CAN_GIVE_UP: bool = true;

    fn check_out_or_give_up<K: Connector<R>>(
        pool: &BlockingPool<R, K>,
        patience: Duration,
    ) -> Option<Result<PooledConnection<R, K>, PoolError>> {
        R::block_on(async {
            let limit = R::now() + patience;
            timeout_exactly_at(&R::current(), limit, pool.0.check_out()).await
        })
    }

    fn wait_for_tasks<K: Connector<R>>(_: &BlockingPool<R, K>) {
        <R as AsyncRuntime>::wait_for_tasks();
    }
}

/// An asynchronous pool, for callers that block.
pub(crate) struct BlockingPool<R: Runtime, K: Connector<R>>(Pool<R, K>);

impl<R: Runtime, K: Connector<R>> Clone for BlockingPool<R, K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Runtime, K: Connector<R>> Debug for BlockingPool<R, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<R: AsyncRuntime, K: Connector<R>> BuiltPool for BlockingPool<R, K> {
    type Connector = K;
    type EventSender = R::EventSender;

    fn build(plan: PoolPlan<K>) -> Result<Self, BuildError> {
        R::block_on(async { Pool::build(plan).map(Self) })
    }

    fn send(sender: &R::EventSender, event: PoolEvent) {
        R::send_event(sender, event);
    }
}

impl<R: AsyncRuntime, K: Connector<R>> TestPool<R, K> for BlockingPool<R, K> {
    type Guard = PooledConnection<R, K>;

    #[track_caller]
    fn check_out(&self) -> Result<Self::Guard, PoolError> {
        R::block_on(self.0.check_out())
    }

    #[track_caller]
    fn check_out_before(&self, deadline: Instant) -> Result<Self::Guard, PoolError> {
        R::block_on(self.0.check_out_before(deadline.into()))
    }

    #[track_caller]
    fn check_out_for(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Self::Guard, PoolError> {
        R::block_on(self.0.check_out_for(purpose, deadline.map(Into::into)))
    }

    #[track_caller]
    fn try_check_out(&self) -> Result<Option<Self::Guard>, PoolError> {
        self.0.try_check_out()
    }

    #[track_caller]
    fn with_connection<T, E: From<PoolError>>(
        &self,
        operation: impl FnOnce(&mut Self::Guard) -> Result<T, E>,
    ) -> Result<T, E> {
        R::block_on(self.0.with_connection(async |guard: &mut Self::Guard| operation(guard)))
    }

    #[track_caller]
    fn warm_up(&self, connections: u32) -> Result<u32, PoolError> {
        R::block_on(self.0.warm_up(connections))
    }

    fn end_recording(&self) -> Result<(), RecordingError> {
        R::block_on(self.0.end_recording())
    }

    fn close(&self) {
        R::block_on(self.0.close());
    }

    fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        R::block_on(self.0.close_before(deadline.into()))
    }

    forward!(pool: 0);
}

impl<R: AsyncRuntime, K: Connector<R>> TestConnection<K::Connection> for PooledConnection<R, K> {
    fn run<T>(
        &mut self,
        operation: impl FnOnce(&mut K::Connection) -> Result<T, ConnectionError>,
    ) -> Result<T, OperationError> {
        R::block_on(self.run(async |connection| operation(connection)))
    }

    forward!(connection);
}

impl TestRuntime for EventLoop {
    type Pool<K: Connector<Self>> = cenote_mio::Pool<K>;

    fn event_channel() -> (Self::EventSender, Box<dyn FnMut() -> PoolEvent>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        (sender, Box::new(move || receiver.recv().expect("an event")))
    }

    fn client(uri: &str, metrics: Metrics) -> Box<dyn FnOnce()> {
        let builder = cenote_mio::Client::builder(uri).expect("a connection string");
        let client = builder.metrics(metrics).build().expect("a client");
        Box::new(move || client.close())
    }

    const CAN_GIVE_UP: bool = false;

    fn check_out_or_give_up<K: Connector<Self>>(
        pool: &cenote_mio::Pool<K>,
        _: Duration,
    ) -> Option<Result<cenote_mio::PooledConnection<K>, PoolError>> {
        Some(pool.check_out())
    }

    fn wait_for_tasks<K: Connector<Self>>(pool: &cenote_mio::Pool<K>) {
        pool.while_quiet(|| ());
    }
}

impl<K: Connector<EventLoop>> TestPool<EventLoop, K> for cenote_mio::Pool<K> {
    type Guard = cenote_mio::PooledConnection<K>;

    #[track_caller]
    fn check_out(&self) -> Result<Self::Guard, PoolError> {
        self.check_out()
    }

    #[track_caller]
    fn check_out_before(&self, deadline: Instant) -> Result<Self::Guard, PoolError> {
        self.check_out_before(deadline)
    }

    #[track_caller]
    fn check_out_for(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Self::Guard, PoolError> {
        self.check_out_for(purpose, deadline)
    }

    #[track_caller]
    fn try_check_out(&self) -> Result<Option<Self::Guard>, PoolError> {
        self.try_check_out()
    }

    #[track_caller]
    fn with_connection<T, E: From<PoolError>>(
        &self,
        operation: impl FnOnce(&mut Self::Guard) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with_connection(operation)
    }

    #[track_caller]
    fn warm_up(&self, connections: u32) -> Result<u32, PoolError> {
        self.warm_up(connections)
    }

    fn end_recording(&self) -> Result<(), RecordingError> {
        self.end_recording()
    }

    fn close(&self) {
        self.close();
    }

    fn close_before(&self, deadline: Instant) -> Result<(), CloseTimeout> {
        self.close_before(deadline)
    }

    forward!(pool: );
}

impl<K: Connector<EventLoop>> TestConnection<K::Connection> for cenote_mio::PooledConnection<K> {
    fn run<T>(
        &mut self,
        operation: impl FnOnce(&mut K::Connection) -> Result<T, ConnectionError>,
    ) -> Result<T, OperationError> {
        self.run(operation)
    }

    forward!(connection);
}
