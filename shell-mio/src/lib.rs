//! MongoDB's connection pool without an async runtime: the shell of [`cenote_core::pool`] on mio
//! and rustls, with real sockets.
//!
//! The machine in the core takes every decision; this crate reads the clock, keeps the lock, opens
//! sockets, wakes whoever waits, and tells what happened.
//!
//! * [`Pool`] hands out [`PooledConnection`]s, which come back when they are dropped. Whoever asks
//!   blocks; a thread of the pool turns the event loop on which connections are opened.
//! * [`Client`] has a pool for each host of a connection string, and watches the servers: pools get
//!   ready and are cleared by themselves. One thread does that for all of them.
//! * [`PoolSource`] is the same pool in an application's own [`mio::Poll`]: nothing blocks, and
//!   there is no thread.
//! * [`Connector`] is how connections are made. [`MongoConnector`] is the one that is there: TCP, SOCKS5,
//!   UNIX domain sockets, TLS, hello, compression and authentication, as a connection string says.
//!   A driver with sockets of its own brings its own.
//! * [`Connection`] runs commands, exchanges whole messages for drivers that have commands of their
//!   own, and lends its [bytes](RawStream) to those that have a wire of their own.
//! * [`Builder::on_event`] and `tracing` tell what happens, in the machine's order.
//! * `Builder::metrics`, with the feature `metrics`, measures it with OpenTelemetry.
//! * [`Builder::record`] writes all that happens into a trace, which `cenote replay` plays again;
//!   [`Builder::flight_recorder`] keeps the last of it for [`Pool::dump_trace`], and
//!   [`Builder::dump_traces_into`] for when something goes wrong.
//! * [`Builder::on_failure`] lets SDAM have its say about a connection that failed.
//!
//! ```no_run
//! use bson::rawdoc;
//! use cenote_mio::Pool;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::connect_to("mongodb://db.example.com/?maxPoolSize=20")?;
//! pool.ready(); // A pool begins paused: somebody has to say that the server is there.
//! let mut connection = pool.check_out()?;
//! let reply = connection.command("admin", &rawdoc! { "ping": 1 })?;
//! assert_eq!(reply.get_f64("ok")?, 1.0);
//! drop(connection); // Comes back.
//! pool.close();
//! # Ok(())
//! # }
//! ```
//!
//! # Threads
//!
//! | thread | what it does |
//! |---|---|
//! | a caller's | checks out and in under one lock; reads and writes what it sends on its connection; sees to its own timeout |
//! | `cenote-loop`, one for each pool or for all pools of a client, until they are closed | connects, shakes hands, says hello, authenticates; talks to servers that are watched; fires timers |
//! | `cenote-trace`, while a pool is recorded or dumps by itself | writes traces |
//! | `cenote-helper`, sixteen at most, while names are resolved | asks the operating system |
//! | `cenote-helper`, while a key is derived | PBKDF2, once for each password and salt: its result is kept |
//!
//! # Waiting and drop
//!
//! | | what happens |
//! |---|---|
//! | [`Pool::check_out`] runs out of time | the request leaves the queue; a connection that was started for it is finished for the others |
//! | [`Pool::clear`] with an interrupt | commands that block on a connection fail at once: its socket is shut down |
//! | a [`PooledConnection`] is dropped | it comes back: without waiting, without blocking |
//! | the last [`Pool`] is dropped | the pool closes; guards that are still out come back to be closed |
//! | the last [`Client`] is dropped | its monitors end, and its pools close |
//! | [`PoolSource`] is dropped | connections that were being opened fail; the pool closes |

mod builder;
mod client;
mod close;
mod connection;
mod connector;
mod desk;
mod drainer;
mod establish;
mod event_loop;
mod failure;
mod fed;
mod fork;
mod guard;
mod interrupt;
#[cfg(feature = "metrics")]
mod metrics;
mod parker;
mod pool;
mod request;
mod shared;
mod source;
mod thread;
mod timer;
mod trace;
mod try_check_out;
mod warm_up;
mod woken;

// What both shells have.
use cenote_shell::{dial, error, event, leak, outbox, transport_error};

pub use cenote_shell::trace::{Recording, RecordingError};

pub use builder::{BuildError, Builder};
pub use cenote_core::client::{ClientError, SelectionError, Selector, ServerEvent, ServerStatus};
pub use cenote_core::error::OperationError;
pub use client::{Client, ClientBuildError, ClientBuilder, Pinned};
pub use connection::{Connection, Lookup, MongoConnector, OpenSocket, RawStream};
pub use connector::{Connector, HandshakeReporter, Target};
pub use error::CloseTimeout;
pub use event::PoolEvent;
pub use event_loop::{EventLoop, Watched};
pub use failure::Failure;
pub use fork::ForkError;
pub use guard::PooledConnection;
pub use interrupt::Interrupter;
pub use leak::LeakReport;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use pool::Pool;
pub use source::{PoolSource, RequestId};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
