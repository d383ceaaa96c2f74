//! A check-out that has to wait.

use std::sync::Arc;
use std::time::Instant;

use cenote_core::pool::{Input, WaiterId};

use crate::connector::Connector;
use crate::desk::{Delivery, Parked};
use crate::parker::Parker;
use crate::shared::Shared;

/// Waits at its place for the answer. Dropped before, it gives the place up, and an answer that
/// was there already goes back to the pool.
pub(crate) struct Request<'a, K: Connector> {
    pub(crate) shared: &'a Arc<Shared<K>>,
    pub(crate) place: usize,
    pub(crate) id: WaiterId,
    pub(crate) is_answered: bool,
}

impl<K: Connector> Request<'_, K> {
    /// Blocks this thread until the answer is there. At `deadline` it sees to its timeout itself, so
    /// that a loop that is late delays nobody.
    pub(crate) fn wait(mut self, mut deadline: Option<Instant>) -> Delivery<K> {
        let parker = Parker::mine();
        loop {
            let is_in_time = parker.park(deadline);
            if let Some(delivery) = self.take() {
                return delivery;
            }
            if !is_in_time {
                self.shared.feed(Input::Timer);
                if let Some(delivery) = self.take() {
                    return delivery;
                }
                // A connection is on its way for it, which has limits of its own (OUT-23).
                deadline = None;
            }
        }
    }

    /// As [`wait`](Self::wait), where this thread may have been woken for it already, while it waited
    /// for another answer.
    pub(crate) fn wait_in_turn(mut self, deadline: Option<Instant>) -> Delivery<K> {
        match self.take() {
            Some(delivery) => delivery,
            None => self.wait(deadline),
        }
    }

    fn take(&mut self) -> Option<Delivery<K>> {
        let mut desk = self.shared.lock();
        if matches!(desk.parked.get(self.place), Some(Parked::Waiting(_))) {
            return None;
        }
        let parked = desk.parked.remove(self.place);
        drop(desk);
        self.is_answered = true;
        match parked {
            Parked::Answered(delivery) => Some(delivery),
            Parked::Waiting(_) => unreachable!("it was answered a moment ago"),
        }
    }
}

impl<K: Connector> Drop for Request<'_, K> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.abandon(self.place, self.id);
        }
    }
}
