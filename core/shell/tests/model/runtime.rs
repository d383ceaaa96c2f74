use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Waker};
use std::time::Instant;

use cenote_shell::event::PoolEvent;
use cenote_shell::runtime::fork::ForkError;
use cenote_shell::runtime::{CurrentRuntime, Lock, Runtime};
use loom::sync::MutexGuard;

/// Tasks that run when the model says so, and a lock that loom watches. Time stands still.
#[derive(Clone, Default)]
pub(crate) struct Model {
    tasks: Arc<std::sync::Mutex<Tasks>>,
}

#[derive(Default)]
struct Tasks {
    spawned: u64,
    alive: BTreeMap<u64, Work>,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A spawned task.
pub(crate) struct Task {
    runtime: Model,
    number: u64,
}

/// loom's mutex.
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl Model {
    /// Polls every task, until they wait for something that does not come.
    pub(crate) fn run(&self) {
        for _ in 0..4 {
            let numbers: Vec<u64> = self.tasks().alive.keys().copied().collect();
            for number in numbers {
                let Some(mut work) = self.tasks().alive.remove(&number) else { continue };
                let poll = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                if poll.is_pending() {
                    self.tasks().alive.insert(number, work);
                }
            }
        }
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime for Model {
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Waiter = Waker;
    type Instant = Instant;
    type Task = Task;
    type EventSender = ();

    const PROGRAM: &'static str = "model";

    fn wake(waker: Waker) {
        waker.wake();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Task {
        let mut tasks = self.tasks();
        tasks.spawned += 1;
        let number = tasks.spawned;
        tasks.alive.insert(number, Box::pin(work));
        Task { runtime: self.clone(), number }
    }

    fn abort(task: Task) {
        let work = task.runtime.tasks().alive.remove(&task.number);
        drop(work); // Not under the lock.
    }

    fn sleep_until(&self, _: Instant) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }

    fn send_event((): &(), _: PoolEvent) {}

    fn after_fork(&self) -> Result<Self, ForkError> {
        Err(ForkError::NoRuntime)
    }
}

impl CurrentRuntime for Model {
    fn current() -> Self {
        Self::default()
    }
}

impl<T: Send + 'static> Lock<T> for Mutex<T> {
    type Guard<'a> = MutexGuard<'a, T>;

    fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}
