//! The pool of `cenote-tokio`, with a runtime of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::pool::{Purpose, ServiceId};
use cenote_core::uri::ConnectionString;
use cenote_tokio::{Builder, MongoConnector, OperationError, PooledConnection};
use tokio::runtime::{self, Runtime};
use tokio::time::timeout_at;

use super::{Connection, OnEvent, OnFailure, PATIENCE, Pool, Trouble, address};

pub(super) struct TokioPool {
    pool: cenote_tokio::Pool,
    runtime: Arc<Runtime>,
}

struct TokioConnection {
    connection: PooledConnection<MongoConnector>,
    runtime: Arc<Runtime>,
}

impl TokioPool {
    pub(super) fn open(
        uri: &ConnectionString,
        on_event: OnEvent,
        on_failure: OnFailure,
    ) -> Result<Self, String> {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime to play on: {error}"))?;
        let connector = MongoConnector::new(uri).map_err(|error| error.to_string())?;
        let builder = Builder::new(address(uri)?, connector)
            .options(uri.pool.clone())
            .on_event(move |told| on_event(&told.event, &told.address))
            .on_failure(move |failure| on_failure(failure));
        let guard = runtime.enter();
        let pool = builder.build().map_err(|error| error.to_string())?;
        drop(guard);
        Ok(Self { pool, runtime: Arc::new(runtime) })
    }
}

impl Pool for TokioPool {
    fn check_out(
        &self,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Box<dyn Connection>, PoolError> {
        let deadline = deadline.map(Into::into);
        let connection = self.runtime.block_on(self.pool.check_out_for(purpose, deadline))?;
        Ok(Box::new(TokioConnection { connection, runtime: Arc::clone(&self.runtime) }))
    }

    fn ready(&self) {
        self.pool.ready();
    }

    fn clear(&self, cause: ConnectionError, interrupt: bool) {
        self.pool.clear(cause, interrupt);
    }

    fn append_metadata(&self, driver: DriverInfo) {
        self.pool.append_metadata(driver);
    }

    fn close(&self) -> Result<(), String> {
        let deadline = (Instant::now() + PATIENCE).into();
        let closed = self.runtime.block_on(self.pool.close_before(deadline));
        closed.map_err(|left| left.to_string())
    }

    fn catch_up(&self) {
        // Everything is told by whoever does it, or by the one worker, which gets its turn here.
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
    }

    fn available(&self) -> u32 {
        self.pool.snapshot().available
    }
}

impl Connection for TokioConnection {
    fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        deadline: Option<Instant>,
    ) -> Result<RawDocumentBuf, Trouble> {
        let Self { connection, runtime } = self;
        let Some(deadline) = deadline else {
            return Ok(runtime.block_on(connection.command(database, command))?);
        };
        let limit = deadline.saturating_duration_since(Instant::now());
        let outcome = runtime.block_on(async {
            timeout_at(deadline.into(), connection.command(database, command)).await
        });
        outcome
            .unwrap_or_else(|_| {
                let error = ConnectionError::timeout(Stage::Operation, limit);
                Err(OperationError::Connection(error))
            })
            .map_err(Trouble::from)
    }

    fn service_id(&self) -> Option<ServiceId> {
        self.connection.service_id()
    }
}
