//! What a pool can be asked to do, whichever shell it is: every call blocks.

mod mio_pool;
mod tokio_pool;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, InterruptedError, OperationError, PoolError};
use cenote_core::pool::{Event, Purpose, ServiceId};
use cenote_core::uri::ConnectionString;
use cenote_tokio::Failure;

use crate::conform::Target;

/// A pool of one server.
pub(super) trait Pool: Send + Sync {
    /// Waits for a connection.
    ///
    /// # Errors
    ///
    /// As the shell's own.
    fn check_out(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Box<dyn Connection>, PoolError>;
    /// Marks the pool as ready.
    fn ready(&self);
    /// Clears the pool.
    fn clear(&self, cause: ConnectionError, interrupt: bool);
    /// Tells servers of somebody who wraps the client, from now on.
    fn append_metadata(&self, driver: DriverInfo);
    /// Closes the pool, and says if something is still out in the end.
    fn close(&self) -> Result<(), String>;
    /// What another thread is telling just now has been told when this returns.
    fn catch_up(&self);
    /// How many connections are available.
    fn available(&self) -> u32;
}

/// A connection that is checked out; dropping it checks it in.
pub(super) trait Connection: Send {
    /// Runs a command, by the deadline if there is one.
    ///
    /// # Errors
    ///
    /// As the shell's own.
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        deadline: Option<Instant>,
    ) -> Result<RawDocumentBuf, Trouble>;
    /// The service at the other end.
    fn service_id(&self) -> Option<ServiceId>;
}

/// Why a command failed.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The connection, or the server's refusal.
    Connection(ConnectionError),
    /// The pool was cleared with an interrupt.
    Interrupted(InterruptedError),
}

/// Who is told of events.
pub(super) type OnEvent = Arc<dyn Fn(&Event<ConnectionError>, &ServerAddress) + Send + Sync>;
/// Who is shown failures, which are the same of both shells.
pub(super) type OnFailure = Arc<dyn Fn(&Failure<'_>) + Send + Sync>;

/// How long closing may take: more than any machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a pool on one of the shells; it is paused.
///
/// # Errors
///
/// Whatever keeps it from being made, and a target that has no sockets.
pub(super) fn open(
    target: Target,
    uri: &ConnectionString,
    on_event: OnEvent,
    on_failure: OnFailure,
) -> Result<Box<dyn Pool>, String> {
    match target {
        Target::Core => Err("the machine alone has no sockets".to_owned()),
        Target::Tokio => Ok(Box::new(tokio_pool::TokioPool::open(uri, on_event, on_failure)?)),
        Target::Mio => Ok(Box::new(mio_pool::MioPool::open(uri, on_event, on_failure)?)),
    }
}

/// The server of a connection string.
fn address(uri: &ConnectionString) -> Result<ServerAddress, String> {
    uri.hosts.first().cloned().ok_or_else(|| "no server to connect to".to_owned())
}

impl From<OperationError> for Trouble {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Connection(error) => Self::Connection(error),
            OperationError::Interrupted(error) => Self::Interrupted(error),
        }
    }
}
