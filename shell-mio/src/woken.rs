//! Those who are to be woken when the lock is given back.

use crate::desk::Waiter;

/// Almost always nobody or one, which takes no allocation.
#[derive(Default)]
pub(crate) enum Woken {
    #[default]
    Nobody,
    One(Waiter),
    Several(Vec<Waiter>),
}

impl Woken {
    #[inline(never)]
    pub(crate) fn push(&mut self, waiter: Waiter) {
        *self = match std::mem::take(self) {
            Self::Nobody => Self::One(waiter),
            Self::One(first) => Self::Several(vec![first, waiter]),
            Self::Several(mut waiters) => {
                waiters.push(waiter);
                Self::Several(waiters)
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
            Self::One(waiter) => waiter.wake(),
            Self::Several(waiters) => waiters.into_iter().for_each(Waiter::wake),
        }
    }
}
