//! Those who are to be woken when the lock is given back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Almost always nobody or one, which takes no allocation.
#[derive(Default)]
pub(crate) enum Woken {
    #[default]
    Nobody,
    One(Waker),
    Several(Vec<Waker>),
}

impl Woken {
    #[inline(never)]
    pub(crate) fn push(&mut self, waker: Waker) {
        *self = match std::mem::take(self) {
            Self::Nobody => Self::One(waker),
            Self::One(first) => Self::Several(vec![first, waker]),
            Self::Several(mut wakers) => {
                wakers.push(waker);
                Self::Several(wakers)
            }
        };
    }

    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        matches!(self, Self::Nobody)
    }

    /// In the order in which they were answered.
    #[inline(never)]
    pub(crate) fn wake(self) {
        match self {
            Self::Nobody => {}
            Self::One(waker) => wake(waker),
            Self::Several(wakers) => wakers.into_iter().for_each(wake),
        }
    }
}

/// Of whatever runtime it is: one that panics must not keep the others asleep.
fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
