use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::{ConnectionError, InterruptedError, PoolError, Stage};
use cenote_core::pool::Purpose;
use cenote_core::wire::WireError;
use cenote_mio::{MongoConnector, OperationError, OperationOptions, Pool, PooledConnection};
use thiserror::Error;

use crate::soak::chance::Chance;
use crate::soak::work::{Tally, count, message};

/// One of the users of the pool.
pub(super) struct Worker {
    pub(super) pool: Pool,
    pub(super) chance: Chance,
    pub(super) tally: Arc<Tally>,
    pub(super) is_over: Arc<AtomicBool>,
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

impl Worker {
    pub(super) fn work(mut self) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.once();
        }
    }

    /// One in eight gives up, after a while that may be none.
    fn patience(&mut self, microseconds: u64) -> Option<Instant> {
        match self.chance.below(8) {
            0 => Some(Instant::now() + Duration::from_micros(self.chance.below(microseconds))),
            _ => None,
        }
    }

    fn once(&mut self) {
        count(&self.tally.asked);
        let patience = self.patience(20_000);
        let mut connection = match self.pool.check_out_for(Purpose::Other, patience) {
            Ok(connection) => connection,
            // It gave up, by itself.
            Err(error) if error.is_timeout() && patience.is_some() => return,
            Err(error) => return self.refused(&error),
        };
        count(&self.tally.delivered);
        let patience = self.patience(500);
        count(match self.use_it(&mut connection, patience) {
            Ok(()) => &self.tally.good,
            Err(trouble) if trouble.is_interrupt() => &self.tally.interrupted,
            Err(_) if patience.is_some_and(|patience| Instant::now() >= patience) => return,
            Err(_) => &self.tally.failed,
        });
    }

    fn refused(&mut self, _error: &PoolError) {
        count(&self.tally.refused);
        // A paused pool refuses at once.
        thread::sleep(Duration::from_millis(20 + self.chance.below(100)));
    }

    fn use_it(
        &mut self,
        connection: &mut PooledConnection<MongoConnector>,
        patience: Option<Instant>,
    ) -> Result<(), Trouble> {
        let ping = rawdoc! { "ping": 1 };
        match self.chance.below(64) {
            0..4 => self.write(connection, patience),
            4..8 => {
                let insert = rawdoc! {
                    "insert": "soak",
                    "documents": [{}],
                    "writeConcern": { "w": 0 },
                };
                Ok(connection.command_unacknowledged("test", &insert)?)
            }
            8..12 => {
                // A caller that does other things in between.
                thread::sleep(Duration::from_micros(self.chance.below(3000)));
                command(connection, "admin", &ping, patience)
            }
            12..16 => {
                let bytes = message(connection.next_request_id(), &ping)?;
                connection.send(&bytes)?;
                connection.receive()?;
                Ok(())
            }
            16..20 => exchange_bytes(connection, &ping, patience),
            20 => {
                // A caller that forgets the reply.
                let bytes = message(connection.next_request_id(), &ping)?;
                Ok(connection.send(&bytes)?)
            }
            21 => {
                let reason = "the driver knows better";
                connection.mark_errored(ConnectionError::protocol(Stage::Operation, reason));
                Ok(())
            }
            _ => command(connection, "admin", &ping, patience),
        }
    }

    /// And reads it again, large enough to be worth compressing, and deletes it.
    fn write(
        &mut self,
        connection: &mut PooledConnection<MongoConnector>,
        patience: Option<Instant>,
    ) -> Result<(), Trouble> {
        let id = i64::try_from(self.chance.below(1 << 40)).unwrap_or_default();
        let text = "again and again ".repeat(100);
        let insert = rawdoc! { "insert": "soak", "documents": [{ "_id": id, "text": text }] };
        command(connection, "test", &insert, patience)?;
        let find = rawdoc! { "find": "soak", "filter": { "_id": id } };
        command(connection, "test", &find, patience)?;
        let deletes = rawdoc! { "delete": "soak", "deletes": [{ "q": {}, "limit": 0 }] };
        command(connection, "test", &deletes, patience)
    }
}

fn command(
    connection: &mut PooledConnection<MongoConnector>,
    database: &str,
    command: &RawDocumentBuf,
    patience: Option<Instant>,
) -> Result<(), Trouble> {
    let options = OperationOptions::new();
    let options = patience.map_or(options, |patience| options.with_deadline(patience));
    connection.command_with(database, command, options)?;
    Ok(())
}

/// Past the messages.
fn exchange_bytes(
    connection: &mut PooledConnection<MongoConnector>,
    command: &RawDocumentBuf,
    patience: Option<Instant>,
) -> Result<(), Trouble> {
    let bytes = message(connection.next_request_id(), command)?;
    let mut stream = connection.raw_stream()?;
    stream.set_deadline(patience);
    stream.write_all(&bytes)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let rest = usize::try_from(i32::from_le_bytes(length) - 4).unwrap_or_default();
    stream.read_exact(&mut vec![0; rest.min(1 << 20)])?;
    Ok(stream.done()?)
}

impl Trouble {
    fn is_interrupt(&self) -> bool {
        match self {
            Self::Operation(OperationError::Interrupted(_)) => true,
            Self::Operation(_) | Self::Wire(_) => false,
            Self::Io(error) => {
                let inner = error.get_ref();
                inner.and_then(|inner| inner.downcast_ref::<InterruptedError>()).is_some()
            }
        }
    }
}
