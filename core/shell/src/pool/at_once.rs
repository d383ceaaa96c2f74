//! What the machine decides [at once](cenote_core::pool::PoolState::check_out_at_once).

use cenote_core::pool::{ActionSink, Instant, Purpose, WaiterId};

use super::collector::NoEvents;
use super::inner::{CheckOutArgs, PoolInner};
use super::types::{PooledSocket, Types};
use super::waiters::WaiterKey;
use crate::connection::Connector;
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> PoolInner<R, K> {
    /// Whether nothing is handled at once, so that a recording has all, or the times that only the general way reads.
    #[inline(never)]
    pub(super) fn is_recorded_by_input(&self) -> bool {
        let has_times = self.state.needs_now_at_once() || !self.state.needs_now();
        self.state.is_journaled() || !has_times
    }

    /// See [`PoolState::check_out_at_once`](cenote_core::pool::PoolState::check_out_at_once).
    #[inline(always)]
    pub(super) fn check_out_at_once(
        &mut self,
        now: Instant,
        purpose: Purpose,
        events: &mut impl ActionSink<Types<R, K>>,
    ) -> Option<Box<PooledSocket<R, K>>> {
        let id = WaiterId(self.check_outs + 1);
        let (_, conn) = self.state.check_out_at_once(now, id, purpose, events)?;
        self.check_outs += 1;
        Some(conn)
    }

    /// See [`PoolState::check_in_at_once`](cenote_core::pool::PoolState::check_in_at_once).
    #[inline(always)]
    pub(super) fn check_in_at_once(
        &mut self,
        now: Instant,
        conn: Box<PooledSocket<R, K>>,
        events: &mut impl ActionSink<Types<R, K>>,
    ) -> Result<(), Box<PooledSocket<R, K>>> {
        self.state.check_in_at_once(now, conn.id, conn, events)
    }

    /// See [`PoolState::enqueue_at_once`](cenote_core::pool::PoolState::enqueue_at_once). The caller's waiter has
    /// to be [parked](super::waiters::Waiters::park).
    #[inline(always)]
    pub(super) fn enqueue_at_once(
        &mut self,
        now: Instant,
        since: std::time::Instant,
        CheckOutArgs { deadline, purpose }: CheckOutArgs,
    ) -> Option<(WaiterKey, Option<Instant>)> {
        let (id, slot) = (WaiterId(self.check_outs + 1), self.waiters.next_slot());
        let enqueued = self.state.enqueue_at_once(now, id, slot, deadline, purpose, &mut NoEvents);
        let limit = enqueued.ok()?;
        self.check_outs += 1;
        self.waiters.add();
        Some((WaiterKey { slot, id, since }, limit))
    }

    /// See [`PoolState::hand_over_at_once`](cenote_core::pool::PoolState::hand_over_at_once). Returns what wakes the
    /// caller that has the connection now.
    #[inline(always)]
    pub(super) fn hand_over_at_once(
        &mut self,
        now: Instant,
        conn: Box<PooledSocket<R, K>>,
    ) -> Result<Option<R::Waiter>, Box<PooledSocket<R, K>>> {
        let (slot, conn) = self.state.hand_over_at_once(now, conn.id, conn, &mut NoEvents)?;
        Ok(self.waiters.answer(slot, Ok(conn)))
    }

    /// See [`PoolState::cancel_at_once`](cenote_core::pool::PoolState::cancel_at_once). Returns whether that is done. The
    /// caller's waiter has to be taken out of its slot before.
    #[inline(always)]
    pub(super) fn cancel_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        events: &mut impl ActionSink<Types<R, K>>,
    ) -> bool {
        let slot = self.state.cancel_at_once(now, id, events);
        slot.map(|slot| self.waiters.remove(slot)).is_some()
    }
}
