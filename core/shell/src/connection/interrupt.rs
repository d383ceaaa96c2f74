//! Interrupts a connection that is in use.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::{fmt, mem};

use crate::runtime::signal::{Listener, Signal};
use crate::runtime::{Lock, contain};

/// Interrupts an operation that blocks on a connection, from another thread:
/// [`Connector::interrupter`](crate::connection::Connector::interrupter).
pub type Interrupter = Box<dyn Fn() + Send + Sync>;

/// The pool's way to the user of a connection: stop using it.
#[derive(Default)]
pub struct Interrupt {
    has_happened: AtomicBool,
    /// Of the [operation](Self::operation) that waits.
    task: Mutex<Option<Waker>>,
    signal: Signal,
    interrupter: Option<Interrupter>,
}

impl Interrupt {
    pub(crate) fn new(interrupter: Option<Interrupter>) -> Self {
        Self { interrupter, ..Self::default() }
    }

    /// Stops what is being done with the connection, and everything later.
    pub(crate) fn interrupt(&self) {
        self.renounce();
        if let Some(waker) = self.replace_task(None) {
            // A panic in it must not keep the others waiting.
            contain(|| waker.wake());
        }
        self.signal.notify_all();
        self.interrupter.iter().for_each(|interrupt| interrupt());
    }

    /// Marks the connection as unusable without touching its socket, which belongs to another process.
    pub(crate) fn renounce(&self) {
        self.has_happened.store(true, Ordering::Release);
    }

    /// Whether the connection was interrupted.
    #[must_use]
    pub fn has_happened(&self) -> bool {
        self.has_happened.load(Ordering::Acquire)
    }

    /// For the task of the connection's one operation at a time: with less effort than
    /// [listening](Self::listen), of which each task may do its own.
    pub(crate) const fn operation(&self) -> OperationTask<'_> {
        OperationTask { interrupt: self, is_kept: false }
    }

    /// Wakers are called and dropped after the lock is released.
    fn replace_task(&self, task: Option<Waker>) -> Option<Waker> {
        mem::replace(&mut *Lock::lock(&self.task), task)
    }

    /// Listens from this moment on.
    #[must_use]
    pub fn listen(&self) -> Listener<'_> {
        self.signal.listen()
    }

    /// Waits until the connection is interrupted. Does not allocate after the first wait.
    pub async fn happens(&self) {
        let interrupted = self.signal.listen();
        // After listening, so that no notification is missed in between.
        if !self.has_happened() {
            interrupted.await;
        }
    }
}

/// Wakes its task on an interrupt, until it is dropped.
pub(crate) struct OperationTask<'i> {
    interrupt: &'i Interrupt,
    is_kept: bool,
}

impl OperationTask<'_> {
    /// Waits for the interrupt.
    pub(crate) fn poll_interrupted(&mut self, cx: &Context<'_>) -> Poll<()> {
        drop(self.interrupt.replace_task(Some(cx.waker().clone())));
        self.is_kept = true;
        // After the task is kept, so that no interrupt is missed in between.
        if self.interrupt.has_happened() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for OperationTask<'_> {
    fn drop(&mut self) {
        if self.is_kept {
            drop(self.interrupt.replace_task(None));
        }
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt")
            .field("has_happened", &self.has_happened)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::Interrupt;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_task_of_an_operation_is_woken_and_not_kept_beyond_it() {
        let (interrupt, count) = (Interrupt::default(), Arc::new(Count(AtomicUsize::new(0))));
        let waker = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&waker);
        let mut ended = interrupt.operation();
        assert!(ended.poll_interrupted(&cx).is_pending());
        assert_eq!(Arc::strong_count(&count), 3);
        drop(ended);
        assert_eq!(Arc::strong_count(&count), 2);
        let mut waits = interrupt.operation();
        assert!(waits.poll_interrupted(&cx).is_pending());
        interrupt.interrupt();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(waits.poll_interrupted(&cx).is_ready());
    }
}
