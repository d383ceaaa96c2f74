use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutError, PoolOptions};
use cenote_core::sdam::{self, PoolVerdict};
use cenote_mio::{BuildError, OperationError, Pool};

/// Pings over a connection of its own, and makes a pool ready or clears it, as a monitor does
///. It stands in for one.
pub(crate) struct Monitor {
    own: Pool,
    pause: Duration,
}

impl Monitor {
    /// For the server of a connection string, with a pause between two pings.
    pub(crate) fn new(uri: &str, pause: Duration) -> Result<Self, BuildError> {
        let options = PoolOptions::default().with_max_pool_size(1);
        let own = Pool::builder(uri)?.options(options).build()?;
        own.ready();
        Ok(Self { own, pause })
    }

    /// Whether the server is there.
    pub(crate) fn ping(&self) -> Result<(), ConnectionError> {
        let mut connection = match self.own.check_out() {
            Ok(connection) => connection,
            Err(error) => match error.error() {
                CheckOutError::EstablishFailed { cause } => return Err(cause.clone()),
                CheckOutError::PoolClosed
                | CheckOutError::PoolCleared { .. }
                | CheckOutError::WaitQueueTimeout { .. }
                | CheckOutError::Cancelled => {
                    unreachable!("the monitor has this pool to itself: {error}")
                }
            },
        };
        match connection.command("admin", &rawdoc! { "ping": 1 }) {
            Ok(_) => Ok(()),
            Err(OperationError::Connection(error)) => Err(error),
            Err(OperationError::Interrupted(error)) => {
                unreachable!("this pool is never cleared: {error}")
            }
        }
    }

    pub(crate) fn watch(&self, pool: &Pool, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            match self.ping() {
                Ok(()) => pool.ready(),
                Err(error) => {
                    if let PoolVerdict::Clear { interrupt } = sdam::monitor_verdict(&error).pool {
                        pool.clear(error, interrupt);
                    }
                }
            }
            thread::sleep(self.pause);
        }
        self.own.close();
    }
}
