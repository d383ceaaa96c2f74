//! What a pool has to implement.

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError};
use cenote_core::pool::{PoolOptions, ServiceId};
use cenote_core::uri::ConnectionString;

use crate::counts::Counts;
use crate::error::OperationError;
use crate::recorder::{Progress, Recorder, Reply};
use crate::request::CheckOutRequest;
use crate::scenario::{FailPoint, Log, LogMessage};

/// A kind of pool: it opens one for each scenario.
pub trait Target: Sync {
    /// The pool of one scenario.
    type Pool: Pool;

    /// A short name for reports, such as `tokio`. Scenario files can name it in `notOn`.
    fn name(&self) -> &str;

    /// Creates a pool, which is paused and has no connection. It has to
    ///
    /// * pass every event to [`Setup::recorder`], `ConnectionPoolCreated` included,
    /// * show every error of a connection to SDAM, and clear itself if SDAM says so
    ///   ([`cenote_core::sdam::verdict`]); there is no monitor.
    ///
    /// # Errors
    ///
    /// If the options are invalid; some scenarios expect that. Any other error fails the scenario.
    fn open(&self, setup: Setup) -> Result<Self::Pool, String>;
}

/// What a pool is created with.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The options of the pool.
    pub options: PoolOptions,
    /// The server, with TLS options, credentials and the application name that connections send. For
    /// targets without servers it is `mongodb://localhost:27017`, which is not to be connected to.
    pub uri: ConnectionString,
    /// The fail point of the server. The server has it already: this is for targets that simulate it.
    pub fail_point: Option<FailPoint>,
    /// The log settings, if the scenario is about logging. See [`Pool::log_messages`].
    pub log: Option<Log>,
    /// Takes the events of the pool.
    pub recorder: Recorder,
}

impl Setup {
    pub(crate) const fn new(
        options: PoolOptions,
        uri: ConnectionString,
        fail_point: Option<FailPoint>,
        log: Option<Log>,
        recorder: Recorder,
    ) -> Self {
        Self { options, uri, fail_point, log, recorder }
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> ServerAddress {
        match self.uri.hosts.first() {
            Some(address) => address.clone(),
            None => unreachable!("a connection string has a host"),
        }
    }
}

/// A pool, as scenarios use it. All methods are called by one thread, and none of them may block,
/// apart from [`wait`](Self::wait), [`flush`](Self::flush) and [`finish`](Self::finish).
///
/// The five methods without a default are enough for the official files of `cmap-format`. Scenarios that
/// need one of the others are reported as not applicable if it is not implemented.
pub trait Pool {
    /// A connection that is checked out.
    type Connection;
    /// A check-out that has been started, for [`cancel`](Self::cancel). `()` if the pool cannot cancel.
    type Waiter;

    /// Starts to check out a connection. The outcome goes to `reply`, at once or later, from any
    /// thread: an async pool spawns a task, a blocking pool a thread.
    fn check_out(
        &mut self,
        request: CheckOutRequest,
        reply: Reply<Self::Connection>,
    ) -> Self::Waiter;

    /// Checks in a connection. With an error, an operation on the connection has failed with it:
    /// the pool shows it to SDAM and closes the connection.
    fn check_in(&mut self, connection: Self::Connection, error: Option<ConnectionError>);

    /// Marks the pool as ready.
    fn ready(&mut self);

    /// Clears the pool; with `interrupt`, connections in use are interrupted.
    fn clear(&mut self, cause: ConnectionError, interrupt: bool);

    /// Closes the pool. Does not wait for connections in use. Also called on a closed pool.
    fn close(&mut self);

    /// How many connections and check-outs there are.
    ///
    /// # Errors
    ///
    /// Not implemented by default.
    fn counts(&mut self) -> Result<Counts, OperationError> {
        Err(OperationError::unsupported("counts"))
    }

    /// Cancels a check-out; a connection that it gets nevertheless can still go to its [`Reply`].
    ///
    /// # Errors
    ///
    /// Not implemented by default.
    fn cancel(&mut self, waiter: Self::Waiter) -> Result<(), OperationError> {
        drop(waiter);
        Err(OperationError::unsupported("cancel"))
    }

    /// The service behind the load balancer that the connection belongs to.
    ///
    /// # Errors
    ///
    /// Not implemented by default.
    fn service_id(
        &mut self,
        connection: &Self::Connection,
    ) -> Result<Option<ServiceId>, OperationError> {
        let _ = connection;
        Err(OperationError::unsupported("service_id"))
    }

    /// Clears the connections of one service.
    ///
    /// # Errors
    ///
    /// Not implemented by default.
    fn clear_service(
        &mut self,
        cause: ConnectionError,
        service: ServiceId,
    ) -> Result<(), OperationError> {
        let _ = (cause, service);
        Err(OperationError::unsupported("clear_service"))
    }

    /// Replaces the options of the running pool.
    ///
    /// # Errors
    ///
    /// Not implemented by default.
    fn set_options(&mut self, options: PoolOptions) -> Result<(), OperationError> {
        let _ = options;
        Err(OperationError::unsupported("set_options"))
    }

    /// Checks in a connection of another pool of the same target. If this pool rejects it, it is
    /// returned.
    ///
    /// # Errors
    ///
    /// Not implemented by default. [`OperationError::Failed`] if the pool accepts the connection.
    fn check_in_foreign(
        &mut self,
        connection: Self::Connection,
    ) -> Result<Option<Self::Connection>, OperationError> {
        drop(connection);
        Err(OperationError::unsupported("check_in_foreign"))
    }

    /// The driver's connection id, as events have it; only needed for
    /// [`check_in_again`](Self::check_in_again).
    fn connection_id(&self, connection: &Self::Connection) -> Option<u64> {
        let _ = connection;
        None
    }

    /// Checks in a connection a second time, which the pool has to reject.
    ///
    /// # Errors
    ///
    /// Not implemented by default: with many pools the types prevent it. [`OperationError::Failed`]
    /// if the pool accepts the connection.
    fn check_in_again(&mut self, connection_id: u64) -> Result<(), OperationError> {
        let _ = connection_id;
        Err(OperationError::unsupported("check_in_again"))
    }

    /// Treats the pool as that of a forked child process.
    ///
    /// # Errors
    ///
    /// Not implemented by default.
    fn reset_after_fork(&mut self) -> Result<(), OperationError> {
        Err(OperationError::unsupported("reset_after_fork"))
    }

    /// All messages that were logged, [filtered](Log::filter) by the log settings. Called if the
    /// scenario is about logging.
    ///
    /// # Errors
    ///
    /// Not implemented by default.
    fn log_messages(&mut self) -> Result<Vec<LogMessage>, OperationError> {
        Err(OperationError::unsupported("log_messages"))
    }

    /// Blocks until the pool has recorded the events of everything that has happened. For pools whose
    /// events come from other threads; does nothing by default.
    fn flush(&mut self) {}

    /// Blocks until there is [progress](Progress), at most for `limit`. By default it blocks the
    /// thread. A pool on a single-threaded runtime runs that meanwhile; a pool under virtual time
    /// advances it to the next thing that happens, at most by `limit`.
    fn wait(&mut self, progress: &Progress, limit: Duration) {
        progress.wait(limit);
    }

    /// The time since the scenario began, if it is virtual. By default time is real.
    ///
    /// Under virtual time, durations in events have to be exact.
    fn virtual_time(&self) -> Option<Duration> {
        None
    }

    /// Called once the pool is closed and all connections are checked in. Waits until everything is
    /// closed, at most for some seconds.
    ///
    /// # Errors
    ///
    /// What is left. Returns `Ok` by default: a connection without `ConnectionClosed` is detected
    /// anyway.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// How a scenario's thread fails.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// An error of the pool, which the scenario can expect.
    Pool(PoolError),
    /// The scenario cannot continue, which none expects.
    Script(String),
    /// The pool, or the server, cannot play the scenario.
    Unsupported(String),
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Unsupported(reason) => Self::Unsupported(reason),
            OperationError::Failed(reason) => Self::Script(reason),
        }
    }
}
