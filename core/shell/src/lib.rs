//! MongoDB's connection pool for any runtime: the shell around the machine in [`cenote_core`].
//!
#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/embedding.md)"))]
//!
//! The machine decides, this crate acts: it holds the lock, reads the clock, opens and closes sockets, wakes
//! callers, runs callbacks, watches servers, records traces. All of that is generic over a
//! [`Runtime`](runtime::Runtime), which takes about a page to implement. `cenote-tokio`, `cenote-mio` and
//! the example `cenote-smol` are three implementations; copy the last one for another runtime.
//!
//! | to | look at |
//! |---|---|
//! | run the pool on another runtime | [`runtime`]: [`Runtime`](runtime::Runtime) and [`Network`](runtime::Network) |
//! | pool connections of your own | [`connection::Connector`] |
//! | give the pool another face, such as one that blocks | [`pool::PoolDriver`], [`client::ClientInner`] |
//! | decide for yourself when to lock, queue and wake | `cenote_core::pool`, with `cenote_core::outbox` and [`runtime::wake_list`] |
//!
//! ```no_run
//! use cenote_core::error::ConnectionError;
//! use cenote_shell::builder::Builder;
//! use cenote_shell::connection::{Connector, HandshakeReporter, Target};
//! use cenote_shell::pool::Pool;
//! use cenote_shell::runtime::CurrentRuntime;
//!
//! /// Makes connections of the driver's own type, on any runtime.
//! struct Numbers;
//!
//! impl<R: CurrentRuntime> Connector<R> for Numbers {
//!     type Connection = u64;
//!     type Error = ConnectionError;
//!
//!     async fn connect(
//!         &self,
//!         target: Target<R>,
//!         _: HandshakeReporter,
//!     ) -> Result<u64, ConnectionError> {
//!         Ok(target.connection_id)
//!     }
//! }
//!
//! async fn first_connection<R: CurrentRuntime>() -> Result<u64, Box<dyn std::error::Error>> {
//!     let pool: Pool<R, Numbers> = Builder::new("db.example.com".parse()?, Numbers).build()?;
//!     pool.ready();
//!     let connection = pool.check_out().await?;
//!     Ok(*connection)
//! }
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `tls` | [`MongoConnector`](connection::MongoConnector), [`Client`](client::Client) and monitors: connections as a connection string describes them, with TLS by rustls |
//! | `srv` | `mongodb+srv://` in clients: SRV and TXT records, looked up on a thread of its own |
//! | `metadata-services` | `ENVIRONMENT:azure` and `ENVIRONMENT:gcp` of MONGODB-OIDC |
//! | `ring` (on by default) | the cryptography of TLS, where neither the application nor the process has chosen another |
//! | `snappy`, `zlib` (both on by default), `zstd` | a compressor each |
//! | `metrics` | OpenTelemetry's metrics of a pool |
//! | `tokio` | tokio's I/O traits on streams that a pool lends |
//!
//! # Panics, lost tasks, lost locks
//!
//! A panic in a callback, a connector, a waker or the drop of a connection is contained where it happens. A
//! task that is lost with its runtime still answers the machine. A lock that was held by a panicking thread
//! is taken as it is: the machine finishes each input, or the panic was in the shell.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations)]

pub mod aws;
pub mod builder;
#[cfg(feature = "tls")]
pub mod client;
pub mod connection;
pub mod error;
pub mod event;
pub mod failure;
#[cfg(unix)]
pub mod inspect;
pub mod log;
#[cfg(feature = "metrics")]
pub mod metrics;
mod notifications;
pub mod oidc;
pub mod pool;
pub mod runtime;
mod spans;
#[cfg(feature = "tls")]
pub mod tls;
pub mod trace;

// What appears in this crate's API.
pub use bson;
pub use cenote_core;
pub use futures_io;
#[cfg(feature = "metrics")]
pub use opentelemetry;
#[cfg(feature = "tls")]
pub use rustls;
pub use socket2;
