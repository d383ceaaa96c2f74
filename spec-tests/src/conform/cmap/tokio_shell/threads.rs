//! The threads of a file, as tasks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::world::World;
use crate::conform::cmap::extension::CheckOut;
use crate::conform::cmap::ledger::Caller;
use crate::conform::cmap::operation::{MAIN, Operation, Task};
use crate::conform::cmap::played::{Failure, for_core_alone, nothing_to_abandon};

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
    leave: Arc<Leave>,
    end: JoinHandle<Result<(), Failure>>,
}

/// Who carries something out.
struct Thread {
    name: String,
    number: Caller,
    leave: Arc<Leave>,
}

/// That a thread is not to wait for a connection any more.
#[derive(Default)]
struct Leave {
    asked: Notify,
    taken: Notify,
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
        for (name, Running { tasks, end, .. }) in left {
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
        let leave = Arc::clone(&thread.leave);
        let end = tokio::spawn(self.clone().run(thread, receiver));
        self.lock().insert(name, Running { tasks: sender, leave, end });
    }

    async fn abandon(&self, name: &str) -> Result<(), Failure> {
        let leave = self.lock().get(name).map(|thread| Arc::clone(&thread.leave));
        let leave = leave.ok_or_else(|| not_running(name))?;
        // Only whoever waits by now goes away.
        leave.asked.notify_waiters();
        let taken = timeout(Self::PATIENCE, leave.taken.notified()).await;
        taken.map_err(|_| nothing_to_abandon(name))
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
            Task::CheckOut(ref how) => {
                let outcome = timeout(limit, self.check_out(thread, how)).await;
                return outcome.unwrap_or_else(|_| Err(self.in_vain(thread, &task)));
            }
            Task::CheckIn { connection, broken, says } => {
                let error = broken.map(|broken| broken.error(says.as_deref()));
                world.check_in(&connection, error)?;
            }
            Task::CheckInForeign {} => world.check_in_foreign().await?,
            Task::Clear { interrupt_in_use_connections, service_of: None } => {
                world.clear(interrupt_in_use_connections);
            }
            Task::Clear { service_of: Some(label), .. } => world.clear_service_of(&label)?,
            Task::Close {} => world.close().await,
            Task::Ready {} => world.ready(),
            Task::Abandon { target } => self.abandon(&target).await?,
            Task::AssertCounts(counts) => counts.judge(&world.snapshot())?,
            Task::SetOptions { options } => world.set_options(&options)?,
            Task::CheckInAgain { .. } | Task::ResetAfterFork {} => return Err(for_core_alone()),
        }
        Ok(())
    }

    /// Until there is a connection or an error, or the thread is not to wait any more.
    async fn check_out(&self, thread: &Thread, how: &CheckOut) -> Result<(), Failure> {
        let Thread { number, leave, .. } = thread;
        let outcome = tokio::select! {
            biased;
            () = leave.asked.notified() => None,
            outcome = self.world.check_out(*number, how) => Some(outcome),
        };
        outcome.unwrap_or_else(|| {
            self.world.abandoned(*number);
            leave.taken.notify_one();
            Ok(())
        })
    }

    /// Waits for a thread, and fails as it failed (TF-08).
    async fn join(&self, name: &str) -> Result<(), Failure> {
        let running = self.lock().remove(name);
        let Running { tasks, end, .. } = running.ok_or_else(|| not_running(name))?;
        drop(tasks);
        end.await.unwrap_or_else(|panic| Err(Failure::Script(format!("{name}: {panic}"))))
    }

    fn in_vain(&self, thread: &Thread, task: &Task) -> Failure {
        Failure::Script(task.in_vain(&thread.name, |event| self.world.seen(event)))
    }

    fn thread(&self, name: &str) -> Thread {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        Thread { name: name.to_owned(), number, leave: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_running(name: &str) -> Failure {
    Failure::Script(format!("thread {name} does not run at present"))
}
