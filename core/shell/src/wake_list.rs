//! Those who are to be woken when the lock is given back.

/// Almost always nobody or one, which takes no allocation.
#[derive(Debug)]
pub enum WakeList<W> {
    /// Nobody.
    Nobody,
    /// One, who waited for a connection that came back.
    One(W),
    /// More, in the order in which they were answered.
    Several(Vec<W>),
}

impl<W> WakeList<W> {
    /// One more, behind the others.
    #[inline(never)]
    pub fn push(&mut self, waiter: W) {
        *self = match std::mem::take(self) {
            Self::Nobody => Self::One(waiter),
            Self::One(first) => Self::Several(vec![first, waiter]),
            Self::Several(mut waiters) => {
                waiters.push(waiter);
                Self::Several(waiters)
            }
        };
    }

    /// Whether there is nobody to be woken.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Nobody)
    }

    /// Wakes them in the order in which they were answered.
    #[inline(never)]
    pub fn wake(self, wake: impl Fn(W)) {
        match self {
            Self::Nobody => {}
            Self::One(waiter) => wake(waiter),
            Self::Several(waiters) => waiters.into_iter().for_each(wake),
        }
    }
}

impl<W> Default for WakeList<W> {
    #[inline]
    fn default() -> Self {
        Self::Nobody
    }
}
