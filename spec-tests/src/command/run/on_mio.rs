//! The client on mio at work: each task is a thread.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::client::{ClientError, Selector, ServerStatus};
use cenote_core::error::{OperationError, PoolError};
use cenote_core::topology::TopologyDescription;
use cenote_mio::{Client, MongoConnector, OperationOptions, PooledConnection};
use tokio::runtime::{self, Handle};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::spawn_blocking;

use super::arguments::Plan;
use super::play::{self, KEEP_ALIVE, PATIENCE, play};
use super::summary::Summary;
use super::tally::Tally;
use super::work::work;
use crate::command::Failure;

pub(super) fn run(plan: &Plan<'_>) -> Result<Summary, Failure> {
    // For signals, time and the troubles of the server. The pool knows nothing of it.
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .thread_keep_alive(KEEP_ALIVE)
        .build()?;
    let result = runtime.block_on(play::<Client>(plan));
    // What hangs has been told, and is not waited for.
    runtime.shutdown_background();
    result
}

impl play::Client for Client {
    type Workers = Threads;

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

    fn employ(&self, count: u32, selector: &Selector, tally: &Arc<Tally>) -> io::Result<Threads> {
        let runtime = Handle::current();
        Threads::start("cenote-worker", count, |task| {
            let work = work(self.clone(), selector.clone(), Arc::clone(tally), task);
            let runtime = runtime.clone();
            // The runtime is there for pauses.
            move || runtime.block_on(work)
        })
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

/// What a thread needs that runs commands: there may be thousands of them.
const STACK: usize = 512 * 1024;

/// Threads that end by themselves.
pub(super) struct Threads {
    threads: Vec<JoinHandle<()>>,
    /// Says when the last one has ended: each of them has the other end.
    alive: Receiver<Infallible>,
}

impl Threads {
    fn start<W: FnOnce() + Send + 'static>(
        name: &str,
        count: u32,
        work: impl Fn(u32) -> W,
    ) -> io::Result<Self> {
        let (alive, ended) = channel(1);
        let start = |number| {
            let (work, alive) = (work(number), alive.clone());
            let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK);
            thread.spawn(move || {
                work();
                drop(alive);
            })
        };
        let threads = (0..count).map(start).collect::<Result<_, _>>()?;
        Ok(Self { threads, alive: ended })
    }
}

impl play::Workers for Threads {
    const NAME: &'static str = "threads";

    async fn end(&mut self) -> io::Result<()> {
        while self.alive.recv().await.is_some() {}
        Ok(())
    }

    async fn leave(self, have_ended: bool) -> io::Result<usize> {
        if have_ended {
            return join(self.threads).map(|()| 0);
        }
        let (ended, hanging): (Vec<_>, Vec<_>) =
            self.threads.into_iter().partition(JoinHandle::is_finished);
        join(ended)?;
        Ok(hanging.len())
    }
}

/// None of them has more to do.
fn join(threads: Vec<JoinHandle<()>>) -> io::Result<()> {
    let panicked = |_| io::Error::other("a thread panicked");
    threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked))
}
