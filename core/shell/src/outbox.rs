//! Actions that were decided under a lock and are performed after it is released, in the order of the decisions.
//!
//! The first thread that finds the outbox without a drainer drains it for all others. A model checker runs all
//! interleavings of threads: `.ci/model`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A queue of actions. Belongs under the lock of the state that decides on them.
///
/// ```
/// use std::sync::Mutex;
/// use cenote_shell::outbox::{Outbox, release};
///
/// let outbox = Mutex::new(Outbox::default());
/// let lock = || outbox.lock().unwrap();
/// let mut guard = lock();
/// guard.push("open a socket"); // Decided under the lock, performed after it is released.
/// let mut performed = Vec::new();
/// release(lock, guard, |action| performed.push(action));
/// assert_eq!(performed, ["open a socket"]);
/// ```
pub struct Outbox<A> {
    queue: VecDeque<A>,
    /// A thread drains the outbox, and looks again before it stops.
    is_drained: bool,
}

impl<A> Outbox<A> {
    /// An outbox that holds these actions, without a drainer.
    #[must_use]
    pub const fn new(queue: VecDeque<A>) -> Self {
        Self { queue, is_drained: false }
    }

    /// Empties the outbox in a child process, where the actions and their drainer are the parent's.
    pub fn forget(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Appends an action.
    #[inline]
    pub fn push(&mut self, item: A) {
        self.queue.push_back(item);
    }

    /// How many actions are queued, without those that were [claimed](Self::claim).
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is queued or being performed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.is_drained
    }

    /// Makes the caller the drainer: it has to [`drain`] what is returned, and all that comes meanwhile. `None`
    /// when there is nothing to do, or another thread drains already.
    #[inline(always)]
    pub fn claim(&mut self) -> Option<VecDeque<A>> {
        if self.queue.is_empty() || self.is_drained {
            return None;
        }
        self.is_drained = true;
        Some(std::mem::take(&mut self.queue))
    }
}

/// Releases the lock, and [drains](drain) the outbox unless another thread does already.
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

/// Performs actions in their order and without the lock, until there are none: those that were
/// [claimed](Outbox::claim) as `batch`, those that other threads push meanwhile, and those that are pushed while an
/// action is performed. One thread does so at a time. A panic in an action does not affect those behind it.
///
/// `lock` takes the lock of the outbox, even after a panic under it. Returns the guard under which the outbox was
/// found empty.
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
        // The empty buffer is reused.
        std::mem::swap(&mut batch, &mut outbox.queue);
        if batch.is_empty() {
            outbox.is_drained = false;
            return guard;
        }
    }
}

impl<A> AsMut<Self> for Outbox<A> {
    fn as_mut(&mut self) -> &mut Self {
        self
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
