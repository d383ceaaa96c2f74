//! When a server that is new is checked for the first time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::monitor::MonitorOptions;
use crate::pool::Instant;

/// Servers that were added or removed of late: a check of those that come without a pause has a pause before it.
#[derive(Debug)]
pub(super) struct Newcomers {
    since: Instant,
    count: u32,
    /// Those that are gone, with the time.
    gone: BTreeMap<Arc<ServerAddress>, Instant>,
}

impl Newcomers {
    /// How many are checked at once: as many as a replica set has members.
    const MAX: u32 = 50;
    /// How many of those that are gone are remembered.
    const GONE_MAX: usize = 1_000;

    pub(super) const fn none(now: Instant) -> Self {
        Self { since: now, count: 0, gone: BTreeMap::new() }
    }

    /// One more, whose first check has to wait if it was there a moment ago, as where members name each other in turn, or if
    /// there are many.
    // SM-05
    pub(super) fn has_to_wait(&mut self, address: &ServerAddress, now: Instant) -> bool {
        if !is_recent(self.since, now) {
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        let is_back = self.gone.remove(address).is_some_and(|gone| is_recent(gone, now));
        is_back || self.count > Self::MAX
    }

    pub(super) fn is_gone(&mut self, address: Arc<ServerAddress>, now: Instant) {
        if self.gone.len() >= Self::GONE_MAX {
            self.gone.retain(|_, gone| is_recent(*gone, now));
        }
        if self.gone.len() < Self::GONE_MAX {
            self.gone.insert(address, now);
        }
    }
}

fn is_recent(then: Instant, now: Instant) -> bool {
    now < then + MonitorOptions::MIN_HEARTBEAT_FREQUENCY
}
