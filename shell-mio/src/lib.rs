//! MongoDB's connection pool (CMAP) without an async runtime, on mio and rustls, with real sockets.
//!
#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/start/pool.md)"))]
//!
//! This crate is an [event loop](EventLoop) as a runtime of [`cenote_shell`], which drives the state machine
//! in [`cenote_core::pool`], and an API for callers that block.
//!
//! * [`Pool`] hands out [`PooledConnection`]s, which are checked in when they are dropped. Callers block; a
//!   thread of the pool turns the event loop that opens connections.
//! * [`Client`] discovers the servers of a deployment, monitors them, and has a pool for each: pools become
//!   ready and are cleared automatically. One thread does that for all of them.
//! * [`PoolSource`] is the pool in an application's own [`mio::Poll`]: nothing blocks, and there is no
//!   thread.
//! * [`Connector`] opens connections of any type. [`MongoConnector`] is the one for MongoDB: TCP, SOCKS5,
//!   Unix domain sockets, TLS, hello, compression and authentication, as in the connection string.
//! * [`Connection`] runs commands, exchanges whole messages for drivers that have commands of their own,
//!   and lends its [bytes](RawStream) to drivers with a protocol implementation of their own.
//! * [`Builder::on_event`] and `tracing` report events, in the order in which they happen.
//! * [`Builder::on_failure`] reports connections that failed to SDAM, which may clear the pool first.
//! * [`Builder::record`] writes a trace of everything that happens, which `cenote replay` replays.
//!   [`Builder::flight_recorder`] keeps the last of it for [`Pool::dump_trace`], and for
//!   [`Builder::dump_traces_into`] after an error.
//! * `Builder::metrics`, with the feature `metrics`, measures the pool with OpenTelemetry.
//!
//! ```no_run
//! use cenote_mio::{Pool, bson::rawdoc};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::connect_to("mongodb://db.example.com/?maxPoolSize=20")?;
//! pool.ready(); // A new pool is paused until it is marked ready.
//! let mut connection = pool.check_out()?;
//! let reply = connection.command("admin", &rawdoc! { "ping": 1 })?;
//! assert_eq!(reply.get_f64("ok")?, 1.0);
//! drop(connection); // Checks it in.
//! pool.close();
//! # Ok(())
//! # }
//! ```
//!
//! A program needs no other dependency for it: [`cenote_core`], [`cenote_shell`], [`bson`] and [`mio`] are
//! re-exported, and what most programs need of them is here by name.
//!
//! # Threads
//!
//! | thread | what it does |
//! |---|---|
//! | the caller's | checks out and in under one lock; reads and writes on its connection; keeps its own timeout |
//! | `cenote-loop`, one for each pool or for all pools of a client, until they are closed | connects, TLS, hello, authentication; monitors servers; timers |
//! | `cenote-trace`, while a pool is recorded or dumps automatically | writes traces |
//! | `cenote-helper`, 16 at most, while host names are resolved | asks the operating system |
//! | `cenote-helper`, while a key is derived | PBKDF2, once for each password and salt: the result is cached |
//!
//! # Cancellation and drop
//!
//! | | what happens |
//! |---|---|
//! | [`Pool::check_out`] times out | the caller leaves the wait queue; a connection that was being opened for it goes to the next caller |
//! | [`Pool::clear`] with an interrupt | operations that block on a connection fail at once: its socket is shut down |
//! | a [`PooledConnection`] is dropped | it is checked in, without blocking |
//! | the last [`Pool`] is dropped | the pool closes; connections in use are closed when they are checked in |
//! | the last [`Client`] is dropped | its monitors end, and its pools close |
//! | [`PoolSource`] is dropped | connections that were being opened fail; the pool closes |
//!
//! # Connectors of a driver's own
//!
//! A driver with sockets of its own implements [`Connector<EventLoop>`](Connector). If its way to connect
//! blocks, it runs on a thread:
//!
//! ```
//! use std::net::TcpStream;
//!
//! use cenote_mio::cenote_core::error::Stage;
//! use cenote_mio::{Builder, ConnectionError, Connector, EventLoop, HandshakeReporter, Interrupter, Target};
//!
//! struct Plain;
//!
//! impl Connector<EventLoop> for Plain {
//!     type Connection = TcpStream;
//!     type Error = ConnectionError;
//!
//!     async fn connect(
//!         &self,
//!         target: Target,
//!         _: HandshakeReporter,
//!     ) -> Result<TcpStream, ConnectionError> {
//!         let port = target.address.port().unwrap_or(27017);
//!         let address = (target.address.host().to_owned(), port);
//!         let connected = target.runtime.on_thread(|| TcpStream::connect(address)).await;
//!         let connected = connected.and_then(|connected| connected);
//!         connected.map_err(|error| ConnectionError::network(Stage::Tcp, error))
//!     }
//!
//!     fn interrupter(&self, connection: &TcpStream) -> Option<Interrupter> {
//!         let socket = connection.try_clone().ok()?;
//!         Some(Box::new(move || drop(socket.shutdown(std::net::Shutdown::Both))))
//!     }
//! }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let pool = Builder::new(listener.local_addr()?.to_string().parse()?, Plain).build()?;
//! pool.ready();
//! assert_eq!(pool.check_out()?.peer_addr()?, listener.local_addr()?);
//! pool.close();
//! # Ok(())
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod check_out;
mod client;
mod close;
mod connection;
mod event_loop;
mod fork;
mod loop_thread;
mod pool;
mod pooled_connection;
mod source;

pub use bson;
pub use builder::Builder;
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
pub use cenote_shell::connection::interrupt::Interrupter;
pub use cenote_shell::connection::operation::OperationOptions;
pub use cenote_shell::connection::{Connector, HandshakeReporter, IdleProbe, Lookup};
pub use cenote_shell::error::CloseTimeout;
pub use cenote_shell::event::PoolEvent;
pub use cenote_shell::failure::Failure;
#[cfg(feature = "metrics")]
pub use cenote_shell::metrics::Metrics;
pub use cenote_shell::oidc::TokenRequest;
pub use cenote_shell::pool::leak::LeakReport;
pub use cenote_shell::trace::{Recording, RecordingError};
pub use client::{Client, ClientBuilder, Pinned};
pub use connection::{Connection, MongoConnector, RawStream};
pub use event_loop::{EventLoop, OpenSocket, Watched};
pub use fork::ForkError;
pub use mio;
pub use pool::Pool;
pub use pooled_connection::PooledConnection;
pub use source::{PoolSource, RequestId};

/// Where to connect, and by when. Its `runtime` is the pool's [`EventLoop`].
pub type Target = cenote_shell::connection::Target<EventLoop>;

type CheckOutResult<K> = cenote_shell::pool::CheckOutResult<EventLoop, K>;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
