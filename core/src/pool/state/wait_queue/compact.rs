//! What is left of requests that went.

use core::cmp::Reverse;

use super::WaitQueue;

impl<W> WaitQueue<W> {
    /// Restores what the fields promise after a request went or was put back. Every entry is passed over
    /// once in its life, so this costs a constant on average.
    #[inline(always)]
    pub(super) fn compact(&mut self) {
        let is_tombstone_first = self.entries.front().is_some_and(|it| it.request().is_none());
        if is_tombstone_first || self.entries.len() > self.kept_at_most() {
            self.drop_tombstones();
        }
        while self.entries.get(self.first_timed).is_some_and(|entry| !entry.is_timed_in_order()) {
            self.first_timed += 1;
        }
        if !self.out_of_order.is_empty() {
            self.compact_out_of_order();
        }
        if self.entries.is_empty() {
            self.latest = None;
        }
    }

    /// Those in front, or all if they are many.
    #[inline(never)]
    fn drop_tombstones(&mut self) {
        while self.entries.front().is_some_and(|front| front.request().is_none()) {
            self.entries.pop_front();
            self.first_timed = self.first_timed.saturating_sub(1);
        }
        if self.entries.len() > self.kept_at_most() {
            self.entries.retain(|entry| entry.request().is_some());
            self.first_timed = 0;
        }
    }

    #[inline(never)]
    pub(super) fn compact_out_of_order(&mut self) {
        while let Some(&Reverse((_, id))) = self.out_of_order.peek() {
            if self.find(id).is_some() {
                break;
            }
            self.out_of_order.pop();
        }
        if self.out_of_order.len() > self.kept_at_most() {
            let mut out_of_order = core::mem::take(&mut self.out_of_order);
            out_of_order.retain(|&Reverse((_, id))| self.find(id).is_some());
            self.out_of_order = out_of_order;
        }
    }

    /// As many again as wait may be tombstones, or deadlines of requests that left.
    pub(super) const fn kept_at_most(&self) -> usize {
        2 * self.waiting + Self::TOMBSTONES_TOLERATED
    }

    /// Fewer are not worth a sweep.
    const TOMBSTONES_TOLERATED: usize = 32;
}
