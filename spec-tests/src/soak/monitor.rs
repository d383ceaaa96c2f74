use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::ConnectionError;
use cenote_core::pool::CheckOutError;
use cenote_core::sdam::{self, PoolVerdict};
use cenote_tokio::{BuildError, OperationError, Pool};
use tokio::time::sleep;

/// Between two pings.
const PAUSE: Duration = Duration::from_millis(20);

/// Pings over a connection of its own, and makes the pool ready or clears it, as a monitor does
/// (SD-02, SD-40). It stands in for one.
pub(super) async fn watch(
    uri: String,
    pool: Pool,
    is_over: Arc<AtomicBool>,
) -> Result<(), BuildError> {
    let own = format!("{uri}&maxPoolSize=1&connectTimeoutMS=1000&socketTimeoutMS=300");
    let own = Pool::connect_to(&own)?;
    own.ready();
    while !is_over.load(Ordering::Relaxed) {
        match ping(&own).await {
            Ok(()) => pool.ready(),
            Err(error) => {
                if let PoolVerdict::Clear { interrupt } = sdam::monitor_verdict(&error).pool {
                    pool.clear(error, interrupt);
                }
            }
        }
        sleep(PAUSE).await;
    }
    own.close().await;
    Ok(())
}

async fn ping(own: &Pool) -> Result<(), ConnectionError> {
    let mut connection = match own.check_out().await {
        Ok(connection) => connection,
        Err(error) => match error.error() {
            CheckOutError::EstablishFailed { cause } => return Err(cause.clone()),
            CheckOutError::PoolClosed
            | CheckOutError::PoolCleared { .. }
            | CheckOutError::WaitQueueTimeout { .. }
            | CheckOutError::Cancelled => unreachable!("nobody else has this pool: {error}"),
        },
    };
    match connection.command("admin", &rawdoc! { "ping": 1 }).await {
        Ok(_) => Ok(()),
        Err(OperationError::Connection(error)) => Err(error),
        Err(OperationError::Interrupted(error)) => unreachable!("nobody clears this pool: {error}"),
    }
}
