use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use cenote_core::client::{ClientError, SelectionError, Selector};
use cenote_core::error::{ConnectionError, Kind, OperationError, PoolError};
use cenote_core::pool::CheckOutError;
use tokio::time::sleep;

use super::operation::Operations;
use super::patience::Patience;
use super::play::Client;
use super::tally::Tally;

/// The pause after a failed check-out, so that a server that refuses connections is not flooded.
const PAUSE: Duration = Duration::from_millis(10);

const INTERRUPTED: &str = "operation: interrupted, as the pool was cleared";

/// How often a task that rests looks whether it still has to.
const REST: Duration = Duration::from_millis(5);

/// A caller that gives up waits for a connection at most this long, and for a reply.
const PATIENCE: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(2)];

/// What each task does: checks a connection out, runs a command, and returns it, as long as there is
/// something to do.
pub(super) async fn work<C: Client>(client: C, selector: Selector, tally: Arc<Tally>, task: u32) {
    let mut operations = Operations::new(tally.verifies, task);
    let mut patience = Patience::new(tally.give_up, task);
    while tally.next() {
        while tally.rests() {
            sleep(REST).await;
        }
        // This blocks a thread of the runtime, which is to stop.
        tally.pause.wait_for_end();
        let _busy = tally.busy();
        let [for_connection, for_reply] = PATIENCE.map(|most| patience.next(most));
        let began = Instant::now();
        let mut connection = match client.check_out(&selector, for_connection).await {
            Some(Ok(connection)) => connection,
            Some(Err(error)) => {
                refused(&tally, &error);
                sleep(PAUSE).await;
                continue;
            }
            None => {
                tally.gave_up_check_out();
                continue;
            }
        };
        tally.delivered(task, began.elapsed());
        let began = Instant::now();
        match C::command(&mut connection, &operations.next_command(), for_reply).await {
            Some(outcome) => ended(&tally, task, began, &operations, &outcome),
            None => tally.gave_up_operation(),
        }
    }
}

fn ended(
    tally: &Tally,
    task: u32,
    began: Instant,
    operations: &Operations,
    outcome: &Result<RawDocumentBuf, OperationError>,
) {
    match outcome {
        Ok(reply) if operations.is_reply(reply) => tally.good(task, began.elapsed()),
        Ok(_) => tally.foreign(),
        Err(OperationError::Interrupted(_)) => tally.failed(INTERRUPTED),
        Err(OperationError::Connection(error)) => {
            note_refusal(tally, error);
            tally.failed(&error.to_string());
        }
        Err(error) => tally.failed(&error.to_string()),
    }
}

/// Something that the peer sent was not accepted.
fn note_refusal(tally: &Tally, error: &ConnectionError) {
    if *error.kind() == Kind::Protocol {
        tally.timeline.refused();
    }
}

fn refused(tally: &Tally, error: &ClientError) {
    match error {
        ClientError::Selection(error) => tally.without_server(&no_server(error)),
        ClientError::Pool(error) => {
            if let CheckOutError::EstablishFailed { cause } = error.error() {
                note_refusal(tally, cause);
            }
            tally.failed(&refusal(error));
        }
        ClientError::Operation(_) | _ => tally.failed(&error.to_string()),
    }
}

/// The reason alone: what the servers looked like then may be different each time.
fn no_server(error: &SelectionError) -> String {
    match error {
        SelectionError::TimedOut { .. } => "no server: serverSelectionTimeoutMS ran out".to_owned(),
        SelectionError::Incompatible { servers, .. } => format!("no server: {servers}"),
        SelectionError::Closed => "no server: the client was closed".to_owned(),
        SelectionError::NotOfThisClient { .. } | _ => format!("no server: {error}"),
    }
}

/// The reason alone: what the pool looked like then is different each time.
fn refusal(error: &PoolError) -> String {
    match error.error() {
        CheckOutError::EstablishFailed { cause } => format!("check-out: {}", cause.with_advice()),
        CheckOutError::PoolCleared { .. } => "check-out: the pool was cleared".to_owned(),
        CheckOutError::WaitQueueTimeout { .. } => {
            "check-out: waitQueueTimeoutMS ran out".to_owned()
        }
        CheckOutError::WaitQueueFull { max } => {
            format!("check-out: the wait queue was full (max_wait_queue_size {max})")
        }
        CheckOutError::Shed { .. } => "check-out: shed on standing delay".to_owned(),
        CheckOutError::PoolClosed => "check-out: the pool was closed".to_owned(),
        CheckOutError::Cancelled => "check-out: cancelled".to_owned(),
    }
}
