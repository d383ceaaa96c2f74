//! The threads of a file, as threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use super::world::World;
use crate::conform::cmap::ledger::Caller;
use crate::conform::cmap::operation::{MAIN, Operation, Task};
use crate::conform::cmap::played::{Failure, for_core_alone};

/// The threads that were started and not joined.
pub(super) struct Threads<'scope, 'env> {
    world: &'env World,
    scope: &'scope Scope<'scope, 'env>,
    running: Mutex<BTreeMap<String, Running<'scope>>>,
    started: AtomicUsize,
}

/// A thread, and the way to hand it something.
struct Running<'scope> {
    tasks: Sender<Task>,
    end: ScopedJoinHandle<'scope, Result<(), Failure>>,
}

/// Who carries something out.
struct Thread {
    name: String,
    number: Caller,
}

impl<'scope, 'env> Threads<'scope, 'env> {
    /// No thread yet.
    pub(super) fn new(world: &'env World, scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { world, scope, running: Mutex::default(), started: AtomicUsize::new(0) }
    }

    /// What the main thread does, until it ends or fails.
    pub(super) fn play(&self, operations: Vec<Operation>) -> Result<(), Failure> {
        let main = self.thread(MAIN);
        for Operation { thread, task } in operations {
            match (thread, &task) {
                (Some(other), _) => self.hand_over(&other, task)?,
                (None, Task::Start { target }) => self.start(target),
                (None, Task::WaitForThread { target }) => self.join(target)?,
                (None, _) => perform(self.world, &main, &task)?,
            }
        }
        Ok(())
    }

    /// Ends the threads that nobody waited for, whose errors do not count (T-69), by closing the
    /// pool.
    pub(super) fn end(&self) {
        self.world.close();
        for Running { tasks, end } in std::mem::take(&mut *self.lock()).into_values() {
            drop(tasks);
            let _ = end.join();
        }
    }

    fn start(&self, name: &str) {
        let (tasks, received) = channel();
        let (thread, world) = (self.thread(name), self.world);
        let end = self.scope.spawn(move || run(world, &thread, &received));
        self.lock().insert(name.to_owned(), Running { tasks, end });
    }

    fn hand_over(&self, name: &str, task: Task) -> Result<(), Failure> {
        match self.lock().get(name) {
            // One that has failed takes nothing any more.
            Some(thread) => drop(thread.tasks.send(task)),
            None => return Err(not_running(name)),
        }
        Ok(())
    }

    /// Waits for a thread, and fails as it failed (TF-08).
    fn join(&self, name: &str) -> Result<(), Failure> {
        let running = self.lock().remove(name);
        let Running { tasks, end } = running.ok_or_else(|| not_running(name))?;
        drop(tasks);
        end.join().unwrap_or_else(|_| Err(Failure::Script(format!("{name} panicked"))))
    }

    fn thread(&self, name: &str) -> Thread {
        Thread { name: name.to_owned(), number: self.started.fetch_add(1, Ordering::Relaxed) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running<'scope>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thing after the other, until nothing more can come or one fails.
fn run(world: &World, thread: &Thread, tasks: &Receiver<Task>) -> Result<(), Failure> {
    while let Ok(task) = tasks.recv() {
        if world.has_ended() {
            break;
        }
        perform(world, thread, &task)?;
    }
    Ok(())
}

fn perform(world: &World, thread: &Thread, task: &Task) -> Result<(), Failure> {
    let limit = task.limit();
    match task {
        Task::Wait { .. } => world.wait(limit),
        Task::WaitForEvent { event, count, .. } => {
            if !world.sees(event.as_str(), *count, limit) {
                let seen = |event: &str| world.seen(event);
                return Err(Failure::Script(task.in_vain(&thread.name, seen)));
            }
        }
        Task::CheckOut(how) => world.check_out(thread.number, how)?,
        Task::CheckIn { connection, broken, says } => {
            let error = broken.map(|broken| broken.error(says.as_deref()));
            world.check_in(connection, error)?;
        }
        Task::CheckInForeign {} => world.check_in_foreign()?,
        Task::Clear { interrupt_in_use_connections, service_of: None } => {
            world.clear(*interrupt_in_use_connections);
        }
        Task::Clear { service_of: Some(label), .. } => world.clear_service_of(label)?,
        Task::Close {} => world.close(),
        Task::Ready {} => world.ready(),
        Task::AssertCounts(counts) => counts.judge(&world.snapshot())?,
        Task::SetOptions { options } => world.set_options(options)?,
        Task::Abandon { .. } | Task::CheckInAgain { .. } | Task::ResetAfterFork {} => {
            return Err(for_core_alone());
        }
        Task::Start { .. } | Task::WaitForThread { .. } => {
            let reason = format!("{} cannot start or wait for threads", thread.name);
            return Err(Failure::Script(reason));
        }
    }
    world.catch_up();
    Ok(())
}

fn not_running(name: &str) -> Failure {
    Failure::Script(format!("thread {name} does not run at present"))
}
