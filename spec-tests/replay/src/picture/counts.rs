//! The counts of a pool, and the state in which a trace finds it.

use cenote_core::pool::{ConnectionState, PoolState, Snapshot};
use cenote_core::trace::Traced;

use super::collect::{Collector, Open};
use super::model::{Limits, Point, UseKind};

impl Collector {
    /// Adds the state of a pool.
    pub(super) fn take_over(&mut self, pool: &PoolState<Traced>) {
        for connection in pool.connections() {
            let since = connection.since.as_nanos();
            let activity = match connection.state {
                ConnectionState::Pending { .. } => Some((UseKind::Pending, 0, since)),
                ConnectionState::Available | ConnectionState::PendingResponse { .. } => None,
                ConnectionState::Draining { .. } => Some((UseKind::Draining, 0, since)),
                ConnectionState::InUse { .. } => Some((UseKind::InUse, 0, since)),
            };
            let (slot, start) = (connection.id.slot(), connection.created.as_nanos());
            let open = Open { slot, start, why: 0, note: 0, place: 0, activity };
            self.open.insert(connection.id.number(), open);
        }
        self.counts(&pool.snapshot(), pool.now().as_nanos());
    }

    pub(super) fn counts(&mut self, snapshot: &Snapshot, at: u64) {
        let waiting = u32::try_from(snapshot.waiting).unwrap_or(u32::MAX);
        let &Snapshot { total, in_use, pending, .. } = snapshot;
        let point = Point { at, total, in_use, pending, waiting };
        let differs = |last: &Point| Point { at, ..*last } != point;
        if self.picture.points.last().is_none_or(differs) {
            // Of several at the same time, only the last is visible.
            if self.picture.points.last().is_some_and(|last| last.at == at) {
                self.picture.points.pop();
            }
            self.picture.points.push(point);
        }
        let (min, connecting) = (snapshot.min_pool_size, snapshot.max_connecting);
        let limits = Limits { at, max: snapshot.max_pool_size.unwrap_or(0), min, connecting };
        let last = self.picture.limits.last();
        if last.is_none_or(|last| Limits { at, ..*last } != limits) {
            self.picture.limits.push(limits);
        }
    }
}
