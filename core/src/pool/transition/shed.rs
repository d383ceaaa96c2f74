//! Shedding on standing delay: requests in a queue that does not drain are served when their callers
//! have given up. After CoDel (Nichols and Jacobson, 2012), with the clock of a request queue: the delay stands
//! while the oldest request has waited for the target or longer, whatever is served meanwhile.

use core::time::Duration;

use crate::pool::error::{CheckOutError, StandingDelay};
use crate::pool::options::Codel;
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::request::Request;
use crate::pool::time::Instant;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Notes since when the delay stands. Runs whenever the oldest request may be another one: before an
    /// input and after it.
    #[inline]
    pub(super) fn note_delay(&mut self) {
        let reached = self.delay_reached().filter(|&at| at <= self.now);
        self.standing_since = reached.map(|at| self.standing_since.unwrap_or(at));
    }

    /// When requests are shed if none is served until then.
    pub(super) fn next_shedding(&self) -> Option<Instant> {
        let Codel { interval, .. } = self.settings.codel?;
        let reached = self.delay_reached()?;
        Some(self.standing_since.unwrap_or(reached).after(interval))
    }

    /// Fails the requests that have waited for longer than the target, oldest first. Then the interval
    /// begins anew: a burst that came last has as long to be served.
    pub(super) fn shed(&mut self, out: &mut impl ActionSink<S>) {
        let Some(Codel { target, interval }) = self.settings.codel else { return };
        let [target, interval] = [target, interval].map(Duration::from_nanos);
        let delay = StandingDelay::new(target, interval);
        while self.delay_reached().is_some_and(|at| at < self.now) {
            let Some(request) = self.queue.pop() else { break };
            self.fail(request, CheckOutError::Shed { delay }, out);
        }
        self.standing_since = None;
        self.note_delay();
    }

    /// A request that was served in vain waits again. It may be the oldest now: the delay that it makes begins
    /// now. Those that own a connection keep it.
    // WQ-17
    pub(super) fn put_back(&mut self, request: Request<S::Waiter>) {
        self.queue.put_back(request);
        self.standing_since.get_or_insert(self.now);
        self.note_delay();
    }

    /// Whether the oldest wait is not below the target.
    pub(in crate::pool) fn delay_stands(&self) -> bool {
        self.delay_reached().is_some_and(|at| at <= self.now)
    }

    /// When the oldest wait reaches the target; `None` if none waits, or without shedding.
    #[inline]
    fn delay_reached(&self) -> Option<Instant> {
        let Codel { target, .. } = self.settings.codel?;
        self.queue.waits_since().map(|since| since.after(target))
    }
}
