//! When connections are established and how many are kept, by policies that are not part of CMAP.

use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions, PoolTypes, Status};

use super::Model;
use super::connection::split_mix;
use super::view::{is_in_use, is_pending, owner_of};

/// What an adaptive pool has measured, and a backoff after an overload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The time that the last successful establishment took, in nanoseconds.
    pub(super) establishment: Option<u64>,
    /// The time of a use, in nanoseconds: each new one has a weight of a quarter.
    pub(super) use_time: Option<u64>,
    /// The last time at which a connection was established or checked in.
    pub(super) gained: Option<Instant>,
    pub(super) not_before: Option<Instant>,
    /// Overloads in a row.
    pub(super) overloads: u32,
}

/// What was needed since then, and what that predicts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) since: Instant,
    /// Connections times nanoseconds.
    pub(super) sum: u64,
    pub(super) predicted: u32,
}

impl<S: PoolTypes> Model<S> {
    pub(super) fn adapts(&self) -> bool {
        self.options.adaptive_connecting == Some(true)
    }

    pub(super) fn backoff(&self) -> Option<Duration> {
        self.options.overload_backoff.filter(|base| !base.is_zero())
    }

    fn predicts(&self) -> bool {
        self.options.predictive_min_pool_size == Some(true)
    }

    /// The number of connections that exist and are not pending.
    fn established_count(&self) -> usize {
        self.connections.len() - self.how_many(is_pending)
    }

    /// How many may be pending.
    fn paced_pending(&self) -> usize {
        if self.pace.overloads > 0 {
            return 1;
        }
        let max = self.max_pending();
        let Some(establishment) = self.pace.establishment else { return max };
        let slower = u128::from(establishment.max(self.pace.use_time.unwrap_or(0)));
        let by_wait = self.expected_wait() / u128::max(4 * slower, 1);
        let by_wait = usize::try_from(by_wait).unwrap_or(max);
        by_wait.max(self.established_count() / 10).clamp(1, max)
    }

    /// For how long the whole queue waits, if connections come back as they have until now.
    fn expected_wait(&self) -> u128 {
        let waiting = usize::max(self.queue.len(), 1) as u128;
        let at_once = usize::max(self.established_count(), 1) as u128;
        waiting * u128::from(self.pace.use_time.unwrap_or(0)) / at_once
    }

    /// From when on the policies permit the next connection.
    fn paced_from(&self) -> Instant {
        let is_paced = self.paced_pending() == 1;
        self.pace.not_before.filter(|_| is_paced).unwrap_or(self.now)
    }

    pub(super) fn is_in_pace(&self) -> bool {
        self.has_paced_permit() && self.paced_from() <= self.now
    }

    fn has_paced_permit(&self) -> bool {
        self.how_many(is_pending) < self.paced_pending()
    }

    /// A request has a connection established only if that is worth it.
    pub(super) fn may_establish(&self) -> bool {
        self.may_create() && self.is_worth_it_from() <= self.now
    }

    fn is_worth_it_from(&self) -> Instant {
        let Some(establishment) = self.pace.establishment else { return self.now };
        let is_long = self.expected_wait() > 2 * u128::from(establishment);
        if self.established_count() == 0 || is_long {
            return self.now;
        }
        let asked = self.queue.first().map_or(self.now, |request| request.started);
        let since = self.pace.gained.into_iter().chain([asked]).max().expect("one at least");
        since + Duration::from_nanos(establishment) + Duration::from_nanos(establishment)
    }

    /// When the next connection is created without another input.
    pub(super) fn establishes_at(&self) -> Option<Instant> {
        let has_room = self.max_total().is_none_or(|max| self.connections.len() < max);
        let is_paced = self.adapts() || self.backoff().is_some();
        if !is_paced || self.status != Status::Ready || !has_room || !self.has_paced_permit() {
            return None;
        }
        let mut wanted = Vec::new();
        if !self.queue.is_empty() {
            wanted.push(self.is_worth_it_from());
        }
        if self.has_place_to_populate() {
            wanted.push(self.populate_after.unwrap_or(self.now));
        }
        Some(wanted.into_iter().min()?.max(self.paced_from()))
    }

    pub(super) fn measure_establishment(&mut self, created: Instant) {
        self.pace.overloads = 0;
        self.pace.not_before = None;
        if self.adapts() {
            let took = self.now.saturating_since(created);
            self.pace.establishment = Some(took.as_nanos() as u64);
            self.pace.gained = Some(self.now);
            self.pace.not_before = Some(self.now + took);
        }
    }

    pub(super) fn measure_use(&mut self, since: Instant) {
        if self.adapts() {
            let held = self.now.saturating_since(since).as_nanos() as u64;
            self.pace.use_time = Some(match self.pace.use_time {
                None => held,
                Some(known) => known - known / 4 + held / 4,
            });
            self.pace.gained = Some(self.now);
        }
    }

    // ER-42: a random part of the base times 2ⁿ, and of 10 s at most. A failure during a backoff belongs to it.
    pub(super) fn back_off(&mut self, number: u64) {
        let Some(base) = self.backoff() else { return };
        let backs_off = self.pace.overloads > 0 && self.paced_from() > self.now;
        if backs_off {
            return;
        }
        self.pace.overloads = self.pace.overloads.saturating_add(1);
        let factor = 1_u128 << self.pace.overloads.min(64);
        let longest = (base.as_nanos() * factor).min(PoolOptions::MAX_OVERLOAD_BACKOFF.as_nanos());
        let seed = self.options.jitter_seed.unwrap_or(0);
        let chance = split_mix(seed ^ split_mix(number));
        let wait = Duration::from_nanos(chance % (longest as u64 + 1));
        self.pace.not_before = Some(self.now + wait);
    }

    /// A policy that was switched on or off starts anew.
    pub(super) fn restart_policies(&mut self, before: (bool, bool, bool)) {
        let (adapts, backs_off, predicts) = self.policies();
        if (adapts, backs_off) != (before.0, before.1) {
            self.pace = Pace::default();
        }
        if predicts != before.2 {
            self.demand = self.new_demand();
        }
    }

    pub(super) fn policies(&self) -> (bool, bool, bool) {
        (self.adapts(), self.backoff().is_some(), self.predicts())
    }

    pub(super) fn new_demand(&self) -> Option<Demand> {
        self.predicts().then_some(Demand { since: self.now, sum: 0, predicted: 0 })
    }

    /// What has been needed until `now`: connections in use, and requests that wait in any way.
    pub(super) fn measure_demand(&mut self, now: Instant) {
        let in_use = self.how_many(is_in_use);
        let owners = self.how_many(|phase| owner_of(phase).is_some());
        let needed = (in_use + owners + self.queue.len()) as u64;
        let time = now.saturating_since(self.now).as_nanos() as u64;
        let Some(demand) = &mut self.demand else { return };
        demand.sum = demand.sum.saturating_add(needed.saturating_mul(time));
        let length = now.saturating_since(demand.since).as_nanos();
        if length >= 250_000_000 {
            let average = u128::from(demand.sum) * 1_000 / length;
            let connections = (average + (16_000 * average).isqrt()).div_ceil(1_000);
            let predicted = u32::try_from(connections).unwrap_or(u32::MAX);
            *demand = Demand { since: now, sum: 0, predicted };
        }
    }

    /// At most as many as there may be.
    pub(super) fn predicted(&self) -> usize {
        let predicted = self.demand.map_or(0, |demand| demand.predicted) as usize;
        predicted.min(self.max_total().unwrap_or(u32::MAX as usize - 16))
    }
}
