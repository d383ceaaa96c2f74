//! When connections are established, in a pool that decides it by itself: `adaptive_connecting` and `overload_backoff`.
//! Neither is part of CMAP, and neither does more than `maxConnecting` and `maxPoolSize` permit.

use crate::pool::id::ConnId;
use crate::pool::options::{PoolOptions, mix};
use crate::pool::state::PoolState;
use crate::pool::state::lists::List;
use crate::pool::time::{Instant, nanos};
use crate::pool::types::PoolTypes;

/// A connection is worth establishing if the wait for one that is checked in is this many times longer.
const PATIENCE: u64 = 2;
/// One more connection may be pending for each time that the wait is this many times longer than an establishment and
/// than a use.
const HURRY: u128 = 4;
/// Of as many connections one more may be pending.
const SHARE: u32 = 10;

impl<S: PoolTypes> PoolState<S> {
    /// Whether as few connections are pending as is right now, and the next one does not have to wait.
    pub(super) fn is_time_to_establish(&self) -> bool {
        let max_pending = self.max_pending();
        self.connections.len(List::Pending) < max_pending
            && (max_pending > 1 || !self.pacing.waits(self.now))
    }

    /// Whether a connection may be established for the oldest request, or for one that comes now.
    #[inline]
    pub(in crate::pool) fn may_establish(&self) -> bool {
        self.may_create() && (!self.settings.adapts || self.worth_establishing_from() <= self.now)
    }

    /// When a connection is created that waits for its time; `None` if no request and no minimum wants one, or an
    /// input has to come first.
    pub(super) fn next_establishment(&self) -> Option<Instant> {
        let max_pending = self.max_pending();
        let is_full = self.connections.len(List::Pending) >= max_pending;
        if !self.settings.paces || is_full || !self.has_permit() {
            return None;
        }
        let for_request = (!self.queue.is_empty()).then(|| self.worth_establishing_from());
        let wanted = for_request.into_iter().chain(self.next_population()).min()?;
        let not_before = self.pacing.not_before.filter(|_| max_pending == 1);
        Some(not_before.map_or(wanted, |at| at.max(wanted)))
    }

    /// How many connections may be pending. After an overload one probes the server. An adaptive pool starts with all
    /// that `maxConnecting` permits; once it knows how long one takes, it establishes more than one at a time only if it
    /// is large or the wait is long.
    fn max_pending(&self) -> u32 {
        let max = self.settings.max_pending;
        if self.pacing.overloads > 0 {
            return 1;
        }
        let Some(establishment) = self.pacing.establishment else { return max };
        let slower = establishment.max(self.pacing.use_time.unwrap_or(0));
        let by_wait = self.expected_wait() / u128::max(u128::from(slower) * HURRY, 1);
        let by_size = self.established() / SHARE;
        u32::try_from(by_wait).unwrap_or(max).max(by_size).clamp(1, max)
    }

    /// From when on a connection is worth establishing for the oldest request, or for one that comes now: if the wait is
    /// expected to be long enough, or if no connection has come for as long.
    fn worth_establishing_from(&self) -> Instant {
        let is_first = self.established() == 0;
        let Some(establishment) = self.pacing.establishment.filter(|_| !is_first) else {
            return self.now;
        };
        if self.expected_wait() > u128::from(establishment) * u128::from(PATIENCE) {
            return self.now;
        }
        let patience = establishment.saturating_mul(PATIENCE);
        let started = self.queue.waits_since().unwrap_or(self.now);
        self.pacing.gained.map_or(started, |gained| gained.max(started)).after(patience)
    }

    /// How long the whole queue, or a request that comes now, is going to wait at the rate at which connections are
    /// checked in; 0 as long as that is not known.
    fn expected_wait(&self) -> u128 {
        let waiting = self.queue.len().max(1) as u128;
        let use_time = u128::from(self.pacing.use_time.unwrap_or(0));
        waiting * use_time / u128::from(self.established().max(1))
    }

    /// A connection was established, so the server has time. An adaptive pool that establishes one at a time waits as
    /// long as this one took before the next, and others have the server to themselves.
    pub(super) fn note_establishment(&mut self, created: Instant) {
        if !self.settings.paces {
            return;
        }
        self.pacing.forgive();
        if self.settings.adapts {
            let took = self.now.as_nanos() - created.as_nanos();
            self.pacing.established(took, self.now);
            self.pacing.not_before = Some(self.now.after(took));
        }
    }

    /// The use of a connection has ended.
    #[inline(never)]
    pub(super) fn note_use(&mut self, id: ConnId) {
        let since = self.connections.known(id).since();
        self.pacing.used(self.now.as_nanos() - since.as_nanos(), self.now);
    }

    /// The establishment of connection `number` failed because the server may be overloaded: the pool backs off, by the
    /// formula of client backpressure.
    // ER-42
    pub(super) fn back_off(&mut self, number: u64) {
        let Some(base) = self.settings.backoff else { return };
        if self.pacing.overloads > 0 && self.pacing.waits(self.now) {
            return;
        }
        self.pacing.overloads = self.pacing.overloads.saturating_add(1);
        let factor = 1_u64.checked_shl(self.pacing.overloads).unwrap_or(u64::MAX);
        let longest = base.saturating_mul(factor).min(nanos(PoolOptions::MAX_OVERLOAD_BACKOFF));
        let jitter = mix(self.settings.jitter_seed ^ mix(number)) % (longest + 1);
        self.pacing.not_before = Some(self.now.after(jitter));
    }

    /// Those that are not pending.
    fn established(&self) -> u32 {
        self.connections.total() - self.connections.len(List::Pending)
    }
}
