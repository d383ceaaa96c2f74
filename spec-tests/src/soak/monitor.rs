use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bson::{RawDocument, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::CheckOutError;
use cenote_core::sdam::{self, PoolVerdict};
use cenote_core::uri::ConnectionString;
use cenote_tokio::{BuildError, Failure, OperationError, Pool};

use crate::blocking::{Connection, Connector};

/// Pings on a connection of its own, and marks a pool ready or clears it, as a monitor does. Blocks.
pub(super) struct Monitor {
    connector: Connector,
    address: ServerAddress,
    connection: Option<Connection>,
    pause: Duration,
}

impl Monitor {
    /// For the server of a connection string, with a pause between two pings.
    pub(super) fn new(uri: &str, pause: Duration) -> Result<Self, BuildError> {
        let uri = ConnectionString::parse(uri)?;
        let connector = Connector::new(&uri)?;
        let address = uri.hosts.into_iter().next();
        let address = address.unwrap_or_else(|| unreachable!("a connection string has a host"));
        Ok(Self { connector, address, connection: None, pause })
    }

    /// `tell` marks the pool ready, or clears it with or without an interrupt.
    pub(super) fn watch(
        mut self,
        is_over: &AtomicBool,
        mut tell: impl FnMut(Result<(), (ConnectionError, bool)>),
    ) {
        while !is_over.load(Ordering::Relaxed) {
            match self.ping() {
                Ok(()) => tell(Ok(())),
                Err(error) => {
                    self.connection = None;
                    if let PoolVerdict::Clear { interrupt } = sdam::monitor_verdict(&error).pool {
                        tell(Err((error, interrupt)));
                    }
                }
            }
            thread::sleep(self.pause);
        }
    }

    fn ping(&mut self) -> Result<(), ConnectionError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.connector.open(&self.address)?),
        };
        connection.command("admin", &rawdoc! { "ping": 1 }).map(drop)
    }
}

/// Applies SDAM's verdict on a failed connection to its pool, on either shell.
pub(crate) fn heed(failure: &Failure<'_>) {
    let verdict = sdam::verdict(&failure.context(None), failure.error());
    failure.clear(verdict.pool);
}

/// Runs a command through a pool that has no other user.
pub(crate) async fn run_alone(own: &Pool, command: &RawDocument) -> Result<(), ConnectionError> {
    let mut connection = match own.check_out().await {
        Ok(connection) => connection,
        Err(error) => match error.error() {
            CheckOutError::EstablishFailed { cause } => return Err(cause.clone()),
            CheckOutError::PoolClosed
            | CheckOutError::PoolCleared { .. }
            | CheckOutError::WaitQueueFull { .. }
            | CheckOutError::Shed { .. }
            | CheckOutError::WaitQueueTimeout { .. }
            | CheckOutError::Cancelled => {
                unreachable!("the pool has no other user: {error}")
            }
        },
    };
    match connection.command("admin", command).await {
        Ok(_) => Ok(()),
        Err(OperationError::Connection(error)) => Err(error),
        Err(error) => unreachable!("this pool is never cleared: {error}"),
    }
}
