//! What was decided under a lock and is to be done outside of it, in the order of the decisions.
//!
//! Whoever finds that nobody empties the outbox does it, for all others. A model checker goes
//! through what threads can do to each other here, under the lock of the tokio shell: `.ci/model`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Lies under a lock, as a part of what the lock is for.
pub struct Outbox<A> {
    queue: VecDeque<A>,
    /// Somebody empties the outbox, and looks again before he stops.
    is_drained: bool,
}

impl<A> Outbox<A> {
    /// With this in it, which nobody performs yet.
    #[must_use]
    pub const fn new(queue: VecDeque<A>) -> Self {
        Self { queue, is_drained: false }
    }

    /// What is there, and whoever empties it, is another process's: from now on there is nothing.
    pub fn forget(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Behind everything else.
    #[inline]
    pub fn push(&mut self, item: A) {
        self.queue.push_back(item);
    }

    /// There is nothing, and nothing is being performed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.is_drained
    }

    /// What is there, for who then [performs](drain) it and all that comes meanwhile. `None` when
    /// there is nothing, or somebody does so already.
    #[inline(always)]
    pub fn claim(&mut self) -> Option<VecDeque<A>> {
        if self.queue.is_empty() || self.is_drained {
            return None;
        }
        self.is_drained = true;
        Some(std::mem::take(&mut self.queue))
    }
}

/// Gives the lock back, and [performs](drain) what there is, unless somebody does so already.
pub fn release<A, G: DerefMut<Target: AsMut<Outbox<A>>>>(
    lock: impl Fn() -> G,
    mut guard: G,
    perform: impl FnMut(A),
) {
    let batch = (*guard).as_mut().claim();
    drop(guard);
    if let Some(batch) = batch {
        drop(drain(lock, batch, perform));
    }
}

/// Performs items in their order and without the lock, until there are none. One thread does so at
/// a time: what others put there meanwhile, and what is put there while an item is performed, is
/// its to perform. An item that panics has said so; those behind it are not to suffer.
///
/// `batch` is what was [claimed](Outbox::claim). `lock` takes the lock that the outbox lies under, even
/// after a panic under it; it is given back at each item, and the one under which it was found that
/// there are none is returned.
#[inline(never)]
pub fn drain<A, G: DerefMut<Target: AsMut<Outbox<A>>>>(
    lock: impl Fn() -> G,
    mut batch: VecDeque<A>,
    mut perform: impl FnMut(A),
) -> G {
    loop {
        while !batch.is_empty() {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                while let Some(item) = batch.pop_front() {
                    perform(item);
                }
            }));
        }
        let mut guard = lock();
        let outbox = (*guard).as_mut();
        // The buffer that just went round stays for next time.
        std::mem::swap(&mut batch, &mut outbox.queue);
        if batch.is_empty() {
            outbox.is_drained = false;
            return guard;
        }
    }
}

impl<A> Default for Outbox<A> {
    fn default() -> Self {
        Self::new(VecDeque::new())
    }
}

impl<A> fmt::Debug for Outbox<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, is_drained } = self;
        f.debug_struct("Outbox")
            .field("waiting", &queue.len())
            .field("is_drained", is_drained)
            .finish()
    }
}
