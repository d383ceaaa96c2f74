//! A check-out that has to wait.

use std::panic::Location;
use std::sync::Arc;
use std::time::Instant;

use cenote_core::error::PoolError;
use cenote_core::pool::{Input, Purpose};

use crate::connector::Connector;
use crate::desk::{Delivery, Parked, Place};
use crate::guard::PooledConnection;
use crate::parker::Parker;
use crate::shared::Shared;
use crate::woken::Waiter;

/// Waits at its place for the answer. Dropped before, it gives the place up, and an answer that
/// was there already goes back to the pool.
pub(crate) struct Request<'a, K: Connector> {
    shared: &'a Arc<Shared<K>>,
    place: Place,
    is_answered: bool,
}

impl<'a, K: Connector> Request<'a, K> {
    /// Asks for a connection. What is known at once needs no request.
    pub(crate) fn new(
        shared: &'a Arc<Shared<K>>,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<Delivery<K>, Self> {
        let answer = shared.request(deadline, purpose, || Waiter::Thread(Parker::mine()));
        answer.map_err(|place| Self { shared, place, is_answered: false })
    }
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
    /// for another answer. `None`: it is not there, and waiting for it would be in vain.
    pub(crate) fn wait_in_turn(
        mut self,
        deadline: Option<Instant>,
        is_in_vain: impl FnOnce() -> bool,
    ) -> Option<Delivery<K>> {
        match self.take() {
            Some(delivery) => Some(delivery),
            None if is_in_vain() => None,
            None => Some(self.wait(deadline)),
        }
    }

    fn take(&mut self) -> Option<Delivery<K>> {
        let mut desk = self.shared.lock();
        if matches!(desk.parked.get(self.place.index), Some(Parked::Waiting(_))) {
            return None;
        }
        let parked = desk.parked.remove(self.place.index);
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
            self.shared.abandon(self.place);
        }
    }
}

/// A connection gets its guard, an error its address.
pub(crate) fn take_over<K: Connector>(
    shared: &Arc<Shared<K>>,
    delivery: Delivery<K>,
    place: &'static Location<'static>,
) -> Result<PooledConnection<K>, PoolError> {
    match delivery {
        Ok((id, held)) => Ok(PooledConnection::new(Arc::clone(shared), id, held, place)),
        Err(error) => Err(PoolError::new(Arc::clone(&shared.address), error)),
    }
}
