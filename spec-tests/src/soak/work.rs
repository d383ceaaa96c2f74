use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter, WireError};
use cenote_tokio::{MongoConnector, OperationError, Pool, PooledConnection};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::chance::Chance;

/// One of the users of the pool.
pub(super) struct Worker {
    pub(super) pool: Pool,
    pub(super) chance: Chance,
    pub(super) tally: Arc<Tally>,
    pub(super) is_over: Arc<AtomicBool>,
}

/// What all of them have seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) asked: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) good: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) interrupted: AtomicU64,
}

/// What all tasks have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Check-outs that were begun.
    pub asked: u64,
    /// Those that got a connection.
    pub delivered: u64,
    /// Those that got an error.
    pub refused: u64,
    /// Those whose caller went away.
    pub given_up: u64,
    /// What was done with a connection and came to a good end.
    pub good: u64,
    /// What failed.
    pub failed: u64,
    /// What the pool broke off.
    pub interrupted: u64,
    /// What was given up in the middle.
    pub abandoned: u64,
}

/// Why something that was done with a connection failed.
#[derive(Debug, Error)]
enum Trouble {
    #[error(transparent)]
    Operation(#[from] OperationError),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Tally {
    pub(super) fn counts(&self) -> Counts {
        let [asked, delivered, refused, good, failed, interrupted] = [
            &self.asked,
            &self.delivered,
            &self.refused,
            &self.good,
            &self.failed,
            &self.interrupted,
        ]
        .map(|count| count.load(Ordering::Relaxed));
        let given_up = asked - delivered - refused;
        let abandoned = delivered - good - failed - interrupted;
        Counts { asked, delivered, refused, given_up, good, failed, interrupted, abandoned }
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Worker {
    pub(super) async fn work(mut self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let patience = self.patience(20_000);
            let _ = timeout(patience, self.once()).await;
        }
    }

    /// One in eight gives up, wherever that is.
    fn patience(&mut self, microseconds: u64) -> Duration {
        match self.chance.below(8) {
            0 => Duration::from_micros(self.chance.below(microseconds)),
            _ => Duration::MAX,
        }
    }

    async fn once(&mut self) {
        count(&self.tally.asked);
        let mut connection = match self.pool.check_out().await {
            Ok(connection) => connection,
            Err(error) => return self.refused(&error).await,
        };
        count(&self.tally.delivered);
        let patience = self.patience(500);
        let Ok(outcome) = timeout(patience, self.use_it(&mut connection)).await else { return };
        count(match outcome {
            Ok(()) => &self.tally.good,
            Err(Trouble::Operation(OperationError::Interrupted(_))) => &self.tally.interrupted,
            Err(Trouble::Operation(_) | Trouble::Wire(_) | Trouble::Io(_)) => &self.tally.failed,
        });
    }

    async fn refused(&mut self, _error: &PoolError) {
        count(&self.tally.refused);
        // A paused pool refuses at once.
        sleep(Duration::from_millis(20 + self.chance.below(100))).await;
    }

    async fn use_it(
        &mut self,
        connection: &mut PooledConnection<MongoConnector>,
    ) -> Result<(), Trouble> {
        let ping = rawdoc! { "ping": 1 };
        match self.chance.below(64) {
            0..4 => self.write(connection).await,
            4..8 => {
                let insert = rawdoc! {
                    "insert": "soak",
                    "documents": [{}],
                    "writeConcern": { "w": 0 },
                };
                Ok(connection.command_unacknowledged("test", &insert).await?)
            }
            8..12 => {
                // A caller that does other things in between.
                sleep(Duration::from_micros(self.chance.below(3000))).await;
                connection.command("admin", &ping).await?;
                Ok(())
            }
            12..16 => exchange_message(connection, &ping).await,
            16..20 => exchange_bytes(connection, &ping).await,
            20 => {
                // A caller that forgets the reply.
                let bytes = message(connection.next_request_id(), &ping)?;
                Ok(connection.send(&bytes).await?)
            }
            21 => {
                let reason = "the driver knows better";
                connection.mark_errored(ConnectionError::protocol(Stage::Operation, reason));
                Ok(())
            }
            _ => {
                connection.command("admin", &ping).await?;
                Ok(())
            }
        }
    }

    /// And reads it again, large enough to be worth compressing, and deletes it.
    async fn write(
        &mut self,
        connection: &mut PooledConnection<MongoConnector>,
    ) -> Result<(), Trouble> {
        let id = i64::try_from(self.chance.below(1 << 40)).unwrap_or_default();
        let text = "again and again ".repeat(100);
        let insert = rawdoc! { "insert": "soak", "documents": [{ "_id": id, "text": text }] };
        connection.command("test", &insert).await?;
        connection.command("test", &rawdoc! { "find": "soak", "filter": { "_id": id } }).await?;
        let deletes = rawdoc! { "delete": "soak", "deletes": [{ "q": {}, "limit": 0 }] };
        connection.command("test", &deletes).await?;
        Ok(())
    }
}

pub(super) fn message(id: i32, command: &RawDocumentBuf) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    MessageWriter::command(&mut bytes, Ids::request(id), Flags::NONE, command, "admin")?
        .finish(MessageLimit::DEFAULT)?;
    Ok(bytes)
}

async fn exchange_message(
    connection: &mut PooledConnection<MongoConnector>,
    command: &RawDocumentBuf,
) -> Result<(), Trouble> {
    let bytes = message(connection.next_request_id(), command)?;
    connection.send(&bytes).await?;
    connection.receive().await?;
    Ok(())
}

/// Past the messages, and without a limit of its own: the caller's patience is one.
async fn exchange_bytes(
    connection: &mut PooledConnection<MongoConnector>,
    command: &RawDocumentBuf,
) -> Result<(), Trouble> {
    let bytes = message(connection.next_request_id(), command)?;
    let mut stream = connection.raw_stream()?;
    stream.write_all(&bytes).await?;
    let exchange = async {
        let length = stream.read_i32_le().await?;
        let mut rest = vec![0; usize::try_from(length - 4).unwrap_or_default().min(1 << 20)];
        stream.read_exact(&mut rest).await?;
        io::Result::Ok(())
    };
    timeout(Duration::from_secs(1), exchange).await.map_err(io::Error::from)??;
    Ok(stream.done().await?)
}
