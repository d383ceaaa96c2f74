use std::fmt;
use std::io;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{InvalidOptions, PoolOptions, ServiceId, Snapshot};
use cenote_shell::builder::PoolPlan;
use cenote_shell::pool::{self, PoolDriver};

use crate::connection::MongoConnector;
use crate::event_loop::EventLoop;
use crate::loop_thread::LoopThread;
use crate::pooled_connection::PooledConnection;
use crate::{BuildError, Builder, CheckOutResult, Connector, Credential, RecordingError};

/// A pool of connections to one server, for callers that block. A clone is the same pool, which closes
/// when the last clone is dropped.
///
/// A new pool is paused: check-outs fail until it is marked [`ready`](Self::ready), by a monitor or by the
/// application, and again after each [`clear`](Self::clear).
pub struct Pool<K: Connector<EventLoop> = MongoConnector> {
    pool: pool::Pool<EventLoop, K>,
    thread: Arc<LoopThread>,
}

impl Pool {
    /// A pool for the first host of a connection string, with its options.
    ///
    /// # Errors
    ///
    /// The connection string is invalid, a file it names cannot be read, or the operating system has no
    /// event loop or thread.
    ///
    /// ```no_run
    /// use cenote_mio::Pool;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::connect_to("mongodb://app:pencil@db.example.com/?tls=true&maxPoolSize=20")?;
    /// pool.ready();
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_to(uri: &str) -> Result<Self, BuildError> {
        Builder::from_uri(uri)?.build()
    }

    /// A builder for the first host of a connection string, with its options.
    ///
    /// # Errors
    ///
    /// The connection string is invalid.
    ///
    /// ```no_run
    /// use cenote_mio::Pool;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::builder("mongodb://db.example.com/?maxPoolSize=20")?
    ///     .on_event(|event| println!("{event}"))
    ///     .on_leak(|leak| eprintln!("{leak}"))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(uri: &str) -> Result<Builder<MongoConnector>, BuildError> {
        Builder::from_uri(uri)
    }

    /// Adds the name of a driver or library to the client metadata of connections that are opened from now
    /// on: [`MongoConnector::append_metadata`].
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.driver().connector().append_metadata(driver)
    }

    /// Changes the user or the password without an outage: connections are opened with `credential` from now on, and
    /// those that exist retire. [`cenote_shell::pool::Pool::replace_credential`] says how.
    ///
    /// # Errors
    ///
    /// A mechanism that is not supported, or a credential that it cannot use; nothing changes then.
    ///
    /// ```no_run
    /// use cenote_mio::Credential;
    ///
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// pool.replace_credential(Credential::of_user("app", "n3w s3cret", "admin"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        self.pool.replace_credential(credential)
    }
}

impl<K: Connector<EventLoop>> Pool<K> {
    /// Without a thread: the caller turns the event loop.
    pub(crate) fn start(plan: PoolPlan<K>, event_loop: EventLoop) -> Result<Self, BuildError> {
        Ok(Self::new(pool::Pool::start(plan, event_loop)?))
    }

    pub(crate) fn new(pool: pool::Pool<EventLoop, K>) -> Self {
        Self { pool, thread: Arc::default() }
    }

    /// Marks the pool as ready: connections may be opened and checked out. Does nothing if the pool is
    /// ready or closed.
    pub fn ready(&self) {
        self.pool.ready();
    }

    /// Clears the pool: [`cenote_shell::pool::Pool::clear`].
    ///
    /// # Panics
    ///
    /// In load-balanced mode, where a [service](Self::clear_service) is cleared.
    pub fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.pool.clear(cause, interrupt);
    }

    /// Clears the connections to one service behind a load balancer. The pool stays ready.
    ///
    /// # Panics
    ///
    /// When the pool is not in load-balanced mode.
    pub fn clear_service(&self, cause: ConnectionError, service: ServiceId) {
        self.pool.clear_service(cause, service);
    }

    /// Closes each connection that no caller uses or waits for, before the process is frozen:
    /// [`cenote_shell::pool::Pool::release_idle`].
    pub fn release_idle(&self) {
        self.pool.release_idle();
    }

    /// Changes the options of the running pool. Options that are not set get their defaults.
    ///
    /// # Errors
    ///
    /// The options contradict each other. Nothing changes then.
    ///
    /// # Panics
    ///
    /// When `loadBalanced` changes.
    ///
    /// ```no_run
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// pool.set_options(pool.options().with_max_pool_size(50))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions> {
        self.pool.set_options(options)
    }

    /// The options as they were set: [`cenote_shell::pool::Pool::options`].
    #[must_use]
    pub fn options(&self) -> PoolOptions {
        self.pool.options()
    }

    /// How many events were dropped because a subscriber blocks:
    /// [`Builder::event_queue`](cenote_shell::builder::Builder::event_queue).
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.pool.dropped_events()
    }

    /// Says how long a round trip to the server takes at least:
    /// [`cenote_shell::pool::Pool::set_min_round_trip`].
    pub fn set_min_round_trip(&self, time: Duration) {
        self.pool.set_min_round_trip(time);
    }

    /// The state and the counts now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    /// The server that the pool is for.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        self.pool.address()
    }

    /// Writes the content of the [flight recorder](crate::Builder::flight_recorder) into a file:
    /// [`cenote_shell::pool::Pool::dump_trace`].
    ///
    /// # Errors
    ///
    /// There is no flight recorder, or the file cannot be written.
    pub fn dump_trace(&self, path: impl AsRef<Path>) -> Result<(), RecordingError> {
        self.pool.dump_trace(path)
    }

    /// As [`dump_trace`](Self::dump_trace), into a writer, which is returned. It need not buffer.
    ///
    /// # Errors
    ///
    /// There is no flight recorder, or those of the writer.
    pub fn write_trace<W: io::Write>(&self, sink: W) -> Result<W, RecordingError> {
        self.pool.write_trace(sink)
    }

    /// Ends [the recording](crate::Builder::record), and blocks until the trace is complete:
    /// [`cenote_shell::pool::Pool::end_recording`].
    ///
    /// # Errors
    ///
    /// What kept the trace from being written completely.
    pub fn end_recording(&self) -> Result<(), RecordingError> {
        self.pool.end_recording_blocking()
    }

    pub(crate) fn driver(&self) -> &Arc<PoolDriver<EventLoop, K>> {
        self.pool.driver()
    }

    pub(crate) fn end_inspection(&self) {
        self.pool.end_inspection();
    }

    pub(crate) fn thread(&self) -> &LoopThread {
        &self.thread
    }

    pub(crate) fn guard(
        &self,
        answer: CheckOutResult<K>,
        caller: &'static Location<'static>,
    ) -> Result<PooledConnection<K>, PoolError> {
        self.driver().guard(answer, caller).map(PooledConnection::new)
    }
}

impl<K: Connector<EventLoop>> Clone for Pool<K> {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), thread: Arc::clone(&self.thread) }
    }
}

impl<K: Connector<EventLoop>> fmt::Debug for Pool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}
