//! The client on mio at work: each task is a thread.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use cenote_core::client::{Selector, ServerStatus};
use cenote_core::topology::TopologyDescription;
use cenote_mio::Client;
use tokio::runtime;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::spawn_blocking;

use super::Trouble;
use super::arguments::Plan;
use super::play::{self, KEEP_ALIVE, PATIENCE, play};
use super::summary::Summary;
use super::tally::Tally;
use super::work::work_blocking;
use crate::soak::on_mio::spawn;

pub(super) fn run(plan: &Plan) -> Result<Summary, Trouble> {
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

    fn employ(&self, count: u32, selector: &Selector, tally: &Arc<Tally>) -> io::Result<Threads> {
        Threads::start("cenote-worker", count, |task| {
            let (client, selector, tally) = (self.clone(), selector.clone(), Arc::clone(tally));
            move || work_blocking(&client, &selector, &tally, task)
        })
    }

    async fn close(&self) -> Result<bool, Trouble> {
        let closing = self.clone();
        let closed = spawn_blocking(move || {
            let closed = closing.close_before(Instant::now() + PATIENCE).is_ok();
            closing.end_recording().map(|()| closed)
        });
        Ok(closed.await.map_err(io::Error::from)??)
    }
}

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
            spawn(name, move || {
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
