//! The callers that wait for a connection, and answers that wait for their callers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use std::{mem, thread};

use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutError, WaiterId};
use slab::Slab;

use super::types::Delivery;
use crate::connection::Connector;
use crate::runtime::Runtime;

/// The slot in which a check-out waits, its number, and since when it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterKey {
    pub(super) slot: u32,
    pub(super) id: WaiterId,
    pub(super) since: Instant,
}

/// A check-out that waits, or whose answer waits for it.
pub(super) enum WaiterSlot<R: Runtime, K: Connector<R>> {
    Waiting(R::Waiter),
    Answered(Delivery<R, K>),
    /// There is no caller: not yet, or not any more. The machine is about to hear of the latter.
    Vacant,
    /// The caller has given up while it fails with many others: the turn that comes to it frees the slot.
    GivenUp,
}

/// One slot for each check-out that has to wait.
pub(super) struct Waiters<R: Runtime, K: Connector<R>>(Slab<WaiterSlot<R, K>>);

impl<R: Runtime, K: Connector<R>> Waiters<R, K> {
    pub(super) const fn new() -> Self {
        Self(Slab::new())
    }

    /// The slot that [`add`](Self::add) takes next.
    #[inline(always)]
    pub(super) fn next_slot(&self) -> u32 {
        u32::try_from(self.0.vacant_key()).expect("fewer callers wait")
    }

    /// Takes the [next slot](Self::next_slot). The caller's waiter has to be [parked](Self::park) in it.
    #[inline(always)]
    pub(super) fn add(&mut self) {
        // A quarter at a time, and not the double: a long queue would waste as much again as it needs.
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact((self.0.len() / 4).max(16));
        }
        self.0.insert(WaiterSlot::Vacant);
    }

    /// Puts what wakes a caller into its slot. Fails with the panic of a foreign waker that is cloned.
    #[inline(always)]
    pub(super) fn park(
        &mut self,
        key: WaiterKey,
        waiter: impl FnOnce() -> R::Waiter,
    ) -> thread::Result<()> {
        let slot = &mut self.0[key.slot as usize];
        catch_unwind(AssertUnwindSafe(|| *slot = WaiterSlot::Waiting(waiter())))
    }

    /// Puts the answer in. Returns what wakes the caller, if there is one.
    #[inline(always)]
    pub(super) fn answer(&mut self, slot: u32, answer: Delivery<R, K>) -> Option<R::Waiter> {
        match mem::replace(&mut self.0[slot as usize], WaiterSlot::Answered(answer)) {
            WaiterSlot::Waiting(waiter) => Some(waiter),
            WaiterSlot::Answered(_) | WaiterSlot::Vacant | WaiterSlot::GivenUp => None,
        }
    }

    /// Puts an error in, or frees the slot of a caller that has given up. Returns what wakes the caller, if there is one.
    pub(super) fn fail(
        &mut self,
        slot: u32,
        error: CheckOutError<ConnectionError>,
    ) -> Option<R::Waiter> {
        if let Some(WaiterSlot::GivenUp) = self.get_mut(slot) {
            self.remove(slot);
            return None;
        }
        self.answer(slot, Err(error))
    }

    /// `None` for a slot of the parent, in a child process.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut WaiterSlot<R, K>> {
        self.0.get_mut(slot as usize)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, slot: u32) -> Option<WaiterSlot<R, K>> {
        self.0.try_remove(slot as usize)
    }
}
