use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::client::{ClientError, SelectionError, Selector};
use cenote_core::error::{OperationError, PoolError};
use cenote_core::pool::CheckOutError;
use tokio::time::sleep;

use super::tally::Tally;

/// The pause after a failed check-out, so that a server that refuses connections is not flooded.
const PAUSE: Duration = Duration::from_millis(10);

const INTERRUPTED: &str = "operation: interrupted, as the pool was cleared";

/// What each task does: checks a connection out, pings, and returns it, as long as there is
/// something to do.
pub(super) async fn work(
    client: cenote_tokio::Client,
    selector: Selector,
    tally: Arc<Tally>,
    task: u32,
) {
    let ping = rawdoc! { "ping": 1 };
    while tally.next() {
        let began = Instant::now();
        let mut connection = match client.check_out(&selector).await {
            Ok(connection) => connection,
            Err(error) => {
                refused(&tally, &error);
                sleep(PAUSE).await;
                continue;
            }
        };
        tally.delivered(task, began.elapsed());
        let began = Instant::now();
        match connection.command("admin", &ping).await {
            Ok(_) => tally.good(task, began.elapsed()),
            Err(OperationError::Interrupted(_)) => {
                tally.failed(INTERRUPTED);
            }
            Err(OperationError::Connection(error)) => tally.failed(&error.to_string()),
        }
    }
}

/// As [`work`], of a thread.
pub(super) fn work_blocking(
    client: &cenote_mio::Client,
    selector: &Selector,
    tally: &Tally,
    task: u32,
) {
    let ping = rawdoc! { "ping": 1 };
    while tally.next() {
        let began = Instant::now();
        let mut connection = match client.check_out(selector) {
            Ok(connection) => connection,
            Err(error) => {
                refused(tally, &error);
                thread::sleep(PAUSE);
                continue;
            }
        };
        tally.delivered(task, began.elapsed());
        let began = Instant::now();
        match connection.command("admin", &ping) {
            Ok(_) => tally.good(task, began.elapsed()),
            Err(OperationError::Interrupted(_)) => {
                tally.failed(INTERRUPTED);
            }
            Err(OperationError::Connection(error)) => tally.failed(&error.to_string()),
        }
    }
}

fn refused(tally: &Tally, error: &ClientError) {
    match error {
        ClientError::Selection(error) => tally.without_server(&no_server(error)),
        ClientError::Pool(error) => tally.failed(&refusal(error)),
        ClientError::Operation(_) | _ => tally.failed(&error.to_string()),
    }
}

/// The reason alone: what the servers looked like then may be different each time.
fn no_server(error: &SelectionError) -> String {
    match error {
        SelectionError::TimedOut { .. } => "no server: serverSelectionTimeoutMS ran out".to_owned(),
        SelectionError::Hopeless { servers, .. } => format!("no server: {servers}"),
        SelectionError::Closed => "no server: the client was closed".to_owned(),
        SelectionError::NotOfThisClient { .. } | _ => format!("no server: {error}"),
    }
}

/// The reason alone: what the pool looked like then is different each time.
fn refusal(error: &PoolError) -> String {
    match error.error() {
        CheckOutError::EstablishFailed { cause } => format!("check-out: {cause}"),
        CheckOutError::PoolCleared { .. } => "check-out: the pool was cleared".to_owned(),
        CheckOutError::WaitQueueTimeout { .. } => {
            "check-out: waitQueueTimeoutMS ran out".to_owned()
        }
        CheckOutError::PoolClosed => "check-out: the pool was closed".to_owned(),
        CheckOutError::Cancelled => "check-out: cancelled".to_owned(),
    }
}
