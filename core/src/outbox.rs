//! Actions that were decided under a lock and are performed after it is released, in the order of the
//! decisions.
//!
//! The first thread that finds the outbox without a drainer drains it for all others.
//!
//! A pool behind a lock, whose actions any thread performs:
//!
//! ```
//! use cenote_core::outbox::{Outbox, release};
//! use cenote_core::pool::{Action, Input, Instant, NoPayload, PoolOptions, PoolState};
//! use std::sync::{Mutex, MutexGuard, PoisonError};
//!
//! struct Inner {
//!     state: PoolState<NoPayload>,
//!     outbox: Outbox<Action<NoPayload>>,
//! }
//!
//! impl AsMut<Outbox<Action<NoPayload>>> for Inner {
//!     fn as_mut(&mut self) -> &mut Outbox<Action<NoPayload>> {
//!         &mut self.outbox
//!     }
//! }
//!
//! struct Pool(Mutex<Inner>);
//!
//! impl Pool {
//!     fn feed(&self, now: Instant, input: Input<NoPayload>) {
//!         let mut inner = self.lock();
//!         let Inner { state, outbox } = &mut *inner;
//!         state.handle(now, input, outbox).expect("a valid input");
//!         release(|| self.lock(), inner, |action| self.perform(action));
//!     }
//!
//!     fn perform(&self, action: Action<NoPayload>) {
//!         // Without the lock: feeds inputs itself, where an action needs an answer.
//!         println!("{action:?}");
//!     }
//!
//!     fn lock(&self) -> MutexGuard<'_, Inner> {
//!         self.0.lock().unwrap_or_else(PoisonError::into_inner)
//!     }
//! }
//!
//! let mut outbox = Outbox::default();
//! let state = PoolState::new(Instant::ORIGIN, PoolOptions::default(), &mut outbox)?;
//! let pool = Pool(Mutex::new(Inner { state, outbox }));
//! pool.feed(Instant::ORIGIN, Input::Ready); // ConnectionPoolCreated, ConnectionPoolReady
//! assert!(pool.lock().outbox.is_idle());
//! # Ok::<(), cenote_core::pool::InvalidOptions>(())
//! ```
//!
//! # Panics
//!
//! An action that panics, such as a subscriber's, must not keep the actions behind it from being
//! performed. With the feature `std` the panic is caught, and [`release`] and [`drain`] return as if
//! nothing had happened; the panic hook has shown it. Without `std` a panic cannot be caught: the
//! actions behind it are performed while the thread unwinds. Only a second panic meanwhile ends the
//! process, as any panic does during another one.

use alloc::collections::VecDeque;
use core::fmt;
use core::ops::DerefMut;

use crate::pool::{Action, ActionSink, PoolTypes};

/// A queue of actions. Belongs under the lock of the state that decides on them; it is the machine's
/// [sink](ActionSink).
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
        core::mem::take(self)
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

    /// Makes the caller the drainer: it has to [`drain`] what is returned, and all that comes meanwhile.
    /// `None` when there is nothing to do, or another thread drains already.
    #[inline(always)]
    pub fn claim(&mut self) -> Option<VecDeque<A>> {
        if self.queue.is_empty() || self.is_drained {
            return None;
        }
        self.is_drained = true;
        Some(core::mem::take(&mut self.queue))
    }

    /// Makes the caller the drainer of an outbox that is idle, for actions that it does not even push. It has to
    /// [claim more](Self::claim_more) when they are performed. `false` when others come first: push them.
    #[inline(always)]
    pub fn claim_idle(&mut self) -> bool {
        let is_idle = self.is_idle();
        self.is_drained |= is_idle;
        is_idle
    }

    /// What has come since an idle outbox was [claimed](Self::claim_idle): again to be drained. `None` ends the drainer's
    /// part.
    #[inline(always)]
    pub fn claim_more(&mut self) -> Option<VecDeque<A>> {
        self.is_drained = !self.queue.is_empty();
        self.is_drained.then(|| core::mem::take(&mut self.queue))
    }

    /// At most `most` of what [`drain_some`] has left, for the one that it was left to: again to be drained. What stays is
    /// still [queued](Self::queued).
    pub fn claim_rest(&mut self, most: usize) -> VecDeque<A> {
        self.queue.drain(..most.min(self.queue.len())).collect()
    }

    /// Leaves what [`drain_some`] has left to the next that [claims](Self::claim) it, instead.
    pub fn hand_over(&mut self) {
        self.is_drained = false;
    }
}

/// Releases the lock, and [drains](drain) the outbox unless another thread does already: that one
/// performs what was pushed, possibly after `release` returns.
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
/// [claimed](Outbox::claim) as `batch`, those that other threads push meanwhile, and those that are
/// pushed while an action is performed. One thread does so at a time. A [panic](self#panics) in an action does not
/// affect those behind it.
///
/// `lock` takes the lock of the outbox, even after a panic under it. Returns the guard under which the
/// outbox was found empty.
#[inline(never)]
pub fn drain<A, G: DerefMut<Target: AsMut<Outbox<A>>>>(
    lock: impl Fn() -> G,
    batch: VecDeque<A>,
    perform: impl FnMut(A),
) -> G {
    drain_some(usize::MAX, lock, batch, perform)
}

/// The same for `most` actions at most, fewer after a panic: a thread whose others keep the outbox full leaves the rest to
/// a task. It stays [queued](Outbox::queued) under the guard that is returned, in its order, and nothing but
/// [`claim_rest`](Outbox::claim_rest) takes it, which the caller has to see to, unless it is [handed
/// over](Outbox::hand_over).
#[inline]
pub fn drain_some<A, G: DerefMut<Target: AsMut<Outbox<A>>>>(
    most: usize,
    lock: impl Fn() -> G,
    batch: VecDeque<A>,
    perform: impl FnMut(A),
) -> G {
    Drainer { left: most, batch, lock, perform, is_performing: false }.run()
}

/// The thread that drains. It goes on when a panic unwinds it.
struct Drainer<A, G: DerefMut<Target: AsMut<Outbox<A>>>, L: Fn() -> G, P: FnMut(A)> {
    /// How many more it performs.
    left: usize,
    batch: VecDeque<A>,
    lock: L,
    perform: P,
    is_performing: bool,
}

impl<A, G: DerefMut<Target: AsMut<Outbox<A>>>, L: Fn() -> G, P: FnMut(A)> Drainer<A, G, L, P> {
    #[inline(always)]
    fn run(&mut self) -> G {
        loop {
            self.is_performing = true;
            while !self.batch.is_empty() && self.left > 0 {
                self.perform_batch();
            }
            self.is_performing = false;
            let mut guard = (self.lock)();
            let outbox = (*guard).as_mut();
            if !self.batch.is_empty() {
                // What has come meanwhile comes after it.
                self.batch.append(&mut outbox.queue);
                outbox.queue = core::mem::take(&mut self.batch);
                return guard;
            }
            // The empty buffer is reused.
            core::mem::swap(&mut self.batch, &mut outbox.queue);
            if self.batch.is_empty() {
                outbox.is_drained = false;
                return guard;
            }
        }
    }

    /// Performs the batch up to its end, to what is left to this drainer, or to a panic.
    #[inline(always)]
    fn perform_batch(&mut self) {
        let Self { left, batch, perform, .. } = self;
        let turn = batch.len().min(*left);
        *left -= turn;
        contain(|| {
            for _ in 0..turn {
                let Some(item) = batch.pop_front() else { return };
                perform(item);
            }
        });
    }
}

#[cfg(feature = "std")]
#[inline(always)]
fn contain(perform: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(perform));
}

#[cfg(not(feature = "std"))]
fn contain(perform: impl FnOnce()) {
    perform();
}

impl<A, G: DerefMut<Target: AsMut<Outbox<A>>>, L: Fn() -> G, P: FnMut(A)> Drop
    for Drainer<A, G, L, P>
{
    fn drop(&mut self) {
        if self.is_performing {
            // There may be no other that comes to the rest.
            self.left = usize::MAX;
            drop(self.run());
        }
    }
}

impl<A> AsMut<Self> for Outbox<A> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl<S: PoolTypes> ActionSink<S> for Outbox<Action<S>> {
    fn act(&mut self, action: Action<S>) {
        self.push(action);
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
