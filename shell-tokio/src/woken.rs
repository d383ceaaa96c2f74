//! Those who are to be woken when the lock is given back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

pub(crate) type Woken = cenote_shell::wake_list::WakeList<Waker>;

/// Of whatever runtime it is: one that panics must not keep the others asleep.
pub(crate) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
