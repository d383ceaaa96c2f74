//! Waiters that are woken after the lock is released.

/// Waiters in the order in which they were answered. Zero or one, the usual case, needs no allocation.
#[derive(Debug)]
#[non_exhaustive]
pub enum WakeList<W> {
    /// No waiter.
    Empty,
    /// One waiter.
    One(W),
    /// More.
    Several(Vec<W>),
}

impl<W> WakeList<W> {
    /// Appends a waiter.
    #[inline(never)]
    pub fn push(&mut self, waiter: W) {
        *self = match std::mem::take(self) {
            Self::Empty => Self::One(waiter),
            Self::One(first) => Self::Several(vec![first, waiter]),
            Self::Several(mut waiters) => {
                waiters.push(waiter);
                Self::Several(waiters)
            }
        };
    }

    /// Whether there is no waiter.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Wakes all waiters in their order.
    #[inline(never)]
    pub fn wake(self, wake: impl Fn(W)) {
        match self {
            Self::Empty => {}
            Self::One(waiter) => wake(waiter),
            Self::Several(waiters) => waiters.into_iter().for_each(wake),
        }
    }
}

impl<W> Default for WakeList<W> {
    #[inline]
    fn default() -> Self {
        Self::Empty
    }
}
