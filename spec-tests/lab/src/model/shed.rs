//! Shedding on standing delay, which is not part of CMAP.

use std::time::Duration;

use cenote_core::pool::{CheckOutError, Instant, PoolOptions, PoolTypes, StandingDelay};

use super::Model;

impl<S: PoolTypes> Model<S> {
    /// The target and the interval, if shedding is on: either option switches it on, and 0 off.
    fn shedding(&self) -> Option<(Duration, Duration)> {
        let limits = match (self.options.codel_target, self.options.codel_interval) {
            (None, None) => return None,
            (Some(target), None) => (target, PoolOptions::DEFAULT_CODEL_INTERVAL),
            (None, Some(interval)) => (PoolOptions::DEFAULT_CODEL_TARGET, interval),
            (Some(target), Some(interval)) => (target, interval),
        };
        Some(limits).filter(|(target, interval)| !target.is_zero() && !interval.is_zero())
    }

    /// When the oldest wait reaches, or reached, the target.
    fn delayed_at(&self) -> Option<Instant> {
        let (target, _) = self.shedding()?;
        Some(self.queue.first()?.started + target)
    }

    /// Looks at the oldest wait, before it may have changed and after that.
    pub(super) fn watch_delay(&mut self) {
        self.delayed_since = match self.delayed_at() {
            Some(at) if at <= self.now && self.delayed_since.is_none() => Some(at),
            Some(at) if at <= self.now => self.delayed_since,
            Some(_) | None => None,
        };
    }

    /// A whole interval after the delay began, or would begin if nothing is served.
    pub(super) fn sheds_at(&self) -> Option<Instant> {
        let (_, interval) = self.shedding()?;
        Some(self.delayed_since.or(self.delayed_at())? + interval)
    }

    /// Fails all that have waited for longer than the target, and begins a new interval.
    pub(super) fn shed(&mut self, due: impl Fn(Instant, Instant) -> bool) {
        let Some((target, interval)) = self.shedding() else { return };
        if !self.sheds_at().is_some_and(|at| due(at, self.now)) {
            return;
        }
        let delay = StandingDelay::new(target, interval);
        let now = self.now;
        let (late, others) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|request| request.started + target < now);
        self.queue = others;
        for request in late {
            self.fail(request, CheckOutError::Shed { delay });
        }
        self.delayed_since = None;
        self.watch_delay();
    }
}
