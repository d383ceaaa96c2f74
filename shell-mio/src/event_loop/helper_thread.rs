use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_channel::oneshot;

use super::EventLoop;
use crate::loop_thread::Running;

/// The threads that run work for tasks, until they have ended.
#[derive(Debug, Default)]
pub(super) struct HelperThreads(Mutex<Vec<Running>>);

impl EventLoop {
    /// Runs work that blocks on a thread of its own, which ends with it: a driver's own way to connect,
    /// for example. Dropping the future does not end the work; its result is dropped then, and closing the
    /// pool waits for it.
    ///
    /// # Errors
    ///
    /// The operating system has no thread, or the work panicked. In an
    /// [embedded](crate::PoolSource) pool, which has no threads, always.
    pub async fn on_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<R> {
        let (sender, receiver) = oneshot::channel();
        self.check_threads()?;
        // The receiver may be gone.
        let started = Running::start("cenote-helper", move || drop(sender.send(work())))?;
        self.inner.helpers.add(started);
        receiver.await.map_err(|_| io::Error::other("the work on the helper thread panicked"))
    }

    /// Whether there may be threads.
    pub(super) fn check_threads(&self) -> io::Result<()> {
        if self.is_embedded() {
            let reason = "an embedded pool has no threads of its own";
            return Err(io::Error::new(ErrorKind::Unsupported, reason));
        }
        Ok(())
    }

    /// Waits for the end of the threads that run [work](Self::on_thread), until `deadline` at most.
    pub(crate) fn join_helpers(&self, deadline: Option<Instant>) {
        // Not under the lock: a thread that ends may start another one.
        let threads = std::mem::take(&mut *self.inner.helpers.threads());
        for thread in threads {
            let late = if thread.is_current() { Some(thread) } else { thread.join(deadline) };
            late.into_iter().for_each(|thread| self.inner.helpers.add(thread));
        }
    }
}

impl HelperThreads {
    /// Those that have ended need not be waited for.
    fn add(&self, thread: Running) {
        let mut threads = self.threads();
        threads.retain(|thread| !thread.has_ended());
        threads.push(thread);
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HelperThreads {
    /// The threads of the parent process must not be detached in a child process: they do not exist.
    fn drop(&mut self) {
        let threads = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in std::mem::take(threads) {
            if !thread.is_here() {
                std::mem::forget(thread);
            }
        }
    }
}
