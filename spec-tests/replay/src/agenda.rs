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
        let number = self.number();
        self.plan_as(number, at, due);
    }

    /// A number for [`plan_as`](Self::plan_as): that of what is planned now.
    pub fn number(&mut self) -> u64 {
        self.planned += 1;
        self.planned
    }

    /// Plans something for this time, as if that had been done when the number was given.
    pub fn plan_as(&mut self, number: u64, at: Instant, due: D) {
        self.heap.push(Reverse((at, number, due)));
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
