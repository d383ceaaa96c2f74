//! MongoDB's connection pool on tokio, with real TLS sockets.
//!
#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/start/pool.md)"))]
//!
//! [`cenote_core`] takes every decision, and [`cenote_shell`] is the shell around it: the lock, check-outs
//! and their cancellation, sockets, monitors. This crate is tokio as a runtime of that shell, and names its
//! types for tokio.
//!
//! * [`Client`] has a pool for each host of a connection string, and monitors the servers.
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
//! `docs/cancellation.md` in the repository lists every await point with its test.
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
pub use cenote_core::client::{ClientError, SelectionError, Selector, ServerEvent, ServerStatus};
pub use cenote_core::connect::{DriverInfo, ServerApi};
pub use cenote_core::error::{
    CommandError, ConnectionError, InterruptedError, OperationError, PoolError, RetryWrites, Wait,
    WaitLimit,
};
pub use cenote_core::log::LogSettings;
pub use cenote_core::pool::{InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};
pub use cenote_core::trace::Disclosure;
pub use cenote_core::uri::{ConnectionString, UriError, UriWarning};
pub use cenote_shell;
pub use cenote_shell::builder::BuildError;
pub use cenote_shell::client::ClientBuildError;
pub use cenote_shell::connection::{Connector, HandshakeReporter, Interruptible};
pub use cenote_shell::error::CloseTimeout;
pub use cenote_shell::event::PoolEvent;
pub use cenote_shell::failure::Failure;
pub use cenote_shell::fork::ForkError;
pub use cenote_shell::leak::LeakReport;
#[cfg(feature = "metrics")]
pub use cenote_shell::metrics::Metrics;
pub use cenote_shell::trace::{Recording, RecordingError};

pub use self::runtime::Tokio;
pub use self::stream::OpenStream;

/// A pool of connections to one server: [`cenote_shell::pool::Pool`].
pub type Pool<K = MongoConnector> = cenote_shell::pool::Pool<Tokio, K>;

/// A connection that is checked out: [`cenote_shell::pool::PooledConnection`].
pub type PooledConnection<K = MongoConnector> = cenote_shell::pool::PooledConnection<Tokio, K>;

/// Makes a [`Pool`]: [`cenote_shell::builder::Builder`].
///
/// Its `build` panics outside of a tokio runtime, or in one without time. Event subscribers run on the
/// thread that uses the pool, or on one of the runtime's.
pub type Builder<K = MongoConnector> = cenote_shell::builder::Builder<Pool<K>>;

/// Where a [`Connector`] connects to, and by when: [`cenote_shell::connection::Target`].
pub type Target = cenote_shell::connection::Target<Tokio>;

/// Opens connections as a connection string says: [`cenote_shell::connection::MongoConnector`].
pub type MongoConnector = cenote_shell::connection::MongoConnector<Tokio>;

/// A connection to a MongoDB server: [`cenote_shell::connection::Connection`].
pub type Connection = cenote_shell::connection::Connection<Tokio>;

/// The bytes of a connection that is checked out: [`cenote_shell::connection::RawStream`].
pub type RawStream<'c> = cenote_shell::connection::RawStream<'c, Tokio>;

/// Pools for all hosts of a connection string, with monitors: [`cenote_shell::client::Client`].
pub type Client = cenote_shell::client::Client<Tokio>;

/// Makes a [`Client`]: [`cenote_shell::client::ClientBuilder`].
///
/// Its `build` panics outside of a tokio runtime, or in one without time and I/O.
pub type ClientBuilder = cenote_shell::client::ClientBuilder<Client>;

/// A server that a cursor or a transaction stays with: [`cenote_shell::client::Pinned`].
pub type Pinned = cenote_shell::client::Pinned<Tokio>;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So do those of the page about the client.
#[cfg(doctest)]
#[doc = include_str!("../../docs/client.md")]
struct ClientPage;
