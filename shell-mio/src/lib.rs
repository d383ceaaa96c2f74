//! MongoDB's connection pool without an async runtime: the shell of [`cenote_core::pool`] on mio
//! and rustls, with real sockets.
//!
//! The machine in the core takes every decision; this crate reads the clock, keeps the lock, opens
//! sockets, wakes whoever waits, and tells what happened.
//!
//! * [`Pool`] hands out [`PooledConnection`]s, which come back when they are dropped. Whoever asks
//!   blocks; a thread of the pool turns the event loop on which connections are opened.
//! * [`PoolSource`] is the same pool in an application's own [`mio::Poll`]: nothing blocks, and
//!   there is no thread.
//! * [`Connector`] is how connections are made. [`Mongo`] is the one that is there: TCP, SOCKS5,
//!   UNIX domain sockets, TLS, hello, compression and authentication, as a connection string says.
//!   A driver with sockets of its own brings its own.
//! * [`Connection`] runs commands, exchanges whole messages for drivers that have commands of their
//!   own, and lends its [bytes](RawStream) to those that have a wire of their own.
//! * [`Builder::on_event`] and `tracing` tell what happens, in the machine's order.
//! * `Builder::metrics`, with the feature `metrics`, measures it with OpenTelemetry.
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
//! | `cenote-loop`, one for each pool, until the pool is closed | connects, shakes hands, says hello, authenticates; fires the pool's timer |
//! | `cenote-helper`, while a name is resolved | asks the operating system |
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
//! | [`PoolSource`] is dropped | connections that were being opened fail; the pool closes |

mod builder;
mod close;
mod connection;
mod connector;
mod desk;
mod drainer;
mod error;
mod establish;
mod event;
mod event_loop;
mod failure;
mod fork;
mod guard;
mod held;
mod interrupt;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod outbox;
mod parker;
mod pool;
mod request;
mod shared;
mod source;
mod thread;
mod timer;
mod try_check_out;
mod warm_up;
mod woken;

pub use builder::{BuildError, Builder};
pub use close::CloseTimeout;
pub use connection::{Connection, Lookup, Mongo, RawStream};
pub use connector::{Connector, Progress, Target};
pub use error::OperationError;
pub use event::PoolEvent;
pub use event_loop::{EventLoop, Watched};
pub use failure::Failure;
pub use fork::ForkError;
pub use guard::PooledConnection;
pub use held::HeldTooLong;
pub use interrupt::Interrupter;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use pool::Pool;
pub use source::{PoolSource, RequestId};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
