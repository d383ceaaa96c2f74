//! Wakes tasks and threads that wait for a change.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use slab::Slab;

use crate::runtime::{Lock, contain};

/// Wakes all listeners at once. A listener that is made before the state is looked at misses no
/// notification.
///
/// Its lock may be the runtime's, so that a model checker sees the order of uses. No waker is cloned, called or
/// dropped under it: a waker may poll its listener, or drop it together with its task.
pub(crate) struct Signal<M = Mutex<Wakers>> {
    wakers: M,
}

/// The wakers of a signal's listeners.
#[derive(Debug, Default)]
pub struct Wakers {
    notifications: u64,
    /// Of listeners that were made after the last notification.
    waiting: Slab<Waker>,
}

/// Waits for the first notification after it was made: as a future, or as a thread that blocks.
///
/// Cancel-safe.
pub struct Listener<'s, M: Lock<Wakers> = Mutex<Wakers>> {
    signal: &'s Signal<M>,
    /// The number of the last notification when it was made.
    seen: u64,
    /// Where its waker is, until the notification.
    key: Option<usize>,
}

impl<M: Lock<Wakers>> Signal<M> {
    /// Listens from this moment on.
    pub(crate) fn listen(&self) -> Listener<'_, M> {
        Listener { signal: self, seen: self.wakers.lock().notifications, key: None }
    }

    pub(crate) fn notify_all(&self) {
        let waiting = {
            let mut wakers = self.wakers.lock();
            wakers.notifications += 1;
            mem::take(&mut wakers.waiting)
        };
        for (_, waker) in waiting {
            // A waker that panics must not keep the other listeners waiting.
            contain(|| waker.wake());
        }
    }
}

impl<M: Lock<Wakers>> Listener<'_, M> {
    /// Blocks the thread until the notification, until `deadline` at most. Returns whether it came.
    #[must_use]
    pub fn wait(mut self, deadline: Option<Instant>) -> bool {
        let (parker, unparker) = parking::pair();
        let waker = Waker::from(unparker);
        let mut context = Context::from_waker(&waker);
        loop {
            if Pin::new(&mut self).poll(&mut context).is_ready() {
                return true;
            }
            match deadline {
                None => parker.park(),
                Some(deadline) if Instant::now() >= deadline => return false,
                Some(deadline) => drop(parker.park_deadline(deadline)),
            }
        }
    }
}

impl<M: Lock<Wakers>> Future for Listener<'_, M> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let waker = cx.waker().clone();
        let mut wakers = this.signal.wakers.lock();
        if wakers.notifications != this.seen {
            return Poll::Ready(()); // The lock is released before the waker is dropped.
        }
        let old = match this.key {
            Some(key) => Some(mem::replace(&mut wakers.waiting[key], waker)),
            None => {
                this.key = Some(wakers.waiting.insert(waker));
                None
            }
        };
        drop(wakers);
        drop(old);
        Poll::Pending
    }
}

impl<M: Lock<Wakers>> Drop for Listener<'_, M> {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut wakers = self.signal.wakers.lock();
        let is_waiting = wakers.notifications == self.seen;
        let waker = is_waiting.then(|| wakers.waiting.remove(key));
        drop(wakers);
        drop(waker);
    }
}

impl<M: Lock<Wakers>> Default for Signal<M> {
    fn default() -> Self {
        Self { wakers: M::new(Wakers::default()) }
    }
}

impl<M> fmt::Debug for Signal<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}

impl<M: Lock<Wakers>> fmt::Debug for Listener<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("seen", &self.seen).finish_non_exhaustive()
    }
}
