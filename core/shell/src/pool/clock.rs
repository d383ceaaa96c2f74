//! The pool's time, and when the clock is read.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cenote_core::pool::Instant;

use super::driver::PoolDriver;
use super::inner::PoolInner;
use super::types::InputContext;
use crate::connection::Connector;
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// The clock is read only if the time is looked at: by the machine, a subscriber, or the reader of a
    /// whole trace.
    #[inline(always)]
    pub(super) fn context(&self, inner: &PoolInner<R, K>, is_timed: bool) -> InputContext {
        let wants_events = self.wants_events();
        let is_timed = is_timed || inner.state.needs_now();
        let is_read = is_timed || wants_events || inner.state.is_journaled();
        let now = if is_read { self.now() } else { inner.state.now() };
        InputContext { now, is_timed, is_use: false, wants_events }
    }

    /// The time for an input that is handled at once while no request waits.
    #[inline(always)]
    pub(super) fn now_at_once(&self, inner: &PoolInner<R, K>) -> Instant {
        if inner.state.needs_now_at_once() { self.now() } else { inner.state.now() }
    }

    /// The time now, as the machine counts it.
    pub(super) fn now(&self) -> Instant {
        self.instant(R::now())
    }

    pub(super) fn instant(&self, at: std::time::Instant) -> Instant {
        Instant::from_std(at, self.origin)
    }

    /// A time of the machine's as one of the clock's; `None` if it is out of the clock's range, which
    /// means never.
    pub(super) fn time_of(&self, instant: Instant) -> Option<std::time::Instant> {
        instant.into_std(self.origin)
    }

    /// The zero of the pool's time: when it was made, or the client that it is of. As a deadline it asks for what is
    /// there at once.
    #[must_use]
    pub const fn time_zero(&self) -> std::time::Instant {
        self.origin
    }

    /// When a check-out that begins now, without a deadline of its own, has to be finished: `timeoutMS`.
    // CS-19
    #[must_use]
    #[inline]
    pub fn end_of_operation(&self) -> Option<std::time::Instant> {
        // The clock is read only if there is one.
        let timeout = self.timeout?;
        R::now().checked_add(timeout)
    }

    /// See [`Pool::set_min_round_trip`](super::Pool::set_min_round_trip).
    pub fn set_min_round_trip(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.min_round_trip.store(nanos, Ordering::Relaxed);
    }

    /// How long a round trip to the server takes at least, as far as is known; otherwise zero.
    #[must_use]
    pub fn min_round_trip(&self) -> Duration {
        Duration::from_nanos(self.min_round_trip.load(Ordering::Relaxed))
    }

    /// When a check-out that begins now times out, if it has no deadline of its own: `waitQueueTimeoutMS`.
    #[must_use]
    pub fn end_of_wait(&self) -> Option<std::time::Instant> {
        let timeout = self.lock().state.options().wait_queue_timeout?;
        R::now().checked_add(timeout).filter(|_| !timeout.is_zero())
    }
}
