//! Events that wait for subscribers: in order, and in bounded memory.

use std::collections::VecDeque;
use std::mem;

use cenote_core::outbox::Outbox;

/// An outbox of what subscribers are told. It is under the lock of what it tells of.
#[derive(Debug)]
pub(crate) struct NotificationQueue<T> {
    outbox: Outbox<T>,
    max: usize,
    dropped: u64,
    has_overflowed: bool,
}

impl<T> NotificationQueue<T> {
    /// For so many notifications; one at least.
    pub(crate) fn new(max: usize) -> Self {
        Self { outbox: Outbox::default(), max: max.max(1), dropped: 0, has_overflowed: false }
    }

    /// Appends a notification. The subscribers have not returned for long where there is no room: what comes last is
    /// dropped, so that they get a part without gaps first.
    #[inline(always)]
    pub(crate) fn push(&mut self, notification: T) {
        if self.outbox.queued() < self.max {
            self.outbox.push(notification);
        } else {
            self.overflow(notification);
        }
    }

    #[cold]
    #[inline(never)]
    fn overflow(&mut self, notification: T) {
        drop(notification);
        self.has_overflowed |= self.dropped == 0;
        self.dropped += 1;
    }

    /// Whether the first one was dropped since this was last called.
    #[inline(always)]
    pub(crate) fn take_overflow(&mut self) -> bool {
        mem::take(&mut self.has_overflowed)
    }

    /// How many were dropped because there was no room.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    #[inline(always)]
    pub(crate) fn queued(&self) -> usize {
        self.outbox.queued()
    }

    /// Whether nothing is queued or being told.
    pub(crate) fn is_idle(&self) -> bool {
        self.outbox.is_idle()
    }

    /// See [`Outbox::claim`].
    #[inline(always)]
    pub(crate) fn claim(&mut self) -> Option<VecDeque<T>> {
        self.outbox.claim()
    }

    /// See [`Outbox::claim_idle`].
    #[inline(always)]
    pub(crate) fn claim_idle(&mut self) -> bool {
        self.outbox.claim_idle()
    }

    /// See [`Outbox::claim_more`].
    #[inline(always)]
    pub(crate) fn claim_more(&mut self) -> Option<VecDeque<T>> {
        self.outbox.claim_more()
    }

    /// See [`Outbox::claim_rest`].
    pub(crate) fn claim_rest(&mut self, most: usize) -> VecDeque<T> {
        self.outbox.claim_rest(most)
    }

    /// See [`Outbox::forget`].
    pub(crate) fn forget(&mut self) -> Outbox<T> {
        self.outbox.forget()
    }
}

impl<T> AsMut<Outbox<T>> for NotificationQueue<T> {
    fn as_mut(&mut self) -> &mut Outbox<T> {
        &mut self.outbox
    }
}

#[cfg(test)]
mod tests {
    use super::NotificationQueue;

    #[test]
    fn what_comes_last_is_dropped_and_counted() {
        let mut queue = NotificationQueue::new(2);
        (1..=5).for_each(|number| queue.push(number));
        assert_eq!((queue.queued(), queue.dropped()), (2, 3));
        assert_eq!([queue.take_overflow(), queue.take_overflow()], [true, false]);
        assert_eq!(queue.claim(), Some([1, 2].into()));
        queue.push(6);
        // Only the first one is worth a warning.
        (7..=9).for_each(|number| queue.push(number));
        assert_eq!((queue.queued(), queue.dropped(), queue.take_overflow()), (2, 5, false));
        let mut least = NotificationQueue::new(0);
        least.push(1);
        assert_eq!(least.queued(), 1);
    }
}
