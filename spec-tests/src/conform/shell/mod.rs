//! The shells with real sockets, behind one trait: all calls block, whatever the shell.
//!
//! All formats with sockets are played through this trait. A new target needs a variant of
//! [`Target`] and an [executor](asynchronous::Executor) like [`tokio`] and [`smol`], or an implementation
//! like [`mio`] if its callers block.

mod asynchronous;
mod mio;
mod smol;
mod tokio;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, HeartbeatEvent, Selector, ServerStatus, TopologyEvent};
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, OperationError, PoolError};
use cenote_core::log::LogSettings;
use cenote_core::pool::{Event, InvalidOptions, PoolOptions, Purpose, ServiceId, Snapshot};
use cenote_core::topology::TopologyDescription;
use cenote_core::uri::{ConnectionString, UriError};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::failure::Failure;

use self::asynchronous::AsyncShell;
use super::target::Target;

/// Creates pools and clients.
pub(super) trait Shell: Send + Sync {
    /// Creates a pool, which is paused.
    ///
    /// # Errors
    ///
    /// If the options, or what the connection string names, are invalid.
    fn pool(&self, setup: PoolSetup) -> Result<Arc<dyn Pool>, String>;

    /// Creates a client.
    ///
    /// # Errors
    ///
    /// If the options, or what the connection string names, are invalid.
    fn client(&self, setup: ClientSetup<'_>) -> Result<Box<dyn Client>, String>;
}

/// What a client is created with.
#[derive(Default)]
pub(super) struct ClientSetup<'a> {
    pub(super) uri: &'a str,
    /// Of its pools, if not those of the connection string.
    pub(super) options: Option<PoolOptions>,
    /// What its callback for access tokens returns, if it has one.
    pub(super) token: Option<&'static str>,
    pub(super) on_event: Option<OnEvent>,
    pub(super) on_heartbeat: Option<OnHeartbeat>,
    pub(super) on_topology_event: Option<OnTopologyEvent>,
}

/// What a pool is created with.
pub(super) struct PoolSetup {
    /// The server, and how to connect to it.
    pub(super) uri: ConnectionString,
    pub(super) options: PoolOptions,
    pub(super) log: Option<LogSettings>,
    pub(super) on_event: OnEvent,
    pub(super) on_failure: Option<OnFailure>,
}

/// A pool of one server.
pub(super) trait Pool: Send + Sync {
    /// Waits for a connection.
    fn check_out(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Box<dyn Connection>, PoolError>;

    /// Starts to wait for a connection; returns how to cancel that, if it can be cancelled.
    fn start_check_out(
        self: Arc<Self>,
        purpose: Purpose,
        deadline: Option<Instant>,
        done: Done,
    ) -> Option<Cancel>;

    fn ready(&self);
    fn clear(&self, cause: ConnectionError, interrupt: bool);
    fn clear_service(&self, cause: ConnectionError, service: ServiceId);
    fn set_options(&self, options: PoolOptions) -> Result<(), InvalidOptions>;
    fn snapshot(&self) -> Snapshot;

    /// Closes the pool and waits until all connections are checked in, at most for `limit`.
    ///
    /// # Errors
    ///
    /// How many are still checked out.
    fn close_within(&self, limit: Duration) -> Result<(), String>;

    /// Returns once other threads have emitted the events of everything that has happened.
    fn flush(&self);
}

/// A connection that is checked out; dropping it checks it in.
pub(super) trait Connection: Send {
    /// Runs a command, at most for this time. The error is a timeout then, and the connection
    /// unusable.
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        within: Option<Duration>,
    ) -> Result<RawDocumentBuf, OperationError>;

    fn service_id(&self) -> Option<ServiceId>;
    fn mark_errored(&mut self, error: ConnectionError);
}

/// A client of one or more servers.
pub(super) trait Client: Send + Sync {
    fn check_out(
        &self,
        selector: &Selector,
        options: OperationOptions,
    ) -> Result<Box<dyn Connection>, ClientError>;
    fn pin(
        &self,
        selector: &Selector,
        purpose: Purpose,
        options: OperationOptions,
    ) -> Result<Box<dyn Pin>, ClientError>;
    fn command(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError>;

    fn servers(&self) -> Vec<ServerStatus>;
    fn topology(&self) -> Arc<TopologyDescription>;

    /// The pool of a host of the connection string.
    fn pool(&self, address: &ServerAddress) -> Option<Arc<dyn Pool>>;

    fn append_metadata(&self, driver: DriverInfo) -> bool;

    /// As that of a pool.
    ///
    /// # Errors
    ///
    /// How many connections are still checked out.
    fn close_within(&self, limit: Duration) -> Result<(), String>;
}

/// The server of a cursor or a transaction. Dropping it unpins it.
pub(super) trait Pin: Send {
    /// Runs a command on the connection that is pinned, or on one to the same server. `begin` is told before that which
    /// service it goes to.
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        begin: &mut dyn FnMut(Option<ServiceId>),
    ) -> Result<RawDocumentBuf, ClientError>;
}

/// Takes events.
pub(super) type OnEvent = Arc<dyn Fn(&Event<ConnectionError>, &ServerAddress) + Send + Sync>;
/// Takes heartbeats.
pub(super) type OnHeartbeat = Arc<dyn Fn(&HeartbeatEvent) + Send + Sync>;
/// Takes events of the topology and its servers.
pub(super) type OnTopologyEvent = Arc<dyn Fn(&TopologyEvent) + Send + Sync>;
/// Takes failures.
pub(super) type OnFailure = Arc<dyn Fn(&Failure<'_>) + Send + Sync>;
/// Takes the outcome of a check-out.
pub(super) type Done = Box<dyn FnOnce(Result<Box<dyn Connection>, PoolError>) + Send>;
/// Cancels a check-out.
pub(super) type Cancel = Box<dyn FnOnce() + Send>;

/// How long closing may take: more than any machine needs.
pub(super) const CLOSE_LIMIT: Duration = Duration::from_secs(20);

/// The shell of a target.
///
/// # Errors
///
/// If it cannot be started, or the target has no sockets.
pub(super) fn of(target: Target) -> Result<Box<dyn Shell>, String> {
    match target {
        Target::Core | Target::C => Err("the state machine alone has no sockets".to_owned()),
        Target::Tokio => Ok(Box::new(AsyncShell(tokio::OnTokio::new()?))),
        Target::Mio => Ok(Box::new(mio::Mio)),
        Target::Smol => Ok(Box::new(AsyncShell(smol::OnSmol))),
    }
}

/// Waits for a connection on a thread of its own, for pools that block.
fn check_out_on_a_thread(
    pool: Arc<impl Pool + ?Sized + 'static>,
    purpose: Purpose,
    deadline: Option<Instant>,
    done: Done,
) {
    thread::spawn(move || done(pool.check_out(purpose, deadline)));
}

/// For a command that may take this time, which may be none at all.
fn options(within: Option<Duration>) -> OperationOptions {
    let options = OperationOptions::new();
    within.map_or(options, |time| options.with_deadline(Instant::now() + time))
}

/// The server of a connection string.
pub(super) fn address(uri: &ConnectionString) -> Result<ServerAddress, String> {
    uri.hosts.first().cloned().ok_or_else(|| UriError::Srv.to_string())
}
