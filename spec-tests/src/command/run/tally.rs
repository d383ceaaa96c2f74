use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::latency::{Latencies, Quantiles};
use super::timeline::Timeline;

/// What all tasks have seen, and whether they go on.
pub(super) struct Tally {
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) timeline: Arc<Timeline>,
    most: u64,
    asked: AtomicU64,
    without_server: AtomicU64,
    delivered: AtomicU64,
    good: AtomicU64,
    failed: AtomicU64,
    reasons: Mutex<BTreeMap<String, u64>>,
    shards: Vec<Mutex<Shard>>,
}

/// Of some of the tasks, so that they do not all want the same lock.
struct Shard {
    waits: Latencies,
    operations: Latencies,
}

/// Enough for as many cores as there may be.
const SHARDS: usize = 16;

/// So many different reasons are told, and the others are counted together: texts of servers may
/// all be different.
const REASONS: usize = 20;

/// How often, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Check-outs that were begun: where there was no server in time, no pool was asked.
    pub(super) asked: u64,
    /// Those that got a connection.
    pub(super) delivered: u64,
    /// Operations that went well.
    pub(super) good: u64,
    /// Check-outs and operations that failed.
    pub(super) failed: u64,
}

impl Tally {
    /// `most` is how many operations there are to be.
    pub(super) fn new(most: Option<u64>, timeline: Arc<Timeline>) -> Self {
        let shard = || Mutex::new(Shard { waits: Latencies::new(), operations: Latencies::new() });
        Self {
            is_over: Arc::default(),
            timeline,
            most: most.unwrap_or(u64::MAX),
            asked: AtomicU64::new(0),
            without_server: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            good: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            reasons: Mutex::default(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    /// Whether there is one operation more to do, which the caller then has to do.
    pub(super) fn next(&self) -> bool {
        if self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        let next = |asked: u64| (asked < self.most).then_some(asked + 1);
        self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// There was no server to ask.
    pub(super) fn without_server(&self, reason: String) {
        self.without_server.fetch_add(1, Ordering::Relaxed);
        self.failed(reason);
    }

    /// A connection was handed out.
    pub(super) fn delivered(&self, task: u32, wait: Duration) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        self.shard(task).waits.record(wait);
    }

    pub(super) fn good(&self, task: u32, time: Duration) {
        self.good.fetch_add(1, Ordering::Relaxed);
        self.timeline.good(time);
        self.shard(task).operations.record(time);
    }

    pub(super) fn failed(&self, reason: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.timeline.failed();
        let mut reasons = lock(&self.reasons);
        let has_room = reasons.len() < REASONS || reasons.contains_key(&reason);
        let reason = if has_room { reason } else { "for other reasons".to_owned() };
        *reasons.entry(reason).or_default() += 1;
    }

    pub(super) fn counts(&self) -> Counts {
        let [begun, without_server, delivered, good, failed] =
            [&self.asked, &self.without_server, &self.delivered, &self.good, &self.failed]
                .map(|count| count.load(Ordering::Relaxed));
        Counts { asked: begun.saturating_sub(without_server), delivered, good, failed }
    }

    pub(super) fn reasons(&self) -> BTreeMap<String, u64> {
        lock(&self.reasons).clone()
    }

    /// Of waiting for a connection, and of operations.
    pub(super) fn quantiles(&self) -> [Quantiles; 2] {
        let (mut waits, mut operations) = (Latencies::new(), Latencies::new());
        for shard in self.shards.iter().map(lock) {
            waits.add(&shard.waits);
            operations.add(&shard.operations);
        }
        [waits, operations].map(|latencies| latencies.quantiles())
    }

    fn shard(&self, task: u32) -> MutexGuard<'_, Shard> {
        lock(&self.shards[task as usize % SHARDS])
    }
}

/// Whoever panicked with it has left a count, which is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_operations_as_were_asked_for() {
        let tally = Tally::new(Some(2), Arc::new(Timeline::new()));
        assert_eq!([tally.next(), tally.next(), tally.next()], [true, true, false]);
        assert_eq!(tally.counts().asked, 2);
    }

    #[test]
    fn reasons_without_end_are_counted_together() {
        let tally = Tally::new(None, Arc::new(Timeline::new()));
        (0..50).for_each(|number| tally.failed(number.to_string()));
        tally.failed("7".to_owned());
        let reasons = tally.reasons();
        assert_eq!((reasons.len(), reasons["7"]), (REASONS + 1, 2));
        assert_eq!(reasons.values().sum::<u64>(), 51);
    }
}
