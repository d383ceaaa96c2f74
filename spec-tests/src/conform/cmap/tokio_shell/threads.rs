//! The threads of a file, as tasks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::world::World;
use crate::conform::cmap::ledger::Caller;
use crate::conform::cmap::operation::{MAIN, Operation, Task};
use crate::conform::cmap::played::Failure;

/// The threads that were started and not joined. A clone is the same.
#[derive(Clone)]
pub(super) struct Threads {
    world: Arc<World>,
    running: Arc<Mutex<BTreeMap<String, Running>>>,
    started: Arc<AtomicUsize>,
}

/// A thread, and the way to hand it something.
struct Running {
    tasks: UnboundedSender<Task>,
    end: JoinHandle<Result<(), Failure>>,
}

/// Who carries something out.
struct Thread {
    name: String,
    number: Caller,
}

impl Threads {
    /// How long a thread may go on once the pool is closed.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// No thread yet.
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { world, running: Arc::default(), started: Arc::default() }
    }

    /// What the main thread does, until it ends or fails.
    pub(super) async fn play(&self, operations: Vec<Operation>) -> Result<(), Failure> {
        let main = self.thread(MAIN);
        for Operation { thread, task } in operations {
            match thread {
                Some(other) => self.hand_over(&other, task)?,
                None => self.perform(&main, task).await?,
            }
        }
        Ok(())
    }

    /// Ends the threads that nobody waited for, whose errors do not count (T-69), by closing the
    /// pool. Says which do not end.
    pub(super) async fn end(&self) -> Vec<String> {
        self.world.close().await;
        let mut complaints = Vec::new();
        let left = std::mem::take(&mut *self.lock());
        for (name, Running { tasks, end }) in left {
            drop(tasks);
            match timeout(Self::PATIENCE, end).await {
                Ok(Ok(_)) => {}
                Ok(Err(panic)) => complaints.push(format!("{name}: {panic}")),
                Err(_) => complaints.push(format!("{name} did not end with its pool")),
            }
        }
        complaints
    }

    fn start(&self, name: String) {
        let (sender, receiver) = unbounded_channel();
        let thread = self.thread(&name);
        let end = tokio::spawn(self.clone().run(thread, receiver));
        self.lock().insert(name, Running { tasks: sender, end });
    }

    /// One thing after the other, until nothing more can come or one fails.
    async fn run(self, thread: Thread, mut tasks: UnboundedReceiver<Task>) -> Result<(), Failure> {
        while let Some(task) = tasks.recv().await {
            if self.world.has_ended() {
                break;
            }
            self.perform(&thread, task).await?;
        }
        Ok(())
    }

    fn hand_over(&self, name: &str, task: Task) -> Result<(), Failure> {
        match self.lock().get(name) {
            // One that has failed takes nothing any more.
            Some(thread) => drop(thread.tasks.send(task)),
            None => return Err(not_running(name)),
        }
        Ok(())
    }

    async fn perform(&self, thread: &Thread, task: Task) -> Result<(), Failure> {
        let world = &self.world;
        let limit = task.limit();
        match task {
            Task::Start { target } => self.start(target),
            Task::Wait { .. } => world.wait(limit).await,
            Task::WaitForEvent { ref event, count, .. } => {
                let seen = timeout(limit, world.sees(event.as_str(), count)).await;
                return seen.map_err(|_| self.in_vain(thread, &task));
            }
            Task::WaitForThread { ref target } => {
                let end = timeout(limit, self.join(target)).await;
                return end.unwrap_or_else(|_| Err(self.in_vain(thread, &task)));
            }
            Task::CheckOut { ref label } => {
                let outcome = timeout(limit, world.check_out(thread.number, label.clone())).await;
                return outcome.unwrap_or_else(|_| Err(self.in_vain(thread, &task)));
            }
            Task::CheckIn { connection } => world.check_in(&connection)?,
            Task::Clear { interrupt_in_use_connections } => {
                world.clear(interrupt_in_use_connections);
            }
            Task::Close {} => world.close().await,
            Task::Ready {} => world.ready(),
        }
        Ok(())
    }

    /// Waits for a thread, and fails as it failed (TF-08).
    async fn join(&self, name: &str) -> Result<(), Failure> {
        let running = self.lock().remove(name);
        let Running { tasks, end } = running.ok_or_else(|| not_running(name))?;
        drop(tasks);
        end.await.unwrap_or_else(|panic| Err(Failure::Script(format!("{name}: {panic}"))))
    }

    fn in_vain(&self, thread: &Thread, task: &Task) -> Failure {
        Failure::Script(task.in_vain(&thread.name, |event| self.world.seen(event)))
    }

    fn thread(&self, name: &str) -> Thread {
        Thread { name: name.to_owned(), number: self.started.fetch_add(1, Ordering::Relaxed) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_running(name: &str) -> Failure {
    Failure::Script(format!("thread {name} does not run at present"))
}
