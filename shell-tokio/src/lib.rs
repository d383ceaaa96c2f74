//! MongoDB's connection pool on tokio: the shell of [`cenote_core::pool`], with real sockets.
//!
//! The machine in the core takes every decision; this crate reads the clock, keeps the lock, opens
//! sockets, wakes whoever waits, and tells what happened.
//!
//! * [`Client`] has a pool for each host of a connection string, and watches the servers.
//! * [`Pool`] hands out [`PooledConnection`]s, which come back when they are dropped.
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
//! use cenote_tokio::Pool;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::connect_to("mongodb://db.example.com/?maxPoolSize=20")?;
//! pool.ready(); // A pool begins paused: somebody has to say that the server is there.
//! let mut connection = pool.check_out().await?;
//! let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await?;
//! assert_eq!(reply.get_f64("ok")?, 1.0);
//! drop(connection); // Comes back.
//! pool.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Cancellation and drop
//!
//! Every future here can be dropped at any point where it waits, and nothing is lost.
//!
//! | dropped | what happens |
//! |---|---|
//! | [`Pool::check_out`] before its turn came | the request leaves the queue; a connection that was started for it is finished for the others |
//! | [`Pool::check_out`] when a connection was on its way | that connection goes back to the pool, and to whoever waits next |
//! | a command, a message that is sent | the connection comes back as broken when its guard is dropped, and is closed |
//! | [`Connection::receive`] | nothing: the next call reads on |
//! | a [`RawStream`] before [`done`](RawStream::done) | the connection comes back as broken |
//! | a [`PooledConnection`] | it comes back: without waiting, without a task, without blocking but for what [subscribers](Builder::on_event) do |
//! | [`Pool::close`], [`Pool::close_before`] | the pool is closed all the same; nobody waits for what is still out |
//! | [`Pool::warm_up`] | what it has made stays in the pool, what it waits for is given up |
//! | the last [`Pool`] | the pool closes; guards that are still out come back to be closed |
//! | the runtime that made the pool | the pool closes: whoever waits hears so, and so does whoever asks later; what is out can still come back |
//!
//! `docs/cancellation.md` in the repository has every point where something waits, each with the test
//! that shows it.
//!
//! # Runtimes
//!
//! A pool lives in the runtime where it was made: there its timer runs, there connections are opened,
//! and there their sockets are registered. It may be used from any other runtime, or from none with
//! `block_on`, for as long as the first one runs. A `current_thread` runtime runs only while somebody
//! is in its `block_on`: in between, nothing is opened and no time is over.
//!
//! When that runtime ends, its sockets can neither be read nor written any more, and no deadline
//! would ever pass. So the pool closes with it. [`Pool::close`] then waits for what is out, as ever.
//! A service that changes its runtime makes a new pool.
//!
//! # Forks
//!
//! A child process has no share in its parent's connections: it calls
//! [`Pool::reset_after_fork`] in a runtime of its own, before anything else (FK-02).

mod builder;
mod client;
mod close;
mod connection;
mod connector;
mod desk;
mod establish;
mod failure;
mod fed;
mod fork;
mod guard;
mod home;
mod interrupt;
mod interruptible;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(test, cenote_model))]
mod model;
mod pool;
mod request;
mod shared;
mod sync;
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
pub use connection::{Connection, MongoConnector, RawStream};
pub use connector::{Connector, HandshakeReporter, Target};
pub use error::CloseTimeout;
pub use event::PoolEvent;
pub use failure::Failure;
pub use fork::ForkError;
pub use guard::PooledConnection;
pub use interruptible::Interruptible;
pub use leak::LeakReport;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use pool::Pool;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So do those of the page about the client.
#[cfg(doctest)]
#[doc = include_str!("../../docs/client.md")]
struct ClientPage;
