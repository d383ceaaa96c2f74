//! Many callers that fail together, as when the pool is cleared: they are answered in turns, so that the caller of `clear`
//! can go on.

use std::collections::VecDeque;
use std::sync::Arc;

use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutError, FailedRequests};

use super::driver::PoolDriver;
use super::inner::PoolInner;
use super::release::TURN;
use super::rest;
use crate::connection::Connector;
use crate::runtime::Runtime;
use crate::runtime::wake_list::WakeList;

/// Slots of callers that fail, in the machine's order.
#[derive(Default)]
pub(super) struct Failing {
    queue: VecDeque<(FailedRequests<u32>, CheckOutError<ConnectionError>)>,
    /// Some were added, and no turn was started since.
    is_new: bool,
}

impl Failing {
    pub(super) fn push(
        &mut self,
        slots: FailedRequests<u32>,
        error: CheckOutError<ConnectionError>,
    ) {
        self.queue.push_back((slots, error));
        self.is_new = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether a task is to be started for the turns.
    pub(super) fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// In a child process: the task that there was is the parent's.
    pub(super) fn begin_anew(&mut self) {
        self.is_new = true;
    }

    fn pop(&mut self) -> Option<(u32, CheckOutError<ConnectionError>)> {
        loop {
            let (slots, error) = self.queue.front_mut()?;
            match slots.next() {
                Some(slot) => return Some((slot, error.clone())),
                None => drop(self.queue.pop_front()),
            }
        }
    }
}

impl<R: Runtime, K: Connector<R>> PoolInner<R, K> {
    /// Answers so many callers that fail. Returns what wakes them.
    pub(super) fn answer_failing(&mut self, most: usize) -> WakeList<R::Waiter> {
        let mut wakes = WakeList::default();
        for _ in 0..most {
            let Some((slot, error)) = self.pending.failing.pop() else { break };
            if let Some(waiter) = self.waiters.fail(slot, error) {
                wakes.push(waiter);
            }
        }
        wakes
    }
}

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Answers the first of those that fail, and leaves the others to a task, which is started if they are new. The next
    /// caller that acts may come first, so that nothing is lost where nothing drives the runtime.
    #[cold]
    #[inline(never)]
    pub(super) fn fail_in_turns(self: &Arc<Self>) {
        while self.fail_some() {
            let mut inner = self.lock();
            // The runtime of a closed pool may have ended, and a child process has that of its parent.
            if !inner.is_closed() && !self.is_inherited() {
                let is_new = inner.pending.failing.take_new();
                drop(inner);
                if is_new {
                    rest::start(self, Self::fail_some);
                }
                return;
            }
        }
    }

    /// Answers one turn of those that fail. Returns whether some are left.
    fn fail_some(self: &Arc<Self>) -> bool {
        let mut inner = self.lock();
        let wakes = inner.answer_failing(TURN);
        let is_left = !inner.pending.failing.is_empty();
        drop(inner);
        wakes.wake(Self::wake);
        is_left
    }
}
