//! What is going to happen in virtual time, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cenote_core::pool::Instant;

/// In the order of time; what is due at the same moment, in the order in which it was planned.
#[derive(Debug)]
pub struct Agenda<D> {
    heap: BinaryHeap<Reverse<(Instant, u64, D)>>,
    planned: u64,
}

impl<D: Ord> Agenda<D> {
    /// Plans something for this time.
    pub fn plan(&mut self, at: Instant, due: D) {
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, due)));
    }

    /// When the next of it is due.
    pub fn next_time(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Takes what is due next, with its time.
    pub fn pop(&mut self) -> Option<(Instant, D)> {
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }
}

impl<D: Ord> Default for Agenda<D> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }
}
