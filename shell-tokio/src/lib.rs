//! MongoDB's connection pool on tokio, with real TLS sockets.
//!
#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/start/pool.md)"))]
//!
//! [`cenote_core`] takes every decision, and [`cenote_shell`] is the shell around it: the lock, check-outs
//! and their cancellation, sockets, monitors. This crate is tokio as a runtime of that shell, and names its
//! types for tokio.
//!
//! * [`Client`] discovers the servers of a deployment, monitors them, and has a pool for each.
//! * [`Pool`] hands out [`PooledConnection`]s, which are checked in when they are dropped.
//! * [`Connector`] makes connections. [`MongoConnector`] speaks MongoDB's protocol: TCP, SOCKS5, Unix domain
//!   sockets, TLS, hello, compression and authentication, as a connection string says. A driver with sockets
//!   of its own implements `Connector<Tokio>`.
//! * [`Connection`] runs commands, exchanges whole messages for drivers that encode commands themselves, and
//!   lends its [bytes](RawStream).
//! * [`Builder`] sets everything else: event subscribers, recordings, metrics, the failure handler for SDAM.
//!
//! ```no_run
//! use cenote_tokio::{Pool, bson::rawdoc};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let pool = Pool::connect_to("mongodb://db.example.com/?maxPoolSize=20")?;
//!     pool.ready(); // A new pool is paused until it is marked ready.
//!     let mut connection = pool.check_out().await?;
//!     let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await?;
//!     assert_eq!(reply.get_f64("ok")?, 1.0);
//!     drop(connection); // Checked in.
//!     pool.close().await;
//!     Ok(())
//! }
//! ```
//!
//! A program needs no other dependency for it: [`cenote_core`], [`cenote_shell`] and [`bson`] are re-exported,
//! and what most programs need of them is here by name.
//!
//! # Cancellation and drop
//!
//! All futures are cancel-safe: dropping one never leaks a connection.
//!
//! | dropped | what happens |
//! |---|---|
//! | [`Pool::check_out`](cenote_shell::pool::Pool::check_out) in the wait queue | the request leaves the queue; a connection that was started for it is finished for the others |
//! | the same, with a connection delivered | that connection goes back to the pool, and to the next caller |
//! | a command, a message that is sent | the connection is checked in as broken when its guard is dropped, and closed |
//! | [`Connection::receive`](cenote_shell::connection::Connection::receive) | nothing: the next call reads on |
//! | a [`RawStream`] before [`done`](cenote_shell::connection::RawStream::done) | the connection is checked in as broken |
//! | a [`PooledConnection`] | it is checked in: without waiting, without a task, blocking only as long as [subscribers](cenote_shell::builder::Builder::on_event) do |
//! | `Pool::close`, `Pool::close_before` | the pool is closed all the same |
//! | `Pool::warm_up` | connections that were made stay in the pool, the rest is cancelled |
//! | the last [`Pool`] | the pool closes; guards that are still out are closed when they are checked in |
//! | the runtime that made the pool | the pool closes: callers that wait, and later ones, get an error; guards can still be checked in |
//!
//! `docs/timeouts.md` in the repository lists every await point.
//!
//! # Runtimes
//!
//! A pool lives in the runtime where it was made: there its timer runs, there connections are opened, and
//! there their sockets are registered. It may be used from any other runtime, or from none with `block_on`,
//! for as long as the first one runs. A `current_thread` runtime runs only while a thread is in its
//! `block_on`: in between, no connection is opened and no deadline fires.
//!
//! When that runtime ends, its sockets can neither be read nor written any more, and no deadline would ever
//! fire. So the pool closes with it.
//!
//! # Forks
//!
//! A child process has no share in its parent's connections: it calls
//! [`Pool::reset_after_fork`](cenote_shell::pool::Pool::reset_after_fork) in a runtime of its own, before
//! anything else.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod runtime;
mod stream;

pub use bson;
pub use cenote_core;
pub use cenote_core::address::{AddressError, ServerAddress};
pub use cenote_core::client::{
    ClientError, ClientStatus, HeartbeatEvent, ReadPreference, SelectionError, Selector,
    ServerStatus, TimeLimit, TopologyEvent,
};
pub use cenote_core::connect::{
    AccessToken, DriverInfo, SaslConversation, SaslMechanism, ServerApi,
};
pub use cenote_core::error::{
    CommandError, ConnectionError, InterruptedError, OperationError, PoolError, RetryWrites, Wait,
    WaitLimit,
};
pub use cenote_core::log::LogSettings;
pub use cenote_core::pool::{InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};
pub use cenote_core::topology::{TopologyDescription, TopologyKind};
pub use cenote_core::trace::Disclosure;
pub use cenote_core::uri::{ConnectionString, Credential, UriError, UriWarning};
pub use cenote_shell;
pub use cenote_shell::builder::BuildError;
pub use cenote_shell::client::ClientBuildError;
pub use cenote_shell::connection::operation::OperationOptions;
pub use cenote_shell::connection::{Connector, HandshakeReporter, IdleProbe, Interruptible};
pub use cenote_shell::error::CloseTimeout;
pub use cenote_shell::event::PoolEvent;
pub use cenote_shell::failure::Failure;
#[cfg(feature = "metrics")]
pub use cenote_shell::metrics::Metrics;
pub use cenote_shell::oidc::TokenRequest;
pub use cenote_shell::pool::leak::LeakReport;
pub use cenote_shell::runtime::fork::ForkError;
pub use cenote_shell::trace::{Recording, RecordingError};

pub use self::runtime::Tokio;
pub use self::stream::OpenStream;

/// A pool of connections to one server: [`cenote_shell::pool::Pool`].
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_tokio::Pool;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::connect_to("mongodb://db.example.com/?maxPoolSize=20")?;
/// pool.ready();
/// let idle = pool.warm_up(2).await?; // Optional: opens connections ahead of need.
/// let mut connection = pool.check_out().await?;
/// connection.command("admin", &rawdoc! { "ping": 1 }).await?;
/// drop(connection);
/// if let Some(connection) = pool.try_check_out()? {
///     println!("connection {} of {idle} was idle", connection.id());
/// }
/// pool.close().await;
/// # Ok(())
/// # }
/// ```
pub type Pool<K = MongoConnector> = cenote_shell::pool::Pool<Tokio, K>;

/// A connection that is checked out: [`cenote_shell::pool::PooledConnection`].
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_tokio::{OperationError, PooledConnection};
///
/// async fn ping(connection: &mut PooledConnection) -> Result<(), OperationError> {
///     connection.command("admin", &rawdoc! { "ping": 1 }).await.map(drop)
/// }
/// ```
pub type PooledConnection<K = MongoConnector> = cenote_shell::pool::PooledConnection<Tokio, K>;

/// Makes a [`Pool`]: [`cenote_shell::builder::Builder`].
///
/// Its `build` panics outside of a tokio runtime, or in one without time; in one without I/O no attempt to connect succeeds.
/// The deadlines of callers that wait are timers of that runtime, and do not come while nothing drives it. Event subscribers
/// run on the thread that uses the pool, or on one of the runtime's.
///
/// ```no_run
/// use cenote_tokio::{Builder, Pool};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pool: Pool = Builder::from_uri("mongodb://db.example.com/?maxPoolSize=20")?
///     .map_options(|options| options.with_min_pool_size(2))
///     .on_event(|event| println!("{event}"))
///     .on_leak(|leak| eprintln!("{leak}"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub type Builder<K = MongoConnector> = cenote_shell::builder::Builder<Pool<K>>;

/// Where a [`Connector`] connects to, and by when: [`cenote_shell::connection::Target`].
///
/// ```no_run
/// use cenote_core::error::{ConnectionError, Stage};
/// use cenote_tokio::{Builder, Connector, HandshakeReporter, Pool, Target, Tokio};
/// use tokio::net::TcpStream;
///
/// /// Opens TCP connections, without a handshake.
/// struct Plain;
///
/// impl Connector<Tokio> for Plain {
///     type Connection = TcpStream;
///     type Error = ConnectionError;
///
///     async fn connect(
///         &self,
///         target: Target,
///         _: HandshakeReporter,
///     ) -> Result<TcpStream, ConnectionError> {
///         let address = (target.address.host(), target.address.port().unwrap_or(27017));
///         let connected = TcpStream::connect(address).await;
///         connected.map_err(|error| ConnectionError::network(Stage::Tcp, error))
///     }
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pool: Pool<Plain> = Builder::new("db.example.com".parse()?, Plain).build()?;
/// # Ok(())
/// # }
/// ```
pub type Target = cenote_shell::connection::Target<Tokio>;

/// Opens connections as a connection string says: [`cenote_shell::connection::MongoConnector`].
///
/// ```no_run
/// use cenote_core::uri::ConnectionString;
/// use cenote_tokio::{Builder, MongoConnector, Pool};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let uri = ConnectionString::parse("mongodb://db.example.com/?tls=true")?;
/// let connector = MongoConnector::new(&uri)?.with_addresses(vec!["192.0.2.7".parse()?]);
/// let pool: Pool = Builder::new(uri.hosts[0].clone(), connector).build()?;
/// # Ok(())
/// # }
/// ```
pub type MongoConnector = cenote_shell::connection::MongoConnector<Tokio>;

/// A connection to a MongoDB server: [`cenote_shell::connection::Connection`].
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_core::error::ConnectionError;
/// use cenote_tokio::Connection;
///
/// async fn ping(connection: &mut Connection) -> Result<(), ConnectionError> {
///     println!("{:?}", connection.description());
///     connection.command("admin", &rawdoc! { "ping": 1 }).await.map(drop)
/// }
/// ```
pub type Connection = cenote_shell::connection::Connection<Tokio>;

/// The bytes of a connection that is checked out: [`cenote_shell::connection::RawStream`].
///
/// ```no_run
/// use cenote_tokio::Pool;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # async fn example(pool: Pool, message: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// let mut connection = pool.check_out().await?;
/// let mut stream = connection.raw_stream()?;
/// stream.write_all(message).await?; // Whole messages of the wire protocol.
/// let mut header = [0; 16];
/// stream.read_exact(&mut header).await?;
/// // …and the rest of the reply.
/// stream.done().await?; // Otherwise the connection is closed when it is checked in.
/// # Ok(())
/// # }
/// ```
pub type RawStream<'c> = cenote_shell::connection::RawStream<'c, Tokio>;

/// Pools for all servers of a deployment, with monitors: [`cenote_shell::client::Client`].
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_tokio::{Client, Selector};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new("mongodb://a.example.com,b.example.com/?replicaSet=rs0")?;
/// client.command("shop", &rawdoc! { "insert": "orders", "documents": [{}] }).await?;
/// let mut connection = client.check_out(&Selector::Secondary).await?;
/// connection.command("shop", &rawdoc! { "find": "orders" }).await?;
/// drop(connection);
/// client.close().await;
/// # Ok(())
/// # }
/// ```
pub type Client = cenote_shell::client::Client<Tokio>;

/// Makes a [`Client`]: [`cenote_shell::client::ClientBuilder`].
///
/// Its `build` panics outside of a tokio runtime, or in one without time. As for a [`Builder`], the runtime needs I/O, and has
/// to be driven.
///
/// ```no_run
/// use std::time::Duration;
///
/// use cenote_tokio::{Client, ClientBuilder};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client: Client = ClientBuilder::from_uri("mongodb://a.example.com/?maxPoolSize=20")?
///     .map_options(|options| options.with_leak_detection_threshold(Duration::from_secs(30)))
///     .on_event(|event| println!("{}: {event}", event.address))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub type ClientBuilder = cenote_shell::client::ClientBuilder<Client>;

/// A server that a cursor or a transaction stays with: [`cenote_shell::client::Pinned`].
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_core::pool::Purpose;
/// use cenote_tokio::{Client, ClientError, Selector};
///
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let mut cursor = client.pin(&Selector::Primary, Purpose::Cursor).await?;
/// let first = cursor.with_connection(async |connection| {
///     let reply = connection.command("shop", &rawdoc! { "find": "orders" }).await?;
///     Ok::<_, ClientError>(reply)
/// });
/// println!("{:?}", first.await?);
/// cursor.unpin(); // The cursor is exhausted.
/// # Ok(())
/// # }
/// ```
pub type Pinned = cenote_shell::client::Pinned<Tokio>;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So do those of the page about the client.
#[cfg(doctest)]
#[doc = include_str!("../../docs/client.md")]
struct ClientPage;
