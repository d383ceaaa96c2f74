//! The client on tokio at work.

use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::client::{ClientError, Selector, ServerStatus};
use cenote_core::error::OperationError;
use cenote_core::topology::TopologyDescription;
use cenote_tokio::{Client, MongoConnector, PooledConnection};
use tokio::runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::arguments::Plan;
use super::play::{self, KEEP_ALIVE, PATIENCE, play};
use super::summary::Summary;
use super::tally::Tally;
use super::work::work;
use crate::command::Failure;

pub(super) fn run(plan: &Plan<'_>) -> Result<Summary, Failure> {
    let runtime =
        runtime::Builder::new_multi_thread().enable_all().thread_keep_alive(KEEP_ALIVE).build()?;
    let result = runtime.block_on(play::<Client>(plan));
    // What hangs has been told, and is not waited for.
    runtime.shutdown_background();
    result
}

impl play::Client for Client {
    const WORKERS: &'static str = "tasks";

    fn servers(&self) -> Vec<ServerStatus> {
        self.servers()
    }

    fn topology(&self) -> Arc<TopologyDescription> {
        self.topology()
    }

    type Connection = PooledConnection<MongoConnector>;

    /// A caller that gives up drops the future.
    async fn check_out(
        &self,
        selector: &Selector,
        patience: Option<Duration>,
    ) -> Option<Result<Self::Connection, ClientError>> {
        let (Some(patience), Selector::Address(address)) = (patience, selector) else {
            return Some(self.check_out(selector).await);
        };
        let pool = self.pool(address)?;
        let outcome = timeout(patience, pool.check_out()).await.ok()?;
        Some(outcome.map_err(ClientError::from))
    }

    async fn command(
        connection: &mut Self::Connection,
        command: &RawDocument,
        patience: Option<Duration>,
    ) -> Option<Result<RawDocumentBuf, OperationError>> {
        let command = connection.command("admin", command);
        match patience {
            Some(patience) => timeout(patience, command).await.ok(),
            None => Some(command.await),
        }
    }

    fn employ(&self, count: u32, selector: &Selector, tally: &Arc<Tally>) -> JoinSet<()> {
        let task = |task| work(self.clone(), selector.clone(), Arc::clone(tally), task);
        (0..count).map(task).collect()
    }

    async fn close(&self) -> Result<bool, Failure> {
        let closed = timeout(PATIENCE, Self::close(self)).await.is_ok();
        self.end_recording().await?;
        Ok(closed)
    }
}
