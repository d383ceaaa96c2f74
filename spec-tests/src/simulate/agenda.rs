//! What is going to happen, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use cenote_core::pool::Instant;

/// In the order of time; what is due at the same moment, in the order in which it was planned.
#[derive(Debug)]
pub(super) struct Agenda<D> {
    heap: BinaryHeap<Reverse<(Instant, u64, D)>>,
    planned: u64,
}

impl<D: Ord> Agenda<D> {
    pub(super) fn plan(&mut self, now: Instant, after: Duration, due: D) {
        self.planned += 1;
        self.heap.push(Reverse((now + after, self.planned, due)));
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, D)> {
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }
}

impl<D: Ord> Default for Agenda<D> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }
}
