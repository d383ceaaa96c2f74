//! What was decided under a lock and is to be done outside of it, in the order of the decisions.
//!
//! Whoever finds that nobody empties the outbox does it, for all others. It is the outbox of the tokio
//! shell, where a model checker goes through what threads can do to each other: `.ci/model`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lies under a lock, as a part of what the lock is for.
pub(crate) struct Outbox<A> {
    queue: VecDeque<A>,
    /// Somebody empties the outbox, and looks again before he stops.
    is_drained: bool,
}

impl<A> Outbox<A> {
    pub(crate) fn new(queue: VecDeque<A>) -> Self {
        Self { queue, is_drained: false }
    }

    pub(crate) fn push(&mut self, item: A) {
        self.queue.push_back(item);
    }

    /// There is nothing, and nothing is being performed.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.is_drained
    }

    /// What is there, for who then [performs](drain) it and all that comes meanwhile. `None` when
    /// there is nothing, or somebody does so already.
    #[inline(always)]
    pub(crate) fn claim(&mut self) -> Option<VecDeque<A>> {
        if self.queue.is_empty() || self.is_drained {
            return None;
        }
        self.is_drained = true;
        Some(std::mem::take(&mut self.queue))
    }
}

/// What is under the lock. A panic there is a broken contract; what it holds is whole all the same.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the lock back, does what waits for that, and drains unless somebody does so already.
#[inline(always)]
pub(crate) fn release<T: AsMut<Outbox<A>>, A>(
    mutex: &Mutex<T>,
    mut guard: MutexGuard<'_, T>,
    before: impl FnOnce(),
    perform: impl FnMut(A),
) {
    let batch = (*guard).as_mut().claim();
    drop(guard);
    before();
    if let Some(batch) = batch {
        drop(drain(mutex, batch, perform));
    }
}

/// Performs items in their order and without the lock, until there are none. One thread does so at
/// a time: what others put there meanwhile, and what is put there while an item is performed, is
/// its to perform. An item that panics has said so; those behind it are not to suffer. Gives the
/// lock under which it was found that there are none.
#[inline(never)]
pub(crate) fn drain<T: AsMut<Outbox<A>>, A>(
    mutex: &Mutex<T>,
    mut batch: VecDeque<A>,
    mut perform: impl FnMut(A),
) -> MutexGuard<'_, T> {
    loop {
        while !batch.is_empty() {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                while let Some(item) = batch.pop_front() {
                    perform(item);
                }
            }));
        }
        let mut guard = lock(mutex);
        let outbox = (*guard).as_mut();
        // The buffer that just went round stays for next time.
        std::mem::swap(&mut batch, &mut outbox.queue);
        if batch.is_empty() {
            outbox.is_drained = false;
            return guard;
        }
    }
}
