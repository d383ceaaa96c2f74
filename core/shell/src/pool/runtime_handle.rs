//! Where a pool lives: its process, its runtime, its timer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::runtime::Runtime;
use crate::runtime::process::Process;

/// The runtime on which connections are opened and the timer runs; another one after a fork.
pub(super) struct RuntimeHandle<R: Runtime> {
    process: AtomicU32,
    current: Mutex<Current<R>>,
}

struct Current<R: Runtime> {
    runtime: R,
    timer: Option<R::Task>,
}

impl<R: Runtime> RuntimeHandle<R> {
    pub(super) fn new(runtime: R) -> Self {
        let current = Mutex::new(Current { runtime, timer: None });
        Self { process: AtomicU32::new(Process::current().0), current }
    }

    pub(super) fn runtime(&self) -> R {
        self.current().runtime.clone()
    }

    /// Whether this is a child of the process in which the pool lives.
    // PS-04
    pub(super) fn is_inherited(&self) -> bool {
        !Process(self.process.load(Ordering::Relaxed)).is_current()
    }

    /// The pool lives in this process and on this runtime from now on. Returns what is the parent's.
    pub(super) fn move_to(&self, runtime: R) -> impl Sized + use<R> {
        self.process.store(Process::current().0, Ordering::Relaxed);
        std::mem::replace(&mut *self.current(), Current { runtime, timer: None })
    }

    /// Calls `work` while no other thread has this handle's lock.
    pub(super) fn while_quiet<T>(&self, work: impl FnOnce() -> T) -> T {
        let _current = self.current();
        work()
    }

    pub(super) fn set_timer(&self, timer: R::Task) {
        self.current().timer = Some(timer);
    }

    pub(super) fn stop_timer(&self) {
        let timer = self.current().timer.take();
        timer.into_iter().for_each(R::abort);
    }

    fn current(&self) -> MutexGuard<'_, Current<R>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
