//! The client on mio at work: each task is a thread.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::client::{ClientError, Selector, ServerStatus};
use cenote_core::error::{OperationError, PoolError};
use cenote_core::topology::TopologyDescription;
use cenote_mio::{Client, MongoConnector, OperationOptions, PooledConnection};
use tokio::runtime::{self, Handle};
use tokio::task::{JoinSet, spawn_blocking};

use super::arguments::Plan;
use super::play::{self, KEEP_ALIVE, PATIENCE, play};
use super::summary::Summary;
use super::tally::Tally;
use super::work::work;
use crate::command::Failure;

pub(super) fn run(plan: &Plan<'_>) -> Result<Summary, Failure> {
    // For threads, signals, time and the troubles of the server. The pool knows nothing of it.
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(plan.arguments.tasks as usize + MORE)
        .thread_stack_size(STACK)
        .enable_all()
        .thread_keep_alive(KEEP_ALIVE)
        .build()?;
    let result = runtime.block_on(play::<Client>(plan));
    // What hangs has been told, and is not waited for.
    runtime.shutdown_background();
    result
}

/// Threads besides those of the tasks.
const MORE: usize = 8;

/// Bytes that a thread needs that runs commands: there may be thousands of them.
const STACK: usize = 512 * 1024;

impl play::Client for Client {
    const WORKERS: &'static str = "threads";

    fn servers(&self) -> Vec<ServerStatus> {
        self.servers()
    }

    fn topology(&self) -> Arc<TopologyDescription> {
        self.topology()
    }

    type Connection = PooledConnection<MongoConnector>;

    /// Blocks. A caller that gives up has a deadline.
    async fn check_out(
        &self,
        selector: &Selector,
        patience: Option<Duration>,
    ) -> Option<Result<Self::Connection, ClientError>> {
        let (Some(patience), Selector::Address(address)) = (patience, selector) else {
            return Some(self.check_out(selector));
        };
        let outcome = self.pool(address)?.check_out_before(Instant::now() + patience);
        let gave_up = outcome.as_ref().is_err_and(PoolError::is_timeout);
        (!gave_up).then(|| outcome.map_err(ClientError::from))
    }

    async fn command(
        connection: &mut Self::Connection,
        command: &RawDocument,
        patience: Option<Duration>,
    ) -> Option<Result<RawDocumentBuf, OperationError>> {
        let Some(patience) = patience else { return Some(connection.command("admin", command)) };
        let options = OperationOptions::new().with_deadline(Instant::now() + patience);
        let outcome = connection.command_with("admin", command, options);
        let gave_up = outcome.as_ref().is_err_and(OperationError::is_timeout);
        (!gave_up).then_some(outcome)
    }

    fn employ(&self, count: u32, selector: &Selector, tally: &Arc<Tally>) -> JoinSet<()> {
        let mut threads = JoinSet::new();
        for task in 0..count {
            let work = work(self.clone(), selector.clone(), Arc::clone(tally), task);
            // The runtime is there for pauses.
            let runtime = Handle::current();
            threads.spawn_blocking(move || runtime.block_on(work));
        }
        threads
    }

    async fn close(&self) -> Result<bool, Failure> {
        let closing = self.clone();
        let closed = spawn_blocking(move || {
            let closed = closing.close_before(Instant::now() + PATIENCE).is_ok();
            closing.end_recording().map(|()| closed)
        });
        Ok(closed.await.map_err(io::Error::from)??)
    }
}
