//! One interface to the clients of all runtimes, whose calls block.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, HeartbeatEvent, Selector, ServerStatus, TopologyEvent};
use cenote_core::connect::{AccessToken, DriverInfo, SaslMechanism, ServerApi};
use cenote_core::error::{BoxError, ConnectionError, OperationError, PoolError};
use cenote_core::pool::{Event, PoolOptions, Purpose};
use cenote_core::topology::TopologyDescription;
use cenote_core::trace::Disclosure;
use cenote_core::uri::Credential;
use cenote_shell::client::{BuiltClient, Client, ClientBuildError, ClientBuilder, Pinned};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::connection::{Connection, MongoConnector};
use cenote_shell::oidc::TokenRequest;
use cenote_shell::pool::PooledConnection;
use cenote_shell::runtime::{CurrentRuntime, Network};
use cenote_smol::Smol;
use cenote_tokio::{RecordingError, Tokio};

/// Makes a test of each of these functions on each runtime.
macro_rules! on_all_runtimes {
    ($($test:ident),* $(,)?) => {
        crate::shells::on_runtime!(on_tokio, Tokio, $($test),*);
        crate::shells::on_runtime!(on_mio, Mio, $($test),*);
        crate::shells::on_runtime!(on_smol, Smol, $($test),*);
    };
}

macro_rules! on_runtime {
    ($module:ident, $runtime:ident, $($test:ident),*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test(crate::shells::Shell::$runtime);
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

/// The subscribers to events of pools, monitors and the topology.
pub(crate) struct Subscribers {
    pub(crate) pools: PoolSubscriber,
    pub(crate) heartbeats: Box<dyn Fn(&HeartbeatEvent) + Send + Sync>,
    pub(crate) topology: Vec<TopologySubscriber>,
    /// How many events may wait for them.
    pub(crate) queue: Option<usize>,
    /// Each pool has a clone of it, for as long as it is there.
    pub(crate) token: Arc<()>,
}

impl Default for Subscribers {
    /// Those that ignore what they are told.
    fn default() -> Self {
        Self {
            pools: Box::new(|_, _| {}),
            heartbeats: Box::new(|_| {}),
            topology: Vec::new(),
            queue: None,
            token: Arc::default(),
        }
    }
}

impl Subscribers {
    fn subscribe<C: BuiltClient>(self, builder: ClientBuilder<C>) -> ClientBuilder<C> {
        let Self { pools, heartbeats, topology, queue, token } = self;
        let builder = match queue {
            Some(events) => builder.event_queue(events),
            None => builder,
        };
        let builder = builder.on_event(move |event| pools(&event.address, &event.event));
        let builder = builder.prepare_pools(move |pool| {
            let token = Arc::clone(&token);
            pool.on_event(move |_| {
                let _kept = &token;
            })
        });
        let builder = builder.on_heartbeat(heartbeats);
        topology.into_iter().fold(builder, ClientBuilder::on_topology_event)
    }
}

type TopologySubscriber = Box<dyn Fn(&TopologyEvent) + Send + Sync>;

/// How a client is recorded. By default it is not.
#[derive(Default)]
pub(crate) struct Recordings {
    pub(crate) into: Option<PathBuf>,
    pub(crate) dumps: Option<PathBuf>,
    pub(crate) flight_recorder: Option<usize>,
    /// Of texts, and of addresses.
    pub(crate) disclosure: [Disclosure; 2],
}

type PoolSubscriber = Box<dyn Fn(&Arc<ServerAddress>, &Event<ConnectionError>) + Send + Sync>;

/// Of the options of pools.
type Change = fn(PoolOptions) -> PoolOptions;

pub(crate) trait AnyClient: Send + Sync {
    fn command(&self, database: &str, command: &RawDocument)
    -> Result<RawDocumentBuf, ClientError>;
    fn command_with(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError>;
    fn check_out(&self, selector: &Selector) -> Result<Box<dyn AnyConnection>, ClientError>;
    /// Of the pool of that host.
    fn check_out_of(&self, address: &ServerAddress) -> Result<Box<dyn AnyConnection>, PoolError>;
    fn options_of(&self, address: &ServerAddress) -> PoolOptions;
    fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Box<dyn AnyPin>, ClientError>;
    fn servers(&self) -> Vec<ServerStatus>;
    fn topology(&self) -> Arc<TopologyDescription>;
    fn dropped_events(&self) -> u64;
    fn append_metadata(&self, driver: DriverInfo) -> bool;
    fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError>;
    fn release_idle(&self);
    fn request_checks(&self);
    fn end_recording(&self) -> Result<(), RecordingError>;
    fn dump_traces(&self, folder: &Path) -> Result<(), RecordingError>;
    fn close(&self);
    /// How many are still out after that time.
    fn close_within(&self, time: Duration) -> Result<(), u32>;
    fn again(&self) -> Box<dyn AnyClient>;
}

pub(crate) trait AnyConnection: Send {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError>;
    fn reauthenticate(&mut self) -> Result<(), OperationError>;
    /// As it is shown to people.
    fn shown(&self) -> String;
}

pub(crate) trait AnyPin: Send {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError>;
    fn is_pinned(&self) -> bool;
    fn unpin(&mut self);
}

impl Shell {
    /// One that declares the version of the server's API.
    pub(crate) fn declaring_client(self, uri: &str, api: ServerApi) -> Box<dyn AnyClient> {
        fn build<C: BuiltClient + AnyClient + 'static>(
            uri: &str,
            api: ServerApi,
        ) -> Box<dyn AnyClient> {
            let builder = ClientBuilder::<C>::from_uri(uri).expect("a connection string");
            Box::new(builder.server_api(api).build().expect("good options"))
        }
        match self {
            Self::Tokio => Tokio::block_on(async { build::<Client<Tokio>>(uri, api) }),
            Self::Mio => build::<cenote_mio::Client>(uri, api),
            Self::Smol => build::<Client<Smol>>(uri, api),
        }
    }

    /// One that takes access tokens from a callback.
    pub(crate) fn client_with_tokens(
        self,
        uri: &str,
        callback: impl Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync + 'static,
    ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
        fn build<C: BuiltClient + AnyClient + 'static>(
            uri: &str,
            callback: impl Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync + 'static,
        ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
            let builder = ClientBuilder::<C>::from_uri(uri)?;
            Ok(Box::new(builder.oidc_callback(callback).build()?))
        }
        match self {
            Self::Tokio => Tokio::block_on(async { build::<Client<Tokio>>(uri, callback) }),
            Self::Mio => build::<cenote_mio::Client>(uri, callback),
            Self::Smol => build::<Client<Smol>>(uri, callback),
        }
    }

    /// Why there is no client for this connection string.
    pub(crate) fn refused_client(self, uri: &str) -> String {
        fn build<C: BuiltClient>(uri: &str) -> String {
            let built = ClientBuilder::<C>::from_uri(uri).and_then(ClientBuilder::build);
            built.err().expect("it is refused").to_string()
        }
        match self {
            Self::Tokio => Tokio::block_on(async { build::<Client<Tokio>>(uri) }),
            Self::Mio => build::<cenote_mio::Client>(uri),
            Self::Smol => build::<Client<Smol>>(uri),
        }
    }

    /// One that authenticates by a mechanism of its own.
    pub(crate) fn client_by(
        self,
        uri: &str,
        mechanism: impl SaslMechanism,
    ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
        fn build<C: BuiltClient + AnyClient + 'static>(
            uri: &str,
            mechanism: impl SaslMechanism,
        ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
            let builder = ClientBuilder::<C>::from_uri(uri)?;
            Ok(Box::new(builder.sasl_mechanism(mechanism).build()?))
        }
        match self {
            Self::Tokio => Tokio::block_on(async { build::<Client<Tokio>>(uri, mechanism) }),
            Self::Mio => build::<cenote_mio::Client>(uri, mechanism),
            Self::Smol => build::<Client<Smol>>(uri, mechanism),
        }
    }

    /// One that changes the options of all pools with `all`, then those of each with `each`.
    pub(crate) fn changing_client(
        self,
        uri: &str,
        all: Change,
        each: Change,
    ) -> Box<dyn AnyClient> {
        fn build<C: BuiltClient + AnyClient + 'static>(
            uri: &str,
            all: Change,
            each: Change,
        ) -> Box<dyn AnyClient> {
            let builder = ClientBuilder::<C>::from_uri(uri).expect("a connection string");
            let builder = builder.prepare_pools(move |pool| pool.map_options(each));
            Box::new(builder.map_options(all).build().expect("good options"))
        }
        match self {
            Self::Tokio => Tokio::block_on(async { build::<Client<Tokio>>(uri, all, each) }),
            Self::Mio => build::<cenote_mio::Client>(uri, all, each),
            Self::Smol => build::<Client<Smol>>(uri, all, each),
        }
    }

    /// One whose servers this name server names, and which can be inspected at this socket.
    pub(crate) fn srv_client(
        self,
        uri: &str,
        names: SocketAddr,
        interval: Duration,
        subscribers: Subscribers,
        socket: &Path,
    ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
        async fn build<C: BuiltClient + AnyClient + 'static>(
            uri: &str,
            names: SocketAddr,
            interval: Duration,
            subscribers: Subscribers,
            socket: &Path,
        ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
            let builder = ClientBuilder::<C>::from_uri(uri)?.name_servers([names]).inspect(socket);
            let builder = subscribers.subscribe(builder.shortest_srv_interval(interval));
            Ok(Box::new(builder.resolve().await?.build()?))
        }
        match self {
            Self::Tokio => {
                Tokio::block_on(build::<Client<Tokio>>(uri, names, interval, subscribers, socket))
            }
            Self::Mio => {
                let builder =
                    cenote_mio::Client::builder(uri)?.name_servers([names]).inspect(socket);
                let builder = subscribers.subscribe(builder.shortest_srv_interval(interval));
                Ok(Box::new(builder.build()?))
            }
            Self::Smol => {
                smol::block_on(build::<Client<Smol>>(uri, names, interval, subscribers, socket))
            }
        }
    }

    /// One that is recorded as it is said.
    pub(crate) fn recorded_client(
        self,
        uri: &str,
        recording: &Recordings,
        subscribers: Subscribers,
    ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
        fn build<C: BuiltClient + AnyClient + 'static>(
            uri: &str,
            recording: &Recordings,
            subscribers: Subscribers,
        ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
            let Recordings { into, dumps, flight_recorder, disclosure: [texts, addresses] } =
                recording;
            let builder = subscribers.subscribe(ClientBuilder::<C>::from_uri(uri)?);
            let mut builder = builder.trace_disclosure(*texts, *addresses);
            if let Some(folder) = into {
                builder = builder.record_into(folder);
            }
            if let Some(folder) = dumps {
                builder = builder.dump_traces_into(folder);
            }
            if let Some(bytes) = flight_recorder {
                builder = builder.flight_recorder(*bytes);
            }
            Ok(Box::new(builder.build()?))
        }
        match self {
            Self::Tokio => {
                Tokio::block_on(async { build::<Client<Tokio>>(uri, recording, subscribers) })
            }
            Self::Mio => build::<cenote_mio::Client>(uri, recording, subscribers),
            Self::Smol => build::<Client<Smol>>(uri, recording, subscribers),
        }
    }

    /// `options` of pools, if they are not in the connection string.
    pub(crate) fn client(
        self,
        uri: &str,
        options: Option<PoolOptions>,
        subscribers: Subscribers,
    ) -> Box<dyn AnyClient> {
        match self {
            Self::Tokio => {
                Tokio::block_on(async { build::<Client<Tokio>>(uri, options, subscribers) })
            }
            Self::Mio => build::<cenote_mio::Client>(uri, options, subscribers),
            Self::Smol => build::<Client<Smol>>(uri, options, subscribers),
        }
    }
}

fn build<C: BuiltClient + AnyClient + 'static>(
    uri: &str,
    options: Option<PoolOptions>,
    subscribers: Subscribers,
) -> Box<dyn AnyClient> {
    let mut builder = ClientBuilder::<C>::from_uri(uri).expect("a connection string");
    if let Some(options) = options {
        builder = builder.replace_options(options);
    }
    Box::new(subscribers.subscribe(builder).build().expect("good options"))
}

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

impl<R: AsyncRuntime> AnyClient for Client<R> {
    fn command(
        &self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        R::block_on(self.command(database, command))
    }

    fn command_with(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError> {
        R::block_on(self.command_with(database, command, options))
    }

    fn check_out(&self, selector: &Selector) -> Result<Box<dyn AnyConnection>, ClientError> {
        Ok(Box::new(R::block_on(self.check_out(selector))?))
    }

    fn check_out_of(&self, address: &ServerAddress) -> Result<Box<dyn AnyConnection>, PoolError> {
        let pool = self.pool(address).expect("of this client");
        Ok(Box::new(R::block_on(pool.check_out())?))
    }

    fn options_of(&self, address: &ServerAddress) -> PoolOptions {
        self.pool(address).expect("of this client").options()
    }

    fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Box<dyn AnyPin>, ClientError> {
        Ok(Box::new(R::block_on(self.pin(selector, purpose))?))
    }

    fn servers(&self) -> Vec<ServerStatus> {
        self.servers()
    }

    fn topology(&self) -> Arc<TopologyDescription> {
        self.topology()
    }

    fn dropped_events(&self) -> u64 {
        self.dropped_events()
    }

    fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.append_metadata(driver)
    }

    fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        self.replace_credential(credential)
    }

    fn release_idle(&self) {
        self.release_idle();
    }

    fn request_checks(&self) {
        self.request_checks();
    }

    fn end_recording(&self) -> Result<(), RecordingError> {
        R::block_on(self.end_recording())
    }

    fn dump_traces(&self, folder: &Path) -> Result<(), RecordingError> {
        self.dump_traces(folder)
    }

    fn close(&self) {
        R::block_on(self.close());
    }

    fn close_within(&self, time: Duration) -> Result<(), u32> {
        let closed = R::block_on(self.close_before((Instant::now() + time).into()));
        closed.map_err(|error| error.in_use)
    }

    fn again(&self) -> Box<dyn AnyClient> {
        Box::new(self.clone())
    }
}

impl<R: AsyncRuntime> AnyConnection for PooledConnection<R, MongoConnector<R>> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        R::block_on(self.command(database, command))
    }

    fn reauthenticate(&mut self) -> Result<(), OperationError> {
        R::block_on(self.reauthenticate())
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl<R: AsyncRuntime> AnyPin for Pinned<R> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        R::block_on(
            self.with_connection(async |connection| {
                Ok(connection.command(database, command).await?)
            }),
        )
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned()
    }

    fn unpin(&mut self) {
        self.unpin();
    }
}

impl AnyClient for cenote_mio::Client {
    fn command(
        &self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.command(database, command)
    }

    fn command_with(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.command_with(database, command, options)
    }

    fn check_out(&self, selector: &Selector) -> Result<Box<dyn AnyConnection>, ClientError> {
        Ok(Box::new(self.check_out(selector)?))
    }

    fn check_out_of(&self, address: &ServerAddress) -> Result<Box<dyn AnyConnection>, PoolError> {
        Ok(Box::new(self.pool(address).expect("of this client").check_out()?))
    }

    fn options_of(&self, address: &ServerAddress) -> PoolOptions {
        self.pool(address).expect("of this client").options()
    }

    fn pin(&self, selector: &Selector, purpose: Purpose) -> Result<Box<dyn AnyPin>, ClientError> {
        Ok(Box::new(self.pin(selector, purpose)?))
    }

    fn servers(&self) -> Vec<ServerStatus> {
        self.servers()
    }

    fn topology(&self) -> Arc<TopologyDescription> {
        self.topology()
    }

    fn dropped_events(&self) -> u64 {
        self.dropped_events()
    }

    fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.append_metadata(driver)
    }

    fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        self.replace_credential(credential)
    }

    fn release_idle(&self) {
        self.release_idle();
    }

    fn request_checks(&self) {
        self.request_checks();
    }

    fn end_recording(&self) -> Result<(), RecordingError> {
        self.end_recording()
    }

    fn dump_traces(&self, folder: &Path) -> Result<(), RecordingError> {
        self.dump_traces(folder)
    }

    fn close(&self) {
        self.close();
    }

    fn close_within(&self, time: Duration) -> Result<(), u32> {
        self.close_before(Instant::now() + time).map_err(|error| error.in_use)
    }

    fn again(&self) -> Box<dyn AnyClient> {
        Box::new(self.clone())
    }
}

impl AnyConnection for cenote_mio::PooledConnection<cenote_mio::MongoConnector> {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.command(database, command)
    }

    fn reauthenticate(&mut self) -> Result<(), OperationError> {
        self.reauthenticate()
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl AnyPin for cenote_mio::Pinned {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.with_connection(|connection| Ok(connection.command(database, command)?))
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned()
    }

    fn unpin(&mut self) {
        self.unpin();
    }
}
